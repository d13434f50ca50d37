"""Drive a headless Chromium through its debugging pipe: open a page, run JavaScript in it, press keys, take pictures.

python -m tools.browser report.html docs/report.png      (a picture of the upper part of a page)

The protocol is one JSON object a message, ended by a zero byte, on file descriptors 3 and 4 of the browser.
"""

from __future__ import annotations

import base64
import json
import os
import select
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic
from typing import Any

FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync")
QUIET = ("--disable-background-networking", "--disable-component-update", "--disable-extensions", "--hide-scrollbars")
#: seconds that one command may take
PATIENCE = 60.0


class Page:
    """A tab of the browser. `complaints` has what the page wrote to the console and what it failed at."""

    def __init__(self, process: subprocess.Popen[bytes], commands: int, answers: int) -> None:
        self.process, self.commands, self.answers = process, commands, answers
        self.number, self.buffer, self.session = 0, b"", ""
        self.complaints: list[str] = []
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.send(f"{domain}.enable")

    def send(self, method: str, **params: Any) -> Any:
        """Run a command of the protocol and return its result."""
        self.number += 1
        message: dict[str, Any] = {"id": self.number, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.commands, json.dumps(message).encode() + b"\0")
        end = monotonic() + PATIENCE
        while True:
            answer = self._next(end)
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']['message']}")
                return answer["result"]
            self._note(answer)

    def _next(self, end: float) -> Any:
        """Return the next message of the browser."""
        while b"\0" not in self.buffer:
            if not select.select([self.answers], [], [], max(end - monotonic(), 0))[0]:
                raise TimeoutError(f"the browser did not answer within {PATIENCE:g} seconds")
            data = os.read(self.answers, 1 << 20)
            if not data:
                raise RuntimeError("the browser has ended")
            self.buffer += data
        text, _, self.buffer = self.buffer.partition(b"\0")
        return json.loads(text)

    def _note(self, event: Any) -> None:
        """Keep what an event complains of: the console, uncaught errors, and requests that leave the page."""
        params = event.get("params", {})
        match event.get("method"):
            case "Runtime.consoleAPICalled":
                self.complaints.append(f"{params['type']}: {[arg.get('value') for arg in params['args']]}")
            case "Runtime.exceptionThrown":
                details = params["exceptionDetails"]
                self.complaints.append(details.get("exception", {}).get("description", details["text"]))
            case "Log.entryAdded":
                self.complaints.append(f"{params['entry']['level']}: {params['entry']['text']}")
            case "Network.requestWillBeSent":
                url = params["request"]["url"]
                if url.startswith(("http:", "https:", "ws:", "wss:")):
                    self.complaints.append(f"request: {url}")

    def open(self, path: Path, ready: str = "document.readyState === 'complete'", **media: str) -> None:
        """Open a file from the disk and wait until the expression `ready` is true; `media` such as dark=... is emulated."""
        features = [{"name": name.replace("_", "-"), "value": value} for name, value in media.items()]
        self.send("Emulation.setEmulatedMedia", features=features)
        self.send("Page.navigate", url=path.resolve().as_uri())
        self.wait(ready)

    def wait(self, condition: str) -> None:
        """Wait until an expression is true."""
        end = monotonic() + PATIENCE
        while not self.value(f"Boolean({condition})"):
            if monotonic() > end:
                raise TimeoutError(f"not within {PATIENCE:g} seconds: {condition}; the page says {self.complaints}")

    def value(self, expression: str) -> Any:
        """Return the value of a JavaScript expression; promises are awaited."""
        result = self.send("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in result:
            raise RuntimeError(result["exceptionDetails"].get("exception", {}).get("description", "error in the page"))
        return result["result"].get("value")

    def resize(self, width: int, height: int = 900, mobile: bool = False) -> None:
        """Give the page a size in CSS pixels."""
        self.send(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1 + mobile, mobile=mobile
        )

    def press(self, key: str, code: int) -> None:
        """Press and release a key."""
        text = {"text": key} if len(key) == 1 else {}
        for kind in ("keyDown", "keyUp"):
            more = text if kind == "keyDown" else {}
            self.send("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code, **more)

    def mouse(self, kind: str, x: float, y: float, pressed: bool = False) -> None:
        """Send mouseMoved, mousePressed or mouseReleased at a place of the window; `pressed` while the button is down."""
        button = "none" if kind == "mouseMoved" and not pressed else "left"
        self.send("Input.dispatchMouseEvent", type=kind, x=x, y=y, button=button, buttons=int(pressed), clickCount=1)

    def picture(self, path: Path, whole: bool = True) -> None:
        """Write a picture of the whole page, or of what the window shows."""
        data = self.send("Page.captureScreenshot", format="png", captureBeyondViewport=whole)["data"]
        path.write_bytes(base64.b64decode(data))


@contextmanager
def browser(profile: Path) -> Iterator[Page]:
    """Start Chromium with a profile of its own for the time of a `with` block."""
    to_browser, from_browser = os.pipe(), os.pipe()
    command = ["chromium", *FLAGS, *QUIET, "--remote-debugging-pipe", f"--user-data-dir={profile}"]
    # the shell gives the pipes the numbers that Chromium expects
    shell = f'exec 3<&{to_browser[0]} 4>&{from_browser[1]}; exec "$@"'
    process = subprocess.Popen(
        ["bash", "-c", shell, "bash", *command],
        pass_fds=(to_browser[0], from_browser[1]),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    os.close(to_browser[0])
    os.close(from_browser[1])
    try:
        yield Page(process, to_browser[1], from_browser[0])
    finally:
        os.close(to_browser[1])  # Chromium ends when nobody can command it
        os.close(from_browser[0])
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def main(page: str, output: str) -> None:
    """Write a picture of the upper part of a page."""
    with tempfile.TemporaryDirectory() as profile, browser(Path(profile)) as tab:
        tab.resize(1000, 1335)
        tab.open(Path(page), "document.body?.dataset.ready")
        tab.picture(Path(output), whole=False)


if __name__ == "__main__":
    main(*sys.argv[1:])
