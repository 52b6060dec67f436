"""The work of `kortex demo`: a whole Kortex on this machine. The workspace is local, everything else is real."""

import secrets
import tempfile
from collections.abc import Iterable
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from bot.app.stores import open_redactor
from bot.cli import demo_state
from bot.cli.ask import ask_with
from bot.cli.exit_codes import OK
from bot.cli.invocation import guarded
from bot.demo.setup import demo_control_plane, demo_incidents, demo_settings, local, plane_values
from bot.telemetry import logs
from bot.upkeep.attention import Attention, StoppedEarly
from bot.upkeep.signals import Signals

if TYPE_CHECKING:
    from bot.demo.workspace.state import Workspace


def demo_page(port: int | None, host: str | None, signals: Signals) -> int:
    """Serve the demo until stopped. Its data stays, in a private folder, until the next demo starts."""
    return guarded(lambda: _demo(port, host, signals))


def demo_workspace(port: int | None, host: str | None, signals: Signals) -> int:
    """Serve the local workspace alone, for a `kortex run` with a configuration of one's own."""
    return guarded(lambda: _workspace(port, host, signals))


def demo_ask(question: str, channel: str, *, as_json: bool) -> int:

    async def work() -> int:
        with tempfile.TemporaryDirectory(prefix="kortex-") as folder:
            token, read_token = secrets.token_urlsafe(24), secrets.token_urlsafe(24)
            async with local(demo_control_plane(token, read_token, demo_incidents())) as plane:
                settings = demo_settings(Path(folder), plane_values(plane, token, read_token))
                logs.configure(open_redactor(settings), level="ERROR")
                return await ask_with(settings, question, channel, as_json=as_json)

    return guarded(work)


async def _demo(port: int | None, host: str | None, signals: Signals) -> int:
    # Imported when it is wanted: the page needs the engine and the workspace, a question neither.
    from bot.demo.running import LOOPBACK, USUAL_PORT, demo_running
    from bot.demo.setup import SCRIPT

    attention = Attention(signals)
    with attention.paid(), suppress(StoppedEarly):
        async with AsyncExitStack() as stack:
            folder = stack.enter_context(demo_state.kept())
            print("Kortex is starting ...", flush=True)
            with attention.starting():
                url = await stack.enter_async_context(demo_running(folder, port, host or LOOPBACK))
            _tell_port(port, url, USUAL_PORT)
            print(
                f'\n  Open {url}\n\n  Ask there: "@kortex why is checkout slow?"'
                f"   Stop with Ctrl-C.\n  Or fire an alert: sh {folder / SCRIPT}\n",
                flush=True,
            )
            await attention.stop.wait()
            print("stopping ...", flush=True)
    return OK


def _tell_port(wanted: int | None, url: str, usual: int) -> None:
    if wanted is None and not url.endswith(f":{usual}"):
        print(
            f"Port {usual} is in use, perhaps by another demo. This demo uses a free port; "
            "`kortex demo --port N` chooses one."
        )


_ALONE = """
  A local Slack runs at {url}. Ctrl-C stops it and deletes its messages.
  Channel IDs: {channels}
  No bot is connected yet. Run this in another terminal:

  export SLACK_BOT_TOKEN={bot}
  export SLACK_APP_TOKEN={app}
  kortex init --slack socket --confirm @responders --api-base-url {api}
  set -a; . ./kortex.env; set +a
  kortex check && kortex run
"""


def _open_to_bot(workspace: "Workspace") -> Iterable[tuple[str, str]]:
    bot = workspace.app.bot_user_id
    for each in workspace.roster.channels.values():
        if each.name and bot in each.members and not each.is_archived:
            yield each.id, each.name


async def _workspace(port: int | None, host: str | None, signals: Signals) -> int:
    from bot.demo.running import LOOPBACK, USUAL_PORT, page_serving
    from bot.demo.workspace.app import api_base_url
    from bot.demo.workspace.state import Workspace

    attention = Attention(signals)
    workspace = Workspace()
    with attention.paid(), suppress(StoppedEarly):
        async with AsyncExitStack() as stack:
            with attention.starting():
                url = await stack.enter_async_context(
                    page_serving(workspace, host or LOOPBACK, port)
                )
            _tell_port(port, url, USUAL_PORT)
            api = api_base_url(int(url.rpartition(":")[2]))
            words = _ALONE.format(
                url=url,
                channels=", ".join(f"#{name} {id_}" for id_, name in _open_to_bot(workspace)),
                bot=workspace.bot_token,
                app=workspace.app_token,
                api=api,
            )
            print(words, flush=True)
            await attention.stop.wait()
            print("stopping ...", flush=True)
    return OK
