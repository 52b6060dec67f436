"""How a command runs: `--config`, its settings, and errors as sentences with an exit code."""

import asyncio
import functools
import getpass
import sys
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, Concatenate, Final, ParamSpec

import click

from adapters.plugins.yaml_source import ManifestInvalid
from bot.actions.catalog import CatalogError
from bot.app.stores import open_redactor
from bot.cli.exit_codes import FAILED, USAGE
from bot.engine.config import SecondProcess
from bot.ports.failures import StorageUnavailable
from bot.settings.model import Settings
from bot.settings.reading import ConfigurationError, load
from bot.slack.ingress.access import StartupError
from bot.store import schema
from bot.store.restore_guard import CopyInDoubt
from bot.telemetry import logs

Options = ParamSpec("Options")
Work = Callable[Concatenate[Settings, Options], Coroutine[Any, Any, int]]

DEFAULT_CONFIG: Final = Path("kortex.toml")
_MENDABLE: Final = (
    ConfigurationError,
    StartupError,
    SecondProcess,
    CatalogError,
    ManifestInvalid,
    schema.SchemaUnserved,
    CopyInDoubt,
)

config_option = click.option(
    "--config",
    type=click.Path(path_type=Path),
    default=DEFAULT_CONFIG,
    metavar="PATH",
    help="The configuration (default: ./kortex.toml).",
)


def configured(work: Work[Options]) -> Callable[..., int]:
    """The callback of a command that takes `--config` and runs `work` with the settings of that file."""

    @config_option
    @functools.wraps(work)
    def run(config: Path, *args: Options.args, **options: Options.kwargs) -> int:
        return guarded(lambda: work(loaded(config), *args, **options))

    return run


def guarded(command: Callable[[], Coroutine[Any, Any, int]]) -> int:
    """Run a command; what an operator can mend is a sentence and exit 2, never a traceback."""
    logs.configure(None)  # until the settings say what to redact, event names, on standard error
    return mendable(lambda: asyncio.run(command()))


def mendable(command: Callable[[], int]) -> int:
    """The same for a command without an event loop."""
    try:
        return command()
    except (*_MENDABLE, StorageUnavailable, ExceptionGroup) as error:
        cause = _only(error)
        if isinstance(cause, StorageUnavailable):
            complain(f"the database is not available: {cause}. Nothing was started.")
            return FAILED
        if isinstance(cause, BrokenPipeError):
            raise cause from None
        if isinstance(cause, _MENDABLE):
            complain(str(cause))
            return USAGE
        raise


def _only(error: BaseException) -> BaseException:
    """The one error inside the task groups that it passed through."""
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return error


def complain(text: str) -> None:
    print(f"kortex: {text}", file=sys.stderr, flush=True)


def read(config: Path) -> Settings:
    """The settings of that file, with logging set up to redact by them."""
    settings = load(config)
    logs.configure(open_redactor(settings))
    return settings


def loaded(config: Path) -> Settings:
    """The same, with a line for each variable that is not set and resembles one that is."""
    settings = read(config)
    for each in settings.unset:
        if each.near:
            complain(f"{config}: {each.key}: {each.as_words()}")
    return settings


def operator() -> str:
    """The actor of a command in the audit log."""
    return f"cli:{getpass.getuser()}"
