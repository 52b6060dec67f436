"""`kortex eval`: recorded incidents through the product's own path, and how often it was right.

Each case is asked as people would ask it: a fresh database, the clock at the moment of the question,
the case's own backends. The truth beside it is read here and shown to nobody.
"""

import shutil
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

import orjson
from pydantic import JsonValue

from adapters.recorded.packs.archive import BadPack
from adapters.recorded.packs.loading import NotLoaded
from adapters.recorded.packs.recording import Recording, read_recording
from adapters.recorded.packs.shapes import Case
from bot.commands import verbs
from bot.commands.console import answer_here
from bot.commands.eval_cases import judged_cases
from bot.commands.eval_score import Result, Tally, Truth, table
from bot.settings.model import (
    ChannelSettings,
    DatabaseSettings,
    Settings,
)
from bot.settings.reading import ConfigurationError, load
from bot.store import schema
from bot.telemetry import logs
from bot.wiring.loaded import with_logs_at, with_metrics_at
from bot.wiring.observed import World
from bot.wiring.packed import world_of
from bot.wiring.stores import open_redactor

_CHANNEL = "incident-eval"


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is asked, of whom. With a URL, cases are loaded into that server and asked through it."""

    packs: Sequence[Path]
    provider: str = ""
    limit: int | None = None
    as_json: bool = False
    metrics_url: str = ""
    logs_url: str = ""


@dataclass(slots=True)
class _Run:
    """What was asked so far, and what ended it early."""

    results: list[Result] = field(default_factory=list)
    tallies: dict[str, Tally] = field(default_factory=dict)
    stopped: str = ""

    def add(self, case: Case, truth: Truth, result: Result) -> None:
        self.results.append(result)
        for key in (case.set, f"{case.set}:{truth.suite}" if truth.suite else ""):
            if key:
                self.tallies.setdefault(key, Tally(key)).add(case.products, truth, result)


def evaluate(config: Path, wanted: Wanted) -> int:
    """Run and print. Exit 2 for a pack or a configuration that cannot be used."""

    async def work() -> int:
        settings = _settings(config, wanted.provider)
        logs.configure(open_redactor(settings), level="ERROR")
        with tempfile.TemporaryDirectory(prefix="kortex-eval-") as folder:
            run = await _run(settings, wanted, Path(folder))
        _print(run, as_json=wanted.as_json)
        if run.stopped:
            raise ConfigurationError(run.stopped)
        return verbs.OK

    return verbs.guarded(work)


def _settings(config: Path, provider: str) -> Settings:
    """The configured models and policy, none of the configured backends, channels and actions."""
    own = load(config) if config.exists() else Settings()
    llm = own.llm
    if provider:
        alone = {"default_provider": provider, "fallback_providers": (), "triage_fallback": False}
        llm = llm.model_copy(update=alone)
    return Settings(llm=llm, policy=own.policy, audit=own.audit)


def _print(run: _Run, *, as_json: bool) -> None:
    tallies = [run.tallies[key] for key in sorted(run.tallies)]
    if as_json:
        sets: list[JsonValue] = [tally.as_json() for tally in tallies]
        rows: list[JsonValue] = [result.as_json() for result in run.results]
        told = orjson.dumps({"sets": sets, "results": rows}, option=orjson.OPT_INDENT_2)
        sys.stdout.write(told.decode() + "\n")
    elif tallies:
        print("\n".join(table(tallies)))


async def _run(settings: Settings, wanted: Wanted, folder: Path) -> _Run:
    """A pack that cannot be read ends it; what was asked before counts."""
    template = folder / "template.db"
    await schema.migrate(_url(template))
    run = _Run()
    try:
        for judged in islice(judged_cases(wanted.packs, _tell), wanted.limit):
            recording = read_recording(judged.found)
            with tempfile.TemporaryDirectory(dir=folder) as own:
                database = Path(own) / "case.db"
                shutil.copyfile(template, database)
                async with AsyncExitStack() as stack:
                    world = await _world(recording, wanted, stack)
                    result = await _ask(settings, recording.case, world, database)
            run.add(recording.case, judged.truth, result)
            _progress(len(run.results), result)
    except (BadPack, NotLoaded) as error:
        run.stopped = f"{error}. {len(run.results)} cases were asked before it."
    return run


async def _world(recording: Recording, wanted: Wanted, stack: AsyncExitStack) -> World:
    """Raises ConfigurationError (no address), NotLoaded."""
    world = world_of(recording)
    if wanted.metrics_url:
        world = await with_metrics_at(wanted.metrics_url, recording, world, stack)
    if wanted.logs_url:
        world = await with_logs_at(wanted.logs_url, recording, world, stack)
    return world


async def _ask(settings: Settings, case: Case, world: World, database: Path) -> Result:
    here = settings.model_copy(
        update={
            "database": DatabaseSettings.model_validate({"url": _url(database)}),
            "channels": (ChannelSettings(match="*", products=case.products),),
        }
    )
    began = time.monotonic()
    answer = await answer_here(here, case.asked, _CHANNEL, lambda _: None, world)
    return _result(case.id, answer, time.monotonic() - began)


def _result(case_id: str, answer: Mapping[str, JsonValue], seconds: float) -> Result:
    suspects, calls, usage = answer["suspects"], answer["tool_calls"], answer["usage"]
    cost = answer["cost_usd_micros"]
    assert isinstance(suspects, list)  # noqa: S101 - of our own JSON
    assert isinstance(calls, list)  # noqa: S101
    assert isinstance(usage, dict)  # noqa: S101
    if answer["end"] == "failed":
        _tell(f"{case_id}: the turn failed: {answer['notices']}")
    tokens = [usage.get("input_tokens"), usage.get("output_tokens")]
    return Result(
        id=case_id,
        verdict=str(answer["verdict"]),
        suspects=[str(one["product"]) for one in suspects if isinstance(one, dict)],
        seconds=seconds,
        tool_calls=len(calls),
        answer=str(answer["answer"]),
        tokens=sum(count for count in tokens if isinstance(count, int)),
        cost_usd_micros=cost if isinstance(cost, int) else 0,
    )


def _progress(number: int, result: Result) -> None:
    names = ", ".join(result.suspects[:3]) or "nobody"
    _tell(f"{number:>4}  {result.id}  {result.verdict}: {names}  ({result.seconds:.1f} s)")


def _tell(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _url(database: Path) -> str:
    return f"sqlite+aiosqlite:///{database}"
