"""Take the pictures of the viewer in docs/images, in light and in dark.

.venv/bin/python scripts/screenshots.py

The runs are those of the browser tests. Look at what it took before you commit it.
"""

from __future__ import annotations

import base64
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from browser.chromium import Browser, browsing  # noqa: E402
from browser.runs import Shelf, shelf  # noqa: E402
from browser.serving import serving  # noqa: E402

OUT = ROOT / "docs" / "images"
SIZE = {"width": 1280, "height": 800, "deviceScaleFactor": 1, "mobile": False}
LARGEST = 250 * 1024


def main() -> None:
    """Take all pictures."""
    OUT.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="sealtrace-pictures-") as name:
        folder = Path(name)
        runs = shelf(folder)
        with serving(folder, runs.vault, runs.telemetry) as viewer:
            for scheme in ("light", "dark"):
                with browsing(folder / scheme, dark=scheme == "dark") as browser:
                    browser.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", SIZE)
                    for title, path in pages(runs).items():
                        browser.open(f"{viewer.url}{path}")
                        picture(browser, f"{title}-{scheme}")
                    browser.press("?")
                    picture(browser, f"keys-{scheme}")


def pages(runs: Shelf) -> dict[str, str]:
    """Path of each page, by the picture's name."""
    return {
        "runs": "/runs",
        "tool": f"/runs/{runs.whole}?event=6",
        "expired": f"/runs/{runs.expired}?event=2",
        "partial": f"/runs/{runs.partial}?event=4",
        "compare": f"/compare?a={runs.whole}&b={runs.partial}",
        "not-found": f"/runs/trace_{'0' * 32}",
        "run": f"/runs/{runs.whole}?event=8",
    }


def picture(browser: Browser, name: str) -> None:
    """Write what the window shows."""
    taken = browser.driver.execute_cdp_cmd("Page.captureScreenshot", {"format": "png", "optimizeForSpeed": False})
    data = base64.b64decode(taken["data"])
    if len(data) > LARGEST:
        raise SystemExit(f"{name}.png has {len(data)} bytes, more than {LARGEST}")
    (OUT / f"{name}.png").write_bytes(data)
    print(f"docs/images/{name}.png {len(data) / 1024:.0f} KB")


if __name__ == "__main__":
    main()
