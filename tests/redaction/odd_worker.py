"""A process to search aside with that can misbehave in every way: it does what the text tells it to."""

from __future__ import annotations

import json
import os
import sys
import threading
from pathlib import Path


def _answer(value: object) -> None:
    sys.stdout.write(json.dumps(value) + "\n")
    sys.stdout.flush()


def main() -> None:
    """Begin as the first argument says: at once, never, or once somebody writes to the named pipe."""
    manner = sys.argv[1]
    if manner == "stillborn":
        sys.exit(1)
    if manner != "well":
        Path(manner).read_bytes()
    _answer("ready")
    for line in sys.stdin:
        text = json.loads(line)
        if text.startswith("hang"):
            if text != "hang":
                Path(text.removeprefix("hang ")).write_bytes(b"hanging")
            threading.Event().wait()
        elif text == "die":
            os._exit(3)
        elif text == "junk":
            sys.stdout.write("what?\n")
            sys.stdout.flush()
        elif text == "flood":
            while True:
                sys.stdout.write("x" * 65_536)
        elif text.startswith("answer "):
            _answer(json.loads(text.removeprefix("answer ")))
        elif text == "environment":
            _answer([[0, 1, name] for name in sorted(os.environ)])
        elif text == "pid":
            _answer([[0, 1, str(os.getpid())]])
        else:
            _answer([[0, len(text), "SECRET"]])


if __name__ == "__main__":
    main()
