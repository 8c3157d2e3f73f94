"""Headless Chromium, driven over the pipes of its DevTools protocol, for pages that work while they are open."""

from __future__ import annotations

import base64
import fcntl
import json
import os
import select
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.html_layout import FLAGS
from tests.requirements import need_chromium
from tests.waiting import LIMIT_S, wait_until


class ScriptError(AssertionError):
    """A script in the page has failed."""


class Browser:
    """One process of Chromium. Use `opened`."""

    def __init__(self, process: subprocess.Popen[bytes], to_browser: int, from_browser: int) -> None:
        self._process = process
        self._to_browser, self._from_browser = to_browser, from_browser
        self._number = 0
        self._received = b""
        self.events: list[dict[str, Any]] = []

    def call(self, method: str, session: str | None = None, **parameters: Any) -> Any:
        """Call a method of the protocol and return its result; events that come meanwhile are kept."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if session is not None:
            message["sessionId"] = session
        os.write(self._to_browser, json.dumps(message).encode() + b"\0")
        while (found := self._message()).get("id") != self._number:
            self.events.append(found)
        if "error" in found:
            raise ScriptError(f"{method}: {found['error']}")
        return found["result"]

    def _message(self) -> Any:
        deadline = time.monotonic() + LIMIT_S
        while b"\0" not in self._received:
            readable, _, _ = select.select([self._from_browser], [], [], max(0.0, deadline - time.monotonic()))
            data = os.read(self._from_browser, 1 << 20) if readable else b""
            assert data, f"Chromium does not respond: {self._process.poll()}"
            self._received += data
        message, _, self._received = self._received.partition(b"\0")
        return json.loads(message)

    def page(self, url: str) -> Page:
        """Open a page."""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        page = Page(self, session)
        for domain in ("Page", "Runtime", "Log"):
            page.call(f"{domain}.enable")
        page.go_to(url)
        return page


class Page:
    """A page in a browser."""

    def __init__(self, browser: Browser, session: str) -> None:
        self._browser = browser
        self._session = session

    def call(self, method: str, **parameters: Any) -> Any:
        return self._browser.call(method, self._session, **parameters)

    def go_to(self, url: str) -> None:
        self.call("Page.navigate", url=url)

    def evaluate(self, expression: str) -> Any:
        """Return the value of an expression, of a promise its result."""
        found = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in found:
            raise ScriptError(f"{expression}: {found['exceptionDetails']}")
        return found["result"].get("value")

    def wait(self, condition: str) -> None:
        """Wait until an expression is true."""
        wait_until(lambda: bool(self.evaluate(condition)), condition)

    def text(self, selector: str) -> str:
        """Return the text that is shown of the first element."""
        found: str = self.evaluate(f"document.querySelector({json.dumps(selector)})?.innerText ?? ''")
        return found

    def click(self, selector: str) -> None:
        """Click on the first element, once it is there."""
        found = f"document.querySelector({json.dumps(selector)})"
        self.wait(f"{found} !== null")
        self.evaluate(f"{found}.click()")

    def fill(self, selector: str, value: str) -> None:
        """Set the value of an input, as a user does."""
        found = f"document.querySelector({json.dumps(selector)})"
        self.evaluate(f"{found}.value = {json.dumps(value)}")
        for event in ("input", "change"):
            self.evaluate(f"{found}.dispatchEvent(new Event('{event}', {{bubbles: true}}))")

    def resize(self, width: int, height: int = 1000) -> None:
        """Give the page the size of a screen."""
        self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600
        )

    def set_dark(self, is_dark: bool) -> None:
        """Prefer dark or light colors."""
        value = "dark" if is_dark else "light"
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": value}])

    def screenshot(self, path: Path) -> None:
        """Write a picture of the whole page."""
        size = self.call("Page.getLayoutMetrics")["cssContentSize"]
        clip = {"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1}
        found = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=True, clip=clip)
        path.write_bytes(base64.b64decode(found["data"]))

    @property
    def errors(self) -> list[str]:
        """What the page has reported as an error so far: exceptions, and violations of its Content-Security-Policy."""
        self.evaluate("0")  # receive what has come
        found = []
        for event in self._browser.events:
            parameters = event.get("params", {})
            if event.get("sessionId") != self._session:
                continue
            if event["method"] == "Runtime.exceptionThrown":
                found.append(str(parameters["exceptionDetails"]))
            elif event["method"] == "Log.entryAdded" and parameters["entry"]["level"] == "error":
                found.append(parameters["entry"]["text"])
        return found


def _pipe() -> tuple[int, int]:
    """Return the ends of a pipe, whose numbers are none of those that Chromium expects."""
    ends = os.pipe()
    found = fcntl.fcntl(ends[0], fcntl.F_DUPFD_CLOEXEC, 10), fcntl.fcntl(ends[1], fcntl.F_DUPFD_CLOEXEC, 10)
    for end in ends:
        os.close(end)
    return found


@contextmanager
def opened(folder: Path) -> Iterator[Browser]:
    """Run Chromium, whose files are in a folder."""
    (from_us, to_browser), (from_browser, to_us) = _pipe(), _pipe()
    words = [need_chromium(), *FLAGS, "--remote-debugging-pipe", f"--user-data-dir={folder / 'user-data'}"]
    script = f'exec "$@" 3<&{from_us} 4>&{to_us}'
    command = ["bash", "-c", script, "bash", *words]
    process = subprocess.Popen(command, pass_fds=(from_us, to_us), cwd=folder, stderr=subprocess.DEVNULL)
    os.close(from_us)
    os.close(to_us)
    browser = Browser(process, to_browser, from_browser)
    try:
        yield browser
        browser.call("Browser.close")
    finally:
        os.close(to_browser)
        os.close(from_browser)
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
