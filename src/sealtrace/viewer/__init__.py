"""The page behind the link: a run as HTML, served on loopback by `sealtrace serve`."""

from __future__ import annotations
