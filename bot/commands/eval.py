"""`kortex eval`: recorded incidents through the product's own path, and how often it was right.

Each case is asked as people would ask it: a fresh database, the clock at the moment of the question,
the case's own backends. The truth beside it is read here and shown to nobody.
"""

import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import click
from pydantic import JsonValue

from adapters.recorded.packs.archive import TRUTH_FILE, BadPack, CaseFiles, case_files
from adapters.recorded.packs.loading import NotLoaded
from adapters.recorded.packs.recording import Recording, read_case, read_recording
from adapters.recorded.packs.shapes import Case, document_of
from bot.commands.ask import answer_here
from bot.commands.display import print_json
from bot.commands.ending import FAILED, OK
from bot.commands.eval_against import Comparison, Scored, compared, earlier_results
from bot.commands.eval_score import PossibleTruth, Result, Tally, Truth, table
from bot.commands.invocation import DEFAULT_CONFIG, config_option, guarded
from bot.commands.options import json_option
from bot.settings.database import DatabaseSettings
from bot.settings.model import (
    ChannelSettings,
    Settings,
)
from bot.settings.observe import MetricsSettings, ObserveSettings
from bot.settings.reading import ConfigurationError, load
from bot.store import schema
from bot.telemetry import logs
from bot.wiring.backend_kinds import conventions_of
from bot.wiring.observed import World
from bot.wiring.packed import with_logs_at, with_metrics_at, world_of
from bot.wiring.stores import open_redactor

_CHANNEL = "incident-eval"


@dataclass(frozen=True, slots=True)
class JudgedCase:
    """A case and what is right about it."""

    found: CaseFiles
    truth: Truth


def judged_cases(packs: Sequence[Path], tell: Callable[[str], None]) -> Iterator[JudgedCase]:
    """Cases with a truth that can be counted, each id once. Raises BadPack.

    Those to be graded by reading are left out, and `tell` is given a line about it at the end.
    """
    without = 0
    asked: set[str] = set()
    for found in case_files(packs):
        truth = _truth(found)
        if truth is None:
            without += 1
            continue
        files = {name: content for name, content in found.files.items() if name != TRUTH_FILE}
        case = CaseFiles(found.place, files)
        name = read_case(case).id
        if name in asked:
            tell(f"{found.place}: a case with the id {name} was asked already; left out")
            continue
        asked.add(name)
        yield JudgedCase(case, truth)
    if without:
        tell(f"{without} cases without a truth that can be counted were left out")


