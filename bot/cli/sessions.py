"""Find the session that a command names, and the database to read: `--config` or `--demo`."""

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Final

import click

from bot.cli import demo_state
from bot.cli.invocation import Options, Work, config_option, guarded, loaded
from bot.domain.ids import SessionId
from bot.slack.text.links import thread_of
from bot.store.database import Database
from bot.store.dossiers import Dossiers

FORMS: Final = (
    "its id (session:TEAM:CHANNEL:THREAD), its name (incident-checkout: the newest of it), the link of "
    "a message in its thread, or the id that kortex chat and the page show"
)


async def find_session(database: Database, wanted: str) -> SessionId | None:
    """The session of an id, a name or a link; None for anything else. Raises StorageUnavailable."""
    dossiers = Dossiers(database)
    if thread := thread_of(wanted):
        return await dossiers.find_at(*thread)
    return await dossiers.find(wanted) or await dossiers.find_chat(wanted)


def configured_or_demo(work: Work[Options]) -> Callable[..., int]:
    """The callback of a command that takes `--config`, or `--demo` for a copy of the newest demo.

    Of its own options, a `session` may be left out with `--demo` only, and `post` is not for a demo.
    """

    @config_option
    @click.option(
        "--demo",
        is_flag=True,
        help="Read a copy of the running or last `kortex demo`. Its data stays in "
        "$XDG_STATE_HOME/kortex/demo (else ~/.local/state) until the next demo starts.",
    )
    @functools.wraps(work)
    def run(config: Path, demo: bool, *args: Options.args, **options: Options.kwargs) -> int:
        ctx = click.get_current_context()
        if not demo and options.get("session", "") is None:
            raise click.UsageError("Missing argument 'SESSION'.", ctx)
        if demo and options.get("post"):
            raise click.UsageError(
                "--post posts in a workspace and cannot be combined with --demo.", ctx
            )

        def on(found: Path) -> int:
            return guarded(lambda: work(loaded(found), *args, **options))

        return demo_state.on_demo(on) if demo else on(config)

    return run
