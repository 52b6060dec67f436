"""A headless Chromium over its DevTools protocol: open a page, wait for what it shows, take its picture.

https://chromedevtools.github.io/devtools-protocol/
"""

import asyncio
import base64
import json
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp

NAMES = ("chromium", "chromium-browser", "google-chrome")
FLAGS = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--hide-scrollbars",
    "--disable-background-networking", "--remote-debugging-port=0", "--force-color-profile=srgb",
)  # fmt: skip
_DRAWN = "new Promise((done) => setTimeout(() => requestAnimationFrame(() => done(true)), 300))"
START_TIMEOUT_S = 30.0
WAIT_S = 30.0
LOOK_AGAIN_S = 0.1


def installed() -> str | None:
    """The browser's path, if this machine has one."""
    return next((path for name in NAMES if (path := shutil.which(name))), None)


@dataclass(slots=True)
class Tab:
    """One page."""

    socket: aiohttp.ClientWebSocketResponse
    calls: int = 0

    async def call(self, method: str, **params: object) -> dict[str, Any]:
        """One command and its answer; events between them are passed over."""
        self.calls += 1
        await self.socket.send_json({"id": self.calls, "method": method, "params": params})
        async with asyncio.timeout(WAIT_S):
            while True:
                said = await self.socket.receive_json()
                if said.get("id") == self.calls:
                    break
        if "error" in said:
            raise RuntimeError(f"{method}: {said['error']['message']}")
        answer: dict[str, Any] = said["result"]
        return answer

    async def look(
        self, width: int, height: int, *, dark: bool = False, scale: float = 1.0
    ) -> None:
        """The window's size and colours; times are shown in UTC."""
        await self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=scale,
            mobile=False,
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        motion = {"name": "prefers-reduced-motion", "value": "reduce"}
        await self.call("Emulation.setEmulatedMedia", features=[scheme, motion])
        await self.call("Emulation.setTimezoneOverride", timezoneId="UTC")
        await self.call("Emulation.setLocaleOverride", locale="en_GB")
        await self.run(_DRAWN)

    async def open(self, url: str) -> None:
        """Go there."""
        await self.call("Page.navigate", url=url)

    async def run(self, script: str) -> Any:
        """The value of an expression, of its promise if it is one."""
        done = await self.call(
            "Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True
        )
        if "exceptionDetails" in done:
            raise RuntimeError(f"{script}: {done['exceptionDetails']}")
        return done["result"].get("value")

    async def until(self, script: str) -> Any:
        """The expression's value once it is true."""
        async with asyncio.timeout(WAIT_S):
            while not (value := await self.run(script)):  # noqa: ASYNC110 - a page tells no one
                await asyncio.sleep(LOOK_AGAIN_S)
        return value

    async def picture(self, to: Path) -> None:
        """What the window shows, as PNG."""
        await self.run("document.fonts.ready.then(() => true)")
        shot = await self.call("Page.captureScreenshot", format="png")
        await asyncio.to_thread(to.write_bytes, base64.b64decode(shot["data"]))


@asynccontextmanager
async def chromium(binary: str, profile: Path) -> AsyncIterator[Tab]:
    """A browser with one empty tab, its data in the folder given."""
    process = await asyncio.create_subprocess_exec(
        binary, *FLAGS, f"--user-data-dir={profile}", "about:blank", stderr=asyncio.subprocess.PIPE
    )
    try:
        async with aiohttp.ClientSession() as session:
            origin = await asyncio.wait_for(_listening(process), START_TIMEOUT_S)
            async with session.get(f"{origin}/json/list") as answer:
                tabs = json.loads(await answer.text())
            page = next(tab for tab in tabs if tab["type"] == "page")
            url = page["webSocketDebuggerUrl"]
            async with session.ws_connect(url, max_msg_size=0) as socket:
                yield Tab(socket)
    finally:
        process.terminate()
        await process.wait()


async def _listening(process: asyncio.subprocess.Process) -> str:
    """Where it may be asked, as it says on standard error."""
    assert process.stderr is not None
    async for line in process.stderr:
        words = line.decode(errors="replace").strip()
        if words.startswith("DevTools listening on ws://"):
            return "http://" + words.removeprefix("DevTools listening on ws://").split("/", 1)[0]
    raise RuntimeError("the browser ended before it listened")
