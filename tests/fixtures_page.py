"""The operator's page of a running bot, in Debian's Chromium, as people see and use it."""

import asyncio
import shutil
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
import pytest_asyncio
from axe_playwright_python.async_playwright import Axe  # type: ignore[import-untyped]
from playwright.async_api import Browser, ConsoleMessage, Page, async_playwright, expect

from tests.stage import Stage

BINARY = "chromium"
WAIT_MS = 20_000
FLAGS = (
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
    "--disable-background-networking", "--disable-component-update",
)  # fmt: skip
# What a browser says of an answer that refuses; the page says it too, and tests look at that.
_REFUSED = "Failed to load resource"
DESKTOP, PHONE = (1280, 900), (360, 740)
_SEVERE = ("serious", "critical")
expect.set_options(timeout=WAIT_MS)


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def browser() -> AsyncIterator[Browser]:
    """One for the tests of a module."""
    path = shutil.which(BINARY)
    if path is None:
        pytest.fail("Chromium is missing: apt-get install chromium (make test does it as root)")
    async with async_playwright() as driver:
        browser = await driver.chromium.launch(executable_path=path, args=list(FLAGS))
        yield browser
        await browser.close()


@dataclass
class Visitor:
    """One person before the page. `problems` is what the browser complained of."""

    page: Page
    origin: str
    problems: list[str] = field(default_factory=list)

    async def sign_in(self, token: str, view: str = "") -> None:
        """As people do, by the keyboard."""
        await self.page.goto(f"{self.origin}/{view}")
        await self.page.get_by_label("Token").fill(token)
        await self.page.keyboard.press("Enter")
        await expect(self.page.get_by_role("button", name="Sign out")).to_be_visible()

    async def ask(self, text: str) -> None:
        """In a new conversation."""
        await self.page.get_by_label("Channel").fill("incident-checkout")
        await self.page.get_by_label("Your question").fill(text)
        await self.page.keyboard.press("Enter")

    async def come_back(self) -> None:
        await self.page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")

    async def see(self, view: str) -> None:
        """Go to a view by its address."""
        await self.page.evaluate("(view) => { location.hash = view; }", view)

    async def faults(self) -> Sequence[str]:
        """The violations that axe finds, and the elements beyond the edge of the screen."""
        found = await Axe().run(self.page)
        severe = [
            f"{each['id']}: {[node['html'] for node in each['nodes']]}"
            for each in found.response["violations"]
            if each["impact"] in _SEVERE
        ]
        wide: list[int] = await self.page.evaluate(
            "[document.documentElement.scrollWidth, document.documentElement.clientWidth]"
        )
        return [*severe, *([f"scrolls sideways: {wide}"] if wide[0] > wide[1] else [])]


Visit = Callable[..., AbstractAsyncContextManager[Visitor]]


@pytest.fixture
def visit(browser: Browser, stage: Stage) -> Visit:
    """A new context, of the operator's page at that width; nothing may be wrong in its console."""

    @asynccontextmanager
    async def opened(size: tuple[int, int] = DESKTOP, **more: Any) -> AsyncIterator[Visitor]:
        width, height = size
        context = await browser.new_context(
            viewport={"width": width, "height": height}, reduced_motion="reduce", **more
        )
        context.set_default_timeout(WAIT_MS)
        page = await context.new_page()
        visitor = Visitor(page, f"http://127.0.0.1:{stage.service.http_port}")

        def told(message: ConsoleMessage) -> None:
            if message.type in ("error", "warning") and not message.text.startswith(_REFUSED):
                visitor.problems.append(message.text)

        page.on("console", told)
        page.on("pageerror", lambda error: visitor.problems.append(str(error)))
        page.on("dialog", lambda dialog: visitor.problems.append(dialog.message))
        try:
            yield visitor
            assert visitor.problems == []
        finally:
            async with asyncio.timeout(WAIT_MS / 1000):
                await context.close()

    return opened
