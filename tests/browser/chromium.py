"""Debian's Chromium without a window, and what it complained of, asked for and popped up."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

import pytest
from selenium import webdriver
from selenium.common.exceptions import UnexpectedAlertPresentException
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webelement import WebElement

from services.servers import CACHE

T = TypeVar("T")

REBOUND = "rebound.test"
"""A foreign name that leads to this machine, as after DNS rebinding; every other name leads nowhere."""

_SECONDS = 30
_DIALOGS = 20

_REQUIRED = os.environ.get("SEALTRACE_REQUIRE_SERVICES") == "1"


def programs() -> tuple[str, str]:
    """Chromium and its driver; the test is skipped, or fails where services are required, without them."""
    found = [shutil.which(name) for name in ("chromium", "chromedriver")]
    if None in found:
        _lacking("chromium or chromedriver is not installed; apt-get install chromium chromium-driver")
    return str(found[0]), str(found[1])


def axe() -> str:
    """The source of axe-core; as `programs` where it is not there."""
    lock = Path(__file__).with_name("package-lock.json")
    path = CACHE / f"axe-core-{hashlib.sha256(lock.read_bytes()).hexdigest()[:12]}" / "axe.min.js"
    if not path.exists():
        _lacking("axe-core is not there; run tests/browser/build.sh")
    return path.read_text(encoding="utf-8")


def _lacking(reason: str) -> None:
    if _REQUIRED:
        pytest.fail(reason)
    pytest.skip(reason)


class Browser:
    """One window.

    Attributes:
        driver: Selenium's.
        origin: What may be asked: the origin of the page that was opened last.
    """

    def __init__(self, driver: webdriver.Chrome) -> None:
        self.driver = driver
        self.origin = ""
        self.forget()

    # what a reader does

    def open(self, url: str) -> None:
        """Go there by the address bar and wait until it has loaded."""
        self.listen()  # while the origin is still the last page's
        parts = urlsplit(url)
        self.origin = f"{parts.scheme}://{parts.netloc}/"
        with contextlib.suppress(UnexpectedAlertPresentException):  # `trouble` tells of it
            self.driver.get(url)
        self.until(lambda: self._past_dialogs(lambda: self.script(_LOADED)), "it does not load")

    def press(self, keys: str) -> None:
        """Press keys wherever the focus is."""
        ActionChains(self.driver, duration=0).send_keys(keys).perform()

    def type(self, text: str) -> None:
        """As `press`, for text with characters the driver has no key for as well."""
        self.driver.switch_to.active_element.send_keys(text)

    def enter(self) -> None:
        """Press Enter."""
        self.press(Keys.ENTER)

    def escape(self) -> None:
        """Press Escape."""
        self.press(Keys.ESCAPE)

    def tab(self) -> None:
        """Press Tab."""
        self.press(Keys.TAB)

    def back(self) -> None:
        """Go back one step of the history."""
        self.driver.back()

    # what is seen

    def all(self, selector: str) -> list[WebElement]:
        """Elements, in the order of the document."""
        return self.driver.find_elements(By.CSS_SELECTOR, selector)

    def one(self, selector: str) -> WebElement:
        """The first of them, within the time a page may take."""
        return self.until(lambda: next(iter(self.all(selector)), None), f"no {selector}")

    @property
    def path(self) -> str:
        """Path and query of the address."""
        parts = urlsplit(self.driver.current_url)
        return f"{parts.path}?{parts.query}" if parts.query else parts.path

    @property
    def text(self) -> str:
        """The text of the page as it is laid out."""
        return self.one("body").text

    def script(self, source: str, *arguments: Any) -> Any:
        """What a function of this body returns in the page."""
        return self.driver.execute_script(source, *arguments)

    def until(self, question: Callable[[], T], otherwise: str) -> T:
        """Ask until the answer is true; returns the answer."""
        deadline = time.monotonic() + _SECONDS
        while not (answer := question()):
            assert time.monotonic() < deadline, f"{otherwise} at {self.driver.current_url}"
            time.sleep(0.01)
        return answer

    # what went over the wire, and what must not be

    def forget(self) -> None:
        """Start anew with what went wrong."""
        self._past_dialogs(lambda: self.driver.get("about:blank"))
        self.driver.get_log("browser")
        self.driver.get_log("performance")
        self._trouble: list[str] = []
        self._asked: dict[str, str] = {}
        self._answered: list[tuple[str, int]] = []

    def trouble(self, *, status: int = 200) -> list[str]:
        """What went wrong since it was asked last: errors, foreign requests, dialogs, windows, strange elements.

        Args:
            status: What the page was answered with; the browser counts any failure as an error.
        """
        strange = self._past_dialogs(self.strange)
        answered = f"the server responded with a status of {status} "
        found = [
            f"console: {entry['message']}"
            for entry in self.driver.get_log("browser")
            if entry["level"] in ("SEVERE", "WARNING") and (status == 200 or answered not in entry["message"])
        ]
        self.listen()
        found += self._trouble
        self._trouble = []
        if len(self.driver.window_handles) != 1:
            found.append(f"{len(self.driver.window_handles)} windows")
        return found + strange

    def strange(self, within: str = "") -> list[str]:
        """The strange elements alone, in the whole page or in one part of it."""
        return list(self.script(_STRANGE, within))

    def listen(self) -> list[tuple[str, int]]:
        """Address and status of every HTTP answer since `forget`, in order."""
        for entry in self.driver.get_log("performance"):
            message = json.loads(entry["message"])["message"]
            method, params = message["method"], message["params"]
            if method in ("Network.requestWillBeSent", "Network.webSocketCreated"):
                url = params["url"] if "url" in params else params["request"]["url"]
                self._asked[params["requestId"]] = url
                if not url.startswith(self.origin):
                    self._trouble.append(f"request: {url[:200]}")
            elif method == "Network.responseReceivedExtraInfo":  # comes also for what the browser then keeps back
                self._answered.append((params["requestId"], params["statusCode"]))
            elif method == "Page.javascriptDialogOpening":
                self._trouble.append(f"dialog: {params.get('message', '')[:200]}")
        # An answer may be reported before what it answers.
        return [(self._asked.get(request, "?"), status) for request, status in self._answered]

    def _past_dialogs(self, command: Callable[[], T]) -> T:
        """The driver dismisses a dialog and fails what it was asked meanwhile: ask again."""
        for _ in range(_DIALOGS):
            with contextlib.suppress(UnexpectedAlertPresentException):
                return command()
        raise AssertionError("the page goes on opening dialogs")


_LOADED = "return document.readyState === 'complete'"
_STRANGE = (Path(__file__).with_name("strange.js")).read_text(encoding="utf-8")
"""Looks for what the viewer never writes: see there."""


@contextlib.contextmanager
def browsing(profile: Path, *, dark: bool = False, javascript: bool = True) -> Iterator[Browser]:
    """A browser of its own profile until the block ends."""
    binary, driver = programs()
    options = Options()
    options.binary_location = binary
    for argument in (
        "--headless=new",
        "--no-sandbox",  # as root there is none to be had
        "--disable-dev-shm-usage",
        "--disable-gpu",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        "--no-first-run",
        "--no-proxy-server",
        "--window-size=1280,900",
        f"--user-data-dir={profile}",
        f"--host-resolver-rules=MAP {REBOUND} 127.0.0.1, MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
    ):
        options.add_argument(argument)
    if not javascript:
        options.add_experimental_option("prefs", {"profile.managed_default_content_settings.javascript": 2})
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    options.set_capability("unhandledPromptBehavior", "dismiss")  # `trouble` tells of it
    chrome = webdriver.Chrome(options=options, service=Service(driver))
    try:
        chrome.execute_cdp_cmd(
            "Emulation.setEmulatedMedia",
            {"features": [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]},
        )
        yield Browser(chrome)
    finally:
        chrome.quit()
