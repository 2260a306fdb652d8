"""The compiled part of sealtrace's fast search; `sealtrace.redaction.hyperscan_engine` is its only user."""

from ._look import ENCODED, IPV4, IPV6, NUMBER, look, names

__all__ = ["ENCODED", "IPV4", "IPV6", "NUMBER", "look", "names"]
