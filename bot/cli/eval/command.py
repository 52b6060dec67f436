"""`kortex eval`: ask recorded incidents through the product's own path, and score the answers.

Each case has a fresh database, its own backends, and the clock at the moment of its question. The
truth beside it is read here only; no model sees it.
"""

import asyncio
import sys
import tempfile
from collections import deque
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from contextlib import aclosing
from dataclasses import dataclass, field
from itertools import islice
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import click
from pydantic import JsonValue

from adapters.recorded.packs.archive import BadPack, CaseFiles, case_files
from adapters.recorded.packs.recording import read_case
from adapters.recorded.packs.server_import import NotLoaded
from adapters.recorded.packs.variants import KINDS, Variant, VariantKind, variants_of
from bot.app.stores import open_redactor
from bot.cli.display import print_json
from bot.cli.eval.cases import AskedCase, CaseAsker, database_url, truth_of
from bot.cli.eval.score import Comparison, Scored, Tally, compared, earlier_results, table
from bot.cli.exit_codes import FAILED, OK
from bot.cli.invocation import DEFAULT_CONFIG, config_option, guarded
from bot.cli.options import json_option
from bot.settings.model import Settings
from bot.settings.observe import MetricsSettings, ObserveSettings
from bot.settings.reading import ConfigurationError, load
from bot.store import schema
from bot.telemetry import logs


def judged_cases(packs: Sequence[Path], tell: Callable[[str], None]) -> Iterator[CaseFiles]:
    """Cases with a truth that can be counted, each id once. Raises BadPack.

    Other cases are left out; `tell` gets a line with their number at the end.
    """
    without = 0
    asked: set[str] = set()
    for found in case_files(packs):
        if truth_of(found) is None:
            without += 1
            continue
        name = read_case(found).id
        if name in asked:
            tell(f"{found.place}: duplicate case id {name}; left out")
            continue
        asked.add(name)
        yield found
    if without:
        tell(f"{without} cases without a valid truth were left out")


@dataclass(frozen=True, slots=True)
class Wanted:
    """The cases and the provider to ask. With a URL, cases are loaded into that server first."""

    packs: Sequence[Path]
    provider: str = ""
    limit: int | None = None
    as_json: bool = False
    metrics_url: str = ""
    logs_url: str = ""
    against: Path | None = None  # the --json of an earlier run
    variants: Sequence[Variant] = ()  # asked beside each case itself
    jobs: int = 1  # processes


@dataclass(slots=True)
class _Run:
    scored: list[Scored] = field(default_factory=list)
    tallies: dict[str, Tally] = field(default_factory=dict)
    stopped: str = ""

    @property
    def failed(self) -> int:
        return sum(one.result.failed for one in self.scored)

    def add(self, asked: AskedCase) -> None:
        case, truth, result = asked.case, asked.truth, asked.result
        self.scored.append(Scored(case.set, case.products, truth, result))
        for key in (case.set, f"{case.set}:{truth.suite}" if truth.suite else ""):
            if key:
                tally = self.tallies.setdefault(key, Tally(key))
                tally.add(case.products, truth, result, asked.plain)


def _variant_kinds(text: str) -> Sequence[VariantKind]:
    names = [name.strip() for name in text.split(",") if name.strip()]
    if names == ["all"]:
        return KINDS
    if unknown := [name for name in names if name not in KINDS]:
        raise click.BadParameter(f"{', '.join(unknown)}: write all, or some of {', '.join(KINDS)}")
    return [kind for kind in KINDS if kind in names]


@click.command("eval")
@click.argument(
    "packs", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="PACK..."
)
@click.option(
    "--provider",
    default="",
    metavar="NAME",
    help="The only provider to ask (default: the configured ones, or triage without a configuration).",
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
@click.option(
    "--variants",
    type=_variant_kinds,
    default="",
    metavar="KINDS",
    help="Also ask each case with other units, metrics, products or scale: a comma-separated list, or all.",
)
@click.option(
    "--seeds",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    metavar="N",
    help="How many variants of a kind.",
)
@click.option(
    "--jobs",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    metavar="N",
    help="Cases asked at the same time, each in a process.",
)
@json_option
@config_option
def evaluate(config: Path, variants: Sequence[VariantKind], seeds: int, **options: Any) -> int:
    """Score the answers to recorded incidents.

    PACK is a folder of cases, or a .tar.xz of one. Each case is asked as people would ask it, on its
    own data and clock. Exit 1: worse than before, or no answer at all.

    \b
    Examples:
      kortex eval incidents/2026-11-21-1500-checkout
      kortex eval packs/ --provider openai --json > openai.json
      kortex eval packs/ --provider openai --against openai.json
      kortex eval packs/ --variants all --seeds 3 --jobs 4
    """
    wanted = Wanted(variants=variants_of(variants, seeds), **options)
    return guarded(lambda: _evaluate(config, wanted))


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
        _tell(f"{run.failed} of {len(run.scored)} answers failed and count as abstained")
    none_came = bool(run.failed) and run.failed == len(run.scored)
    is_bad = none_came or (against is not None and against.worse)
    return FAILED if is_bad else OK


def _settings(config: Path, provider: str) -> Settings:
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
    """Submit questions. A broken pack fails in its place, after the answers before it."""
    template = folder / "template.db"
    await schema.migrate(database_url(template))
    asker = CaseAsker(settings, template, wanted.metrics_url, wanted.logs_url)
    run = _Run()
    try:
        async with aclosing(_answers(asker, wanted)) as answers:
            async for asked in answers:
                run.add(asked)
                _progress(len(run.scored), asked)
    except (BadPack, NotLoaded) as error:
        run.stopped = f"{error}. {len(run.scored)} cases were asked before."
    return run


async def _answers(asker: CaseAsker, wanted: Wanted) -> AsyncGenerator[AskedCase, None]:
    cases = islice(judged_cases(wanted.packs, _tell), wanted.limit)
    questions = ((case, variant) for case in cases for variant in (None, *wanted.variants))
    if wanted.jobs == 1:
        for found, variant in questions:
            yield await asker.ask(found, variant)
        return
    with ProcessPoolExecutor(wanted.jobs, get_context("forkserver")) as pool:
        waiting = deque[Future[AskedCase]]()
        for answer in _submitted(pool, asker, questions):
            waiting.append(answer)
            # Few wait at a time: a case may have 256 MiB.
            if len(waiting) == 2 * wanted.jobs:
                yield await asyncio.wrap_future(waiting.popleft())
        while waiting:
            yield await asyncio.wrap_future(waiting.popleft())


def _submitted(
    pool: Executor, asker: CaseAsker, questions: Iterator[tuple[CaseFiles, Variant | None]]
) -> Iterator[Future[AskedCase]]:
    """A pack that turns out broken fails in its place, after the answers before it."""
    try:
        for found, variant in questions:
            yield pool.submit(asker.ask_here, found, variant)
    except BadPack as error:
        broken = Future[AskedCase]()
        broken.set_exception(error)
        yield broken


def _progress(number: int, asked: AskedCase) -> None:
    result = asked.result
    if result.failed:
        _tell(f"{result.id}: the turn failed: {asked.notices}")
    names = ", ".join(result.suspects[:3]) or "no suspect"
    _tell(f"{number:>4}  {result.id}  {result.verdict}: {names}  ({result.seconds:.1f} s)")


def _tell(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
