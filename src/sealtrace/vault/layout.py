"""Where things lie in a vault.

```
{class}/v1/{shard2}/{trace32}/{record_id}/{seq:06d}-{sha16}.jsonl.gz      segments; sealed ones end in .enc
keys/v1/{shard2}/{trace32}/{record_id}/key-{sha16}.json                   a sealed record's wrapped key
meta/v1/{shard2}/{trace32}/{record_id}/manifest-{sha16}.json              last
meta/v1/audit/{date}/{time}-{what}-{sha16}.json                           who erased or read what
meta/v1/audit/erased/{shard2}/{trace32}.json                              this run was erased
meta/v1/audit/erased/sessions/{tag32}/{time}.json                         this session was, up to then
```

The class comes first because retention is by prefix: a bucket's lifecycle rules need no tags. The
digest in the key makes a second upload of the same bytes harmless and of other bytes impossible.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import re
from typing import Final

from ..event import Kind, run_hex
from ..settings import Retention

__all__ = [
    "AUDIT",
    "CLASSES",
    "ERASED",
    "ERASED_SESSIONS",
    "KEYS",
    "META",
    "audit_key",
    "class_of",
    "days_of",
    "expiry",
    "is_sealed",
    "key_key",
    "manifest_key",
    "mark_time",
    "parse_key",
    "parse_tombstone",
    "record_prefix",
    "run_prefix",
    "segment_key",
    "session_tombstone_key",
    "tag_digest",
    "tombstone_key",
]

META: Final = "meta"
KEYS: Final = "keys"
"""Wrapped data keys: a class of their own, so that backups and readers can be kept out of it."""

CLASSES: Final = ("io", "content", META, KEYS)
AUDIT: Final = "meta/v1/audit/"
"""Prefix of the audit lines: no run's hex digits, so never taken for one."""

ERASED: Final = f"{AUDIT}erased/"
"""Prefix of the marks of erased runs: where the custodian, who may put little else, may put."""

ERASED_SESSIONS: Final = f"{ERASED}sessions/"
"""Prefix of the marks of erased sessions."""

_IO: Final = frozenset({Kind.INPUT, Kind.OUTPUT})
_KEY: Final = re.compile(
    r"(?P<klass>io|content|meta|keys)/v1/(?P<shard>[0-9a-f]{2})/(?P<run>[0-9a-f]{32})/(?P<record>[0-9a-f]{32})/"
    r"(?:(?P<seq>[0-9]{6,9})-(?P<sha>[0-9a-f]{16})\.jsonl\.gz(?P<sealed>\.enc)?"
    r"|manifest-(?P<manifest>[0-9a-f]{16})\.json|key-(?P<wrapped>[0-9a-f]{16})\.json)\Z"
)
_SEALED: Final = ".enc"
_TOMBSTONE: Final = re.compile(rf"{ERASED}(?P<shard>[0-9a-f]{{2}})/(?P<run>[0-9a-f]{{32}})\.json\Z")


def class_of(kind: Kind, retention: Retention) -> str:
    """The retention class of an event's payload; kinds kept equally long share one."""
    return "io" if kind in _IO and retention.io != retention.content else "content"


def days_of(klass: str, retention: Retention) -> int:
    """Days after which objects of this class may be deleted."""
    # A key is stored before the last segment of its record, and must not go before it.
    keys = max(retention.io, retention.content) + 1
    return {"io": retention.io, "content": retention.content, META: retention.meta, KEYS: keys}[klass]


def expiry(created: str, days: int) -> str:
    """RFC 3339 time `days` after `created`."""
    return (dt.datetime.fromisoformat(created) + dt.timedelta(days=days)).strftime("%Y-%m-%dT%H:%M:%SZ")


def run_prefix(klass: str, run_id: str) -> str:
    """The prefix of everything of a run in a class."""
    digits = run_hex(run_id)
    return f"{klass}/v1/{digits[:2]}/{digits}/"


def record_prefix(klass: str, run_id: str, record_id: str) -> str:
    """The prefix of everything of a record in a class."""
    return f"{run_prefix(klass, run_id)}{record_id}/"


def segment_key(klass: str, run_id: str, record_id: str, seq: int, digest: bytes, *, sealed: bool = False) -> str:
    """The key of a segment whose first event is `seq` and whose bytes have this SHA-256."""
    name = f"{seq:06d}-{digest.hex()[:16]}.jsonl.gz{_SEALED if sealed else ''}"
    return f"{record_prefix(klass, run_id, record_id)}{name}"


def is_sealed(key: str) -> bool:
    """Whether this is the key of a segment that is encrypted under its record's own key."""
    return key.endswith(_SEALED)


def key_key(run_id: str, record_id: str, digest: bytes) -> str:
    """The key of a wrapped data key whose bytes have this SHA-256."""
    return f"{record_prefix(KEYS, run_id, record_id)}key-{digest.hex()[:16]}.json"


def manifest_key(run_id: str, record_id: str, digest: bytes) -> str:
    """The key of a manifest whose bytes have this SHA-256."""
    return f"{record_prefix(META, run_id, record_id)}manifest-{digest.hex()[:16]}.json"


def audit_key(now: str, what: str, digest: bytes) -> str:
    """The key of an audit line written at `now` (RFC 3339) about `what` (`erase`, `read`)."""
    return f"{AUDIT}{now[:10]}/{now[11:].replace(':', '')}-{what}-{digest.hex()[:16]}.json"


def parse_key(key: str) -> dict[str, str | None] | None:
    """The parts of a key of ours (`klass`, `run`, `record`, `seq`, `sha`, `sealed`, `manifest`, `wrapped`), or None."""
    match = _KEY.match(key)
    if match is None or match["shard"] != match["run"][:2]:
        return None
    return match.groupdict()


def tombstone_key(run_id: str) -> str:
    """The key of the mark that says the run was erased."""
    digits = run_hex(run_id)
    return f"{ERASED}{digits[:2]}/{digits}.json"


def parse_tombstone(key: str) -> str | None:
    """The erased run's id, from the key of its mark; None if it is none."""
    match = _TOMBSTONE.match(key)
    return f"trace_{match['run']}" if match is not None and match["shard"] == match["run"][:2] else None


def session_tombstone_key(tag: str, now: str) -> str:
    """The key of the mark that says what the session recorded up to now (RFC 3339, UTC) was erased."""
    return f"{ERASED_SESSIONS}{tag_digest(tag)}/{mark_time(now)}.json"


def tag_digest(tag: str) -> str:
    """A session's tag as keys can hold it."""
    return hashlib.sha256(tag.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def mark_time(time: str) -> str:
    """A time as keys can hold it; it sorts as the time does."""
    return dt.datetime.fromisoformat(time).astimezone(dt.UTC).strftime("%Y%m%dT%H%M%S.%fZ")