def _truth(found: CaseFiles) -> Truth | None:
    content = found.files.get(TRUTH_FILE)
    if content is None:
        return None
    place = f"{found.place}/{TRUTH_FILE}"
    if document_of(content, PossibleTruth, place).healthy is None:
        return None
    return document_of(content, Truth, place)


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is asked, of whom. With a URL, cases are loaded into that server and asked through it."""

    packs: Sequence[Path]
    provider: str = ""
    limit: int | None = None
    as_json: bool = False
    metrics_url: str = ""
    logs_url: str = ""
    against: Path | None = None  # the --json of an earlier run


@dataclass(slots=True)
class _Run:
    """What was asked so far, and what ended it early."""

    scored: list[Scored] = field(default_factory=list)
    tallies: dict[str, Tally] = field(default_factory=dict)
    stopped: str = ""

    @property
    def failed(self) -> int:
        """Answers that never came."""
        return sum(one.result.failed for one in self.scored)

    def add(self, case: Case, truth: Truth, result: Result) -> None:
        self.scored.append(Scored(case.set, case.products, truth, result))
        for key in (case.set, f"{case.set}:{truth.suite}" if truth.suite else ""):
            if key:
                self.tallies.setdefault(key, Tally(key)).add(case.products, truth, result)


@click.command("eval")
@click.argument(
    "packs", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="PACK..."
)
@click.option(
    "--provider",
    default="",
    metavar="NAME",
    help="The only provider to ask (default: those of the configuration; triage without one).",
)
@click.option(
    "--metrics-url",
    default="",
    metavar="URL",
    help="Load each case's metrics into this VictoriaMetrics and ask through it.",
)
@click.option("--logs-url", default="", metavar="URL", help="And its log lines into this Loki.")
@click.option(
    "--against",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Compare with the --json of an earlier run, case by case. Exit 1: it got worse.",
)
@click.option("--limit", type=click.IntRange(min=1), metavar="N", help="The first N cases only.")
@json_option
@config_option
def evaluate(config: Path, **options: Any) -> int:
    """Score the answers to recorded incidents.

    PACK is a folder of cases, or a .tar.xz of one. Each case is asked as people would ask it, on its
    own data and clock. Exit 1: worse than before, or no answer at all.

    \b
    Examples:
      kortex eval incidents/2026-11-21-1500-checkout
      kortex eval packs/ --provider openai --json > openai.json
      kortex eval packs/ --provider openai --against openai.json
    """
    return guarded(lambda: _evaluate(config, Wanted(**options)))


async def _evaluate(config: Path, wanted: Wanted) -> int:
    settings = _settings(config, wanted.provider)
    earlier = earlier_results(wanted.against) if wanted.against else None
    logs.configure(open_redactor(settings), level="ERROR")
    with tempfile.TemporaryDirectory(prefix="kortex-eval-") as folder:
        run = await _run(settings, wanted, Path(folder))
    against = None if earlier is None else compared(earlier, run.scored)
    _print(run, wanted, against)
    if run.stopped:
        raise ConfigurationError(run.stopped)
    if run.failed:
        _tell(f"{run.failed} of {len(run.scored)} answers failed, and count as abstained")
    none_came = bool(run.failed) and run.failed == len(run.scored)
    is_bad = none_came or (against is not None and against.worse)
    return FAILED if is_bad else OK


def _settings(config: Path, provider: str) -> Settings:
    """The configured models, policy and meanings of metrics; no backends, channels and actions."""
    # The default may be missing; a file that was named may not.
    own = Settings() if config == DEFAULT_CONFIG and not config.exists() else load(config)
    llm = own.llm
    if provider:
        alone = {"default_provider": provider, "fallback_providers": (), "triage_fallback": False}
        llm = llm.model_copy(update=alone)
    meanings = MetricsSettings(signals=own.observe.metrics.signals)
    observe = ObserveSettings(metrics=meanings)
    return Settings(llm=llm, policy=own.policy, audit=own.audit, observe=observe)


def _print(run: _Run, wanted: Wanted, against: Comparison | None) -> None:
    tallies = [run.tallies[key] for key in sorted(run.tallies)]
    if wanted.as_json:
        sets: list[JsonValue] = [tally.as_json() for tally in tallies]
        rows: list[JsonValue] = [one.result.as_json() for one in run.scored]
        told: dict[str, JsonValue] = {"sets": sets, "results": rows}
        if against is not None:
            told["against"] = against.as_json()
        print_json(told)
        return
    if tallies:
        print("\n".join(table(tallies)))
    if against is not None and wanted.against is not None:
        print("\n".join(against.lines(wanted.against)))


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
                    world = await _world(settings, recording, wanted, stack)
                    result = await _ask(settings, recording.case, world, database)
            run.add(recording.case, judged.truth, result)
            _progress(len(run.scored), result)
    except (BadPack, NotLoaded) as error:
        run.stopped = f"{error}. {len(run.scored)} cases were asked before it."
    return run


async def _world(
    settings: Settings, recording: Recording, wanted: Wanted, stack: AsyncExitStack
) -> World:
    """Raises ConfigurationError (no address), NotLoaded."""
    own = conventions_of(settings.observe.metrics)
    world = world_of(recording, own)
    if wanted.metrics_url:
        world = await with_metrics_at(wanted.metrics_url, recording, world, own, stack)
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
        failed=answer["end"] == "failed",
    )


def _progress(number: int, result: Result) -> None:
    names = ", ".join(result.suspects[:3]) or "nobody"
    _tell(f"{number:>4}  {result.id}  {result.verdict}: {names}  ({result.seconds:.1f} s)")


def _tell(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _url(database: Path) -> str:
    return f"sqlite:///{database}"
