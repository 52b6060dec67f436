"""Asks one recorded case through the product's own path, in this process or in one of its own."""

import asyncio
import shutil
import tempfile
import time
import uuid
from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, fields, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from pydantic import JsonValue

from adapters.observe.conventions import SHIPPED, Conventions
from adapters.observe.cursor import UnsealedCodec
from adapters.observe.loki import LokiLogs
from adapters.observe.prometheus import PrometheusMetrics
from adapters.recorded.packs.archive import TRUTH_FILE, BadPack, CaseFiles
from adapters.recorded.packs.plain_rules import PlainAnswer, plain_answer
from adapters.recorded.packs.recording import Recording, read_recording
from adapters.recorded.packs.schema import Case, document_of
from adapters.recorded.packs.server_import import MARK, load_logs, load_metrics, product_label
from adapters.recorded.packs.variants import Variant, varied
from adapters.recorded.player.backends import backends_of
from bot.app.backend_kinds import conventions_of
from bot.app.backend_selection import Observed, RecordedWorld
from bot.app.http_access import backend_client
from bot.app.stores import open_redactor
from bot.cli.ask import answer_here
from bot.cli.eval.score import PossibleTruth, Result, Truth
from bot.settings.access import RouteSettings
from bot.settings.database import DatabaseSettings
from bot.settings.model import ChannelSettings, Settings
from bot.telemetry import logs

_CHANNEL = "incident-eval"


@dataclass(frozen=True, slots=True)
class AskedCase:
    """A case, its answer, and the answer of plain rules. `notices` say why a turn failed."""

    case: Case
    truth: Truth
    result: Result
    plain: PlainAnswer
    notices: str


@dataclass(frozen=True, slots=True)
class CaseAsker:
    """How cases are asked. With a URL, they are loaded into that server and asked through it."""

    settings: Settings
    template: Path  # an empty database, copied for each case
    metrics_url: str = ""
    logs_url: str = ""

    async def ask(self, found: CaseFiles, variant: Variant | None = None) -> AskedCase:
        """Ask it. Raises BadPack, NotLoaded, ConfigurationError."""
        changed = found if variant is None else varied(found, variant)
        truth = truth_of(changed)
        if truth is None:
            raise BadPack(f"{found.place}: has no valid truth")
        shown = {name: content for name, content in changed.files.items() if name != TRUTH_FILE}
        recording = read_recording(CaseFiles(found.place, shown))
        with tempfile.TemporaryDirectory(dir=self.template.parent) as own:
            database = Path(own) / "case.db"
            shutil.copyfile(self.template, database)
            async with AsyncExitStack() as stack:
                world = await self._world(recording, stack)
                result, notices = await self._result(recording.case, world, database)
        return AskedCase(recording.case, truth, result, plain_answer(recording), notices)

    def ask_here(self, found: CaseFiles, variant: Variant | None = None) -> AskedCase:
        """The same for a process of its own."""
        logs.configure(open_redactor(self.settings), level="ERROR")
        return asyncio.run(self.ask(found, variant))

    async def _world(self, recording: Recording, stack: AsyncExitStack) -> RecordedWorld:
        own = conventions_of(self.settings.observe.metrics)
        world = world_of(recording, own)
        if self.metrics_url:
            world = await with_metrics_at(self.metrics_url, recording, world, own, stack)
        if self.logs_url:
            world = await with_logs_at(self.logs_url, recording, world, stack)
        return world

    async def _result(self, case: Case, world: RecordedWorld, database: Path) -> tuple[Result, str]:
        here = self.settings.model_copy(
            update={
                "database": DatabaseSettings.model_validate({"url": database_url(database)}),
                "channels": (ChannelSettings(match="*", products=case.products),),
            }
        )
        calls: list[str] = []
        counted = replace(world, observed=_counted(world.observed, calls))
        began = time.monotonic()
        answer = await answer_here(here, case.asked, _CHANNEL, lambda _: None, counted)
        result = _result(case.id, answer, time.monotonic() - began, len(calls))
        return result, str(answer["notices"])


