"""What the commands of `kortex` do. Parsing of arguments lives in `bot.cli`.

What only one of them needs it imports itself: a question starts without the service.
"""

import asyncio
import gc
import sys
from collections.abc import Callable, Coroutine
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson
from pydantic import JsonValue

from adapters.llm.triage.provider import NAME as TRIAGE
from adapters.plugins.yaml_source import ManifestInvalid
from bot.actions.catalog import CatalogError
from bot.commands.ending import FAILED, OK, USAGE, announce
from bot.commands.zone_option import zone_option
from bot.engine.database_lock import SecondProcess
from bot.ports.failures import StorageUnavailable
from bot.reports.finding import Finding
from bot.settings.model import Settings
from bot.settings.reading import ConfigurationError, load
from bot.slack.connection.access import StartupError
from bot.store import schema
from bot.store.origin import CopyInDoubt
from bot.telemetry import logs
from bot.upkeep.attention import Attention, StoppedEarly
from bot.upkeep.signals import Signals
from bot.wiring.stores import open_redactor

if TYPE_CHECKING:
    from bot.service.lifecycle import Service

STOPPING = "stopping: nothing new is taken, running answers end"
_NOBODY_DECIDES = "Nobody can confirm it here, so no card was raised: ask in a channel or with `kortex chat` to get one."
_ASKED = "(it is asked where [http] api_token is set)"
_TO_MEND = ("FAILED", "WARNING")
_MENDABLE = (
    ConfigurationError,
    StartupError,
    SecondProcess,
    CatalogError,
    ManifestInvalid,
    schema.SchemaUnserved,
    CopyInDoubt,
)


def run(config: Path, signals: Signals) -> int:
    """`kortex run`: until SIGTERM or Ctrl-C, then drain."""
    return guarded(lambda: _serve(config, signals))


def check(config: Path, *, as_json: bool, offline: bool = False) -> int:
    """`kortex check`."""
    from bot.commands.patience import process_age

    age_s = process_age()
    return guarded(lambda: _check(loaded(config), age_s, as_json=as_json, offline=offline))


def check_plugin(config: Path, file: Path, arguments: str) -> int:
    """`kortex check --plugin FILE`, with or without a configuration beside it."""
    from bot.commands.plugin_check import try_plugin

    async def work(settings: Settings) -> int:
        name, outcome = await try_plugin(settings, file, arguments)
        print(f"{file}: valid, as {name}")
        print(f"{'ok' if outcome.record.ok else 'FAILED'}: {outcome.content}")
        return OK if outcome.record.ok else FAILED

    return guarded(lambda: work(loaded(config) if config.exists() else Settings()))


def migrate(config: Path) -> int:
    """`kortex migrate`."""

    async def work(settings: Settings) -> int:
        at = await schema.migrate(settings.database.url.get_secret_value())
        if at == schema.head():
            print(f"the schema is at {at}")
        else:
            print(
                f"the schema is at {at}, which a newer version made; this version works with it. "
                "There is nothing to migrate."
            )
        return OK

    return guarded(lambda: work(loaded(config)))


def ask(config: Path, question: str, session: str, time_zone: str, *, as_json: bool) -> int:
    """`kortex ask`."""

    async def work() -> int:
        zone = zone_option(time_zone)
        return await ask_with(loaded(config), question, session, zone, as_json=as_json)

    return guarded(work)


def providers(config: Path, *, as_json: bool) -> int:
    """`kortex providers`."""
    from bot.commands.live import providers_report_of

    async def work(settings: Settings) -> int:
        report = await providers_report_of(settings)
        if as_json:
            rows = [status.as_json() for status in report.providers]
            told = {"live": report.live, "providers": rows}
            sys.stdout.write(orjson.dumps(told, option=orjson.OPT_INDENT_2).decode() + "\n")
            return OK
        width = max(len(status.name) for status in report.providers)
        for status in report.providers:
            mark = "ok " if status.available else "-- "
            print(f"{mark} {status.name:<{width}}  {status.as_words(live=report.live)}")
        if not report.live:
            print(f"No running service answered {_ASKED}, so answers and failures are not known.")
        return OK

    return guarded(lambda: work(loaded(config)))


def tools(config: Path, *, as_json: bool) -> int:
    """`kortex tools`."""
    from bot.commands.live import tools_report_of

    async def work(settings: Settings) -> int:
        report, live = await tools_report_of(settings)
        if as_json:
            told = {"live": live, "report": report.as_json()}
            sys.stdout.write(orjson.dumps(told, option=orjson.OPT_INDENT_2).decode() + "\n")
            return OK
        width = max(len(tool.id) for tool in report.tools)
        for tool in report.tools:
            print(
                f"{'-- ' if tool.reason else 'ok '} {tool.id:<{width}}  {tool.as_words(live=live)}"
            )
        for note in report.notes:
            print(f"!!  {note}")
        for toolset in report.toolsets:
            print(f"{toolset.name}: {toolset.as_words()}")
        if not live:
            print(
                f"No running service answered {_ASKED}, so calls and backends' state are not known."
            )
        return OK

    return guarded(lambda: work(loaded(config)))


