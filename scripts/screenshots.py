"""Take the pictures of the viewer in docs/images, some in light and some in dark.

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
SIZE = {"width": 1260, "height": 620, "deviceScaleFactor": 1, "mobile": False}
LARGEST = 150 * 1024


def main() -> None:
    """Take all pictures."""
    OUT.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="sealtrace-pictures-") as name:
        folder = Path(name)
        runs = shelf(folder)
        env = {"SEALTRACE_REPORTS": str(runs.reports)}
        with serving(folder, runs.vault, runs.telemetry, env=env) as viewer:
            for scheme in ("light", "dark"):
                with browsing(folder / scheme, dark=scheme == "dark") as browser:
                    browser.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", SIZE)
                    for title, path, key in pages(runs)[scheme]:
                        browser.open(f"{viewer.url}{path}")
                        if key:
                            browser.press(key)
                        picture(browser, title)


def pages(runs: Shelf) -> dict[str, list[tuple[str, str, str]]]:
    """By scheme: the picture's name, the page's path, and a key to press on it."""
    failed = f"/runs/{runs.whole}?event=11"
    return {
        "light": [
            ("runs", "/runs", ""),
            ("run", f"/runs/{runs.whole}?event=8", ""),
            ("model-call", f"/runs/{runs.whole}?event=9", ""),
            ("keys", failed, "?"),
            ("expired", f"/runs/{runs.expired}?event=2", ""),
            ("compare", f"/compare?a={runs.whole}&b={runs.changed}", ""),
        ],
        "dark": [
            ("run-dark", failed, ""),
            ("partial", f"/runs/{runs.partial}?event=4", ""),
            ("rerun", f"/reruns/{runs.diverged}", ""),
        ],
    }


def picture(browser: Browser, name: str) -> None:
    """Write what the window shows."""
    browser.script("scrollTo(0, 0)")  # the open line may have been brought into sight
    taken = browser.driver.execute_cdp_cmd("Page.captureScreenshot", {"format": "png", "optimizeForSpeed": False})
    data = base64.b64decode(taken["data"])
    if len(data) > LARGEST:
        raise SystemExit(f"{name}.png has {len(data)} bytes, more than {LARGEST}")
    (OUT / f"{name}.png").write_bytes(data)
    print(f"docs/images/{name}.png {len(data) / 1024:.0f} KB")


if __name__ == "__main__":
    main()