class _Counted:
    def __init__(self, capability: object, calls: list[str]) -> None:
        self._capability = capability
        self._calls = calls

    def __getattr__(self, name: str) -> object:
        value = getattr(self._capability, name)
        if not callable(value):
            return value

        def called(*arguments: object, **named: object) -> object:
            self._calls.append(name)
            result: object = value(*arguments, **named)
            return result

        return called


def _counted(observed: Observed, calls: list[str]) -> Observed:
    present = {each.name: getattr(observed, each.name) for each in fields(observed)}
    proxies: dict[str, Any] = {
        name: _Counted(one, calls) for name, one in present.items() if one is not None
    }
    return replace(observed, **proxies)


def _result(
    case_id: str, answer: Mapping[str, JsonValue], seconds: float, backend_calls: int
) -> Result:
    suspects, calls, usage = answer["suspects"], answer["tool_calls"], answer["usage"]
    cost = answer["cost_usd_micros"]
    assert isinstance(suspects, list)  # noqa: S101 - of our own JSON
    assert isinstance(calls, list)  # noqa: S101
    assert isinstance(usage, dict)  # noqa: S101
    tokens = [usage.get("input_tokens"), usage.get("output_tokens")]
    return Result(
        id=case_id,
        verdict=str(answer["verdict"]),
        suspects=[str(one["product"]) for one in suspects if isinstance(one, dict)],
        seconds=seconds,
        tool_calls=len(calls),
        answer=str(answer["answer"]),
        backend_calls=backend_calls,
        tokens=sum(count for count in tokens if isinstance(count, int)),
        cost_usd_micros=cost if isinstance(cost, int) else 0,
        failed=answer["end"] == "failed",
    )


def truth_of(found: CaseFiles) -> Truth | None:
    """The truth of a case; None where it cannot be counted. Raises BadPack."""
    content = found.files.get(TRUTH_FILE)
    if content is None:
        return None
    place = f"{found.place}/{TRUTH_FILE}"
    if document_of(content, PossibleTruth, place).healthy is None:
        return None
    return document_of(content, Truth, place)


def database_url(database: Path) -> str:
    return f"sqlite:///{database}"


@dataclass(frozen=True, slots=True)
class StoppedClock:
    at: datetime

    def now(self) -> datetime:
        return self.at


def world_of(recording: Recording, conventions: Conventions = SHIPPED) -> RecordedWorld:
    """What the case has; history and a platform are in no case."""
    clock = StoppedClock(recording.case.now)
    seen = backends_of(recording, clock, UnsealedCodec(), conventions)
    observed = Observed(
        logs=seen.logs,
        metrics=seen.metrics,
        traces=seen.traces,
        deploys=seen.deploys,
        kubernetes=seen.kubernetes,
    )
    return RecordedWorld(clock, observed)


async def with_metrics_at(
    url: str,
    recording: Recording,
    world: RecordedWorld,
    conventions: Conventions,
    stack: AsyncExitStack,
) -> RecordedWorld:
    """The case's metrics in that VictoriaMetrics. Raises ConfigurationError, NotLoaded."""
    if recording.series is None:
        return world
    mark = uuid.uuid4().hex
    client = backend_client(url, RouteSettings(), "--metrics-url", stack)
    client.params = client.params.set("extra_filters[]", f'{{{MARK}="{mark}"}}')
    await load_metrics(client, recording.series, mark)
    metrics = PrometheusMetrics(client, world.clock, conventions=conventions)
    return replace(world, observed=replace(world.observed, metrics=metrics))


async def with_logs_at(
    url: str, recording: Recording, world: RecordedWorld, stack: AsyncExitStack
) -> RecordedWorld:
    """The case's log lines in that Loki. Raises ConfigurationError, NotLoaded."""
    if recording.lines is None:
        return world
    mark = uuid.uuid4().hex
    client = backend_client(url, RouteSettings(), "--logs-url", stack)
    await load_logs(client, recording.lines, mark)
    label = product_label(recording.lines, recording.case.products)
    selector = f'{{{label}="$product", {MARK}="{mark}"}}'
    logs = LokiLogs(client, UnsealedCodec(), selector)
    return replace(world, observed=replace(world.observed, logs=logs))
