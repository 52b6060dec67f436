"""`kortex demo`: a whole Kortex on this machine. The workspace is local, everything else is real."""

import secrets
import tempfile
from contextlib import AsyncExitStack, suppress
from pathlib import Path

from bot.commands import demo_state, verbs
from bot.commands.ending import OK
from bot.demo.setup import demo_control_plane, demo_incidents, demo_settings, local, plane_values
from bot.telemetry import logs
from bot.upkeep.attention import Attention, StoppedEarly
from bot.upkeep.signals import Signals
from bot.wiring.stores import open_redactor


def demo(port: int | None, host: str | None, signals: Signals) -> int:
    """Serve the demo until stopped. Its data stays, in a private folder, until the next demo starts."""
    return verbs.guarded(lambda: _demo(port, host, signals))


def demo_ask(question: str, channel: str, *, as_json: bool) -> int:
    """One question against a recorded incident, headless."""

    async def work() -> int:
        with tempfile.TemporaryDirectory(prefix="kortex-") as folder:
            token, read_token = secrets.token_urlsafe(24), secrets.token_urlsafe(24)
            async with local(demo_control_plane(token, read_token, demo_incidents())) as plane:
                settings = demo_settings(Path(folder), plane_values(plane, token, read_token))
                logs.configure(open_redactor(settings), level="ERROR")
                return await verbs.ask_with(settings, question, channel, as_json=as_json)

    return verbs.guarded(work)


async def _demo(port: int | None, host: str | None, signals: Signals) -> int:
    # Imported when it is wanted: the page needs the engine and the workspace, a question neither.
    from bot.demo.alert import SCRIPT
    from bot.demo.running import LOOPBACK, USUAL_PORT, demo_running

    attention = Attention(signals)
    with attention.paid(), suppress(StoppedEarly):
        async with AsyncExitStack() as stack:
            folder = stack.enter_context(demo_state.kept())
            print("Kortex is starting ...", flush=True)
            with attention.starting():
                url = await stack.enter_async_context(demo_running(folder, port, host or LOOPBACK))
            if port is None and not url.endswith(f":{USUAL_PORT}"):
                print(
                    f"Port {USUAL_PORT} is in use, perhaps by another demo, so this one has a free "
                    "port. `kortex demo --port N` chooses one."
                )
            print(
                f'\n  Open {url}\n\n  Ask there: "@kortex why is checkout slow?"'
                f"   Stop with Ctrl-C.\n  Or let its alert ask: sh {folder / SCRIPT}\n",
                flush=True,
            )
            await attention.stop.wait()
            print("stopping ...", flush=True)
    return OK