async def ask_with(
    settings: Settings, question: str, channel: str, zone: str = "UTC", *, as_json: bool
) -> int:
    """Ask headless and print; exit 1 without a conclusion, or without the model that should have
    answered.
    """
    from bot.commands.console import answer_here

    tell: Callable[[str], None] = (lambda _: None) if as_json else print
    answer = await answer_here(settings, question, channel, tell, zone=zone)
    if as_json:
        sys.stdout.write(orjson.dumps(answer, option=orjson.OPT_INDENT_2).decode() + "\n")
    else:
        print(f"\n{answer['answer']}\n")
        _print_lines("notices", answer["notices"])
        if answer["proposal"]:
            print(f"would propose: {orjson.dumps(answer['proposal']).decode()}")
            print(_NOBODY_DECIDES)
    if settings.llm.default_provider != TRIAGE and answer["provider"] in ("", TRIAGE):
        print(
            f"kortex: no model answered ({settings.llm.default_provider} is the default_provider); "
            "`kortex check` says what is wrong with each",
            file=sys.stderr,
        )
        return FAILED
    return FAILED if answer["end"] in ("failed", "budget", "depth_exceeded") else OK


def _print_lines(label: str, lines: JsonValue) -> None:
    for line in lines if isinstance(lines, list) else []:
        print(f"{label.rstrip('s')}: {line}")


def guarded(command: Callable[[], Coroutine[Any, Any, int]]) -> int:
    """Run a command; what an operator can mend is a sentence and exit 2, never a traceback."""
    logs.configure(None)  # until the settings say what to redact, event names, on standard error
    return mendable(lambda: asyncio.run(command()))


def mendable(command: Callable[[], int]) -> int:
    """The same for what runs without a loop."""
    try:
        return command()
    except (*_MENDABLE, StorageUnavailable, ExceptionGroup) as error:
        cause = _only(error)
        if isinstance(cause, StorageUnavailable):
            print(
                f"kortex: the database cannot be used: {cause}. Nothing was started.",
                file=sys.stderr,
            )
            return FAILED
        if isinstance(cause, BrokenPipeError):
            raise cause from None
        if isinstance(cause, _MENDABLE):
            print(f"kortex: {cause}", file=sys.stderr)
            return USAGE
        raise


def _only(error: BaseException) -> BaseException:
    """What went wrong, out of the task groups it passed through."""
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return error


def read(config: Path) -> Settings:
    """The settings of that file, with logging set up to redact by them."""
    settings = load(config)
    logs.configure(open_redactor(settings))
    return settings


def loaded(config: Path) -> Settings:
    """The same, telling which variables are not set."""
    settings = read(config)
    for each in settings.unset:
        if each.near:
            print(f"kortex: {config}: {each.key}: {each.as_words()}", file=sys.stderr)
    return settings


async def _serve(config: Path, signals: Signals) -> int:
    from bot.service.lifecycle import serving

    settings = loaded(config)

    def ready(service: "Service") -> None:
        gc.freeze()  # what the start made stays until the end
        announce(
            f"kortex is serving; health at http://{settings.http.host}:{service.http_port}/readyz"
        )

    return await stay(serving(settings, read=lambda: load(config)), signals, ready)


async def stay(
    opening: "AbstractAsyncContextManager[Service]",
    signals: Signals,
    ready: Callable[["Service"], None],
    tell: Callable[[str], None] = announce,
) -> int:
    """Serve until a signal stops it, then drain; a stop during the start ends that."""
    attention = Attention(signals)
    with attention.paid():
        async with AsyncExitStack() as stack:
            try:
                with attention.starting():
                    service = await stack.enter_async_context(opening)
            except StoppedEarly:
                tell("stopped before it served; nothing was taken")
                return OK
            await stack.enter_async_context(service.reload.at_each(attention.reload))
            ready(service)
            await attention.stop.wait()
            tell(STOPPING)
    return OK


async def _check(
    settings: Settings, age_s: Callable[[], float], *, as_json: bool, offline: bool
) -> int:
    from bot.commands.health_check import examine
    from bot.commands.unwaited import UnwaitedThreads

    asyncio.get_running_loop().set_default_executor(UnwaitedThreads())
    found = sorted(
        await examine(settings, offline=offline, age_s=age_s),
        key=lambda finding: finding.rank,
    )
    if as_json:
        rows = [
            {
                "part": f.part,
                "ok": f.ok,
                "configured": f.configured,
                "warning": f.warning,
                "detail": f.detail,
                "mend": f.mend if f.mark in _TO_MEND else "",
            }
            for f in found
        ]
        sys.stdout.write(orjson.dumps(rows, option=orjson.OPT_INDENT_2).decode() + "\n")
    else:
        _print_table(found)
        if offline:
            print("Nothing was asked (--offline): only the configuration was read.")
    return FAILED if any(f.fails for f in found) else OK


def _print_table(found: list[Finding]) -> None:
    width = max((len(f.part) for f in found), default=0)
    for finding in found:
        first, *more = finding.detail.splitlines() or [""]
        if finding.mark in _TO_MEND:
            more.append(f"→ {finding.mend}")
        print(f"{finding.mark:<7} {finding.part:<{width}}  {first}")
        for line in more:
            print(f"{'':<7} {'':<{width}}  {line}")
