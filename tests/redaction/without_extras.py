"""Hides what the extras install, as if it were not there: importing this module is enough.

SEALTRACE_TEST_WITHOUT_EXTRAS=1 pytest tests/redaction
"""

from __future__ import annotations

import importlib.machinery
from typing import Any, Final

__all__ = ["HIDDEN"]

HIDDEN: Final = frozenset({"hyperscan", "sealtrace_fast", "re2", "regex", "kingfisher_sdk", "presidio_analyzer"})

_find_spec: Final = importlib.machinery.PathFinder.find_spec


def _but_hidden(name: str, path: Any = None, target: Any = None) -> Any:
    return None if name.partition(".")[0] in HIDDEN else _find_spec(name, path, target)


importlib.machinery.PathFinder.find_spec = _but_hidden  # type: ignore[method-assign]
