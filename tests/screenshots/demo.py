"""The pictures of the README, taken of a running demo: a question, its answer, the proposal's card."""

import tempfile
from pathlib import Path

from bot.demo.running import demo_running
from tests.screenshots.chromium import Tab

ASK = """(() => {
  const text = document.getElementById('composer-text');
  text.value = '@kortex why is checkout slow?';
  text.dispatchEvent(new Event('input', {bubbles: true}));
  document.getElementById('composer').requestSubmit();
  return true;
})()"""
# The answer is finished (it can be opened, not stopped) and its card is below it.
DONE = """['proposal:confirm', 'evidence:all'].every((start) =>
    document.querySelector(`#thread-messages [data-action^="${start}"]`)
  ) && !document.querySelector('#thread-messages [data-action="turn:stop"]')"""
AROUND = 170  # the bars above and below a thread, pixels
REST = "(document.activeElement?.blur(), true)"


def _scroll(selector: str, block: str) -> str:
    found = f"[...document.querySelectorAll(`#thread-messages {selector}`)].at(-1)"
    return f"({found}.scrollIntoView({{block: '{block}'}}), true)"


async def take_demo(tab: Tab, folder: Path) -> None:
    """Write `desktop.png`, `phone.png` and `dark.png`."""
    with tempfile.TemporaryDirectory(prefix="kortex-") as data:
        async with demo_running(Path(data), 0, pace_s=0.0) as origin:
            await tab.look(1280, 1000)
            await tab.open(origin)
            await tab.until("document.querySelector('#channels [aria-current]') && 1")
            await tab.run(ASK)
            await tab.until("document.querySelector('#messages .replies') && 1")
            await tab.run("(document.querySelector('#messages .replies').click(), true)")
            await tab.until(DONE)
            await tab.run(REST)
            await tab.look(1500, 1000)
            tall = await tab.run("document.getElementById('thread-messages').offsetHeight")
            await tab.look(1500, tall + AROUND, scale=0.75)
            await tab.picture(folder / "desktop.png")
            await tab.look(390, 844)
            await tab.run(_scroll(".card", "end"))
            await tab.look(390, 844)  # the list keeps its own place when its width changes
            await tab.run(_scroll(".card", "end"))
            await tab.picture(folder / "phone.png")
            await tab.look(1280, 900, dark=True)
            await tab.run(_scroll(".card", "end"))
            await tab.run("(document.querySelector(\"[data-action^='evidence']\").click(), true)")
            await tab.until("document.querySelector('dialog[open]') && 1")
            await tab.picture(folder / "dark.png")
