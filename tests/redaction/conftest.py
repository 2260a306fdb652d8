"""SEALTRACE_TEST_WITHOUT_EXTRAS=1: these tests as on a machine that has nothing but sealtrace itself."""

from __future__ import annotations

import os

if os.environ.get("SEALTRACE_TEST_WITHOUT_EXTRAS"):
    import redaction.without_extras  # noqa: F401
