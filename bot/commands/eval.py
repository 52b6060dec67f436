"""`kortex eval`: recorded incidents through the product's own path, and how often it was right.

Each case is asked as people would ask it: a fresh database, the clock at the moment of the question,
the case's own backends. The truth beside it is read here and shown to nobody.
"""

import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import orjson
from pydantic import JsonValue, ValidationError

from adapters.recorded.packs.archive import TRUTH_FILE, BadPack, CaseFiles, case_files
from adapters.recorded.packs.recording import read_recording
from bot.commands import verbs
from bot.commands.console import answer_here
from bot.commands.eval_score import Result, Tally, Truth, table
from bot.settings.model import (
    ChannelSettings,
    DatabaseSettings,
    Settings,
)
from bot.settings.reading import ConfigurationError, load
from bot.store import schema
from bot.telemetry import logs
from bot.wiring.packed import world_of
from bot.wiring.stores import open_redactor

_CHANNEL = "incident-eval"
Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class _Judged:
    """A case with the truth taken out of its files."""

    found: CaseFiles
    truth: Truth


def evaluate(
    config: Path, packs: Sequence[Path], provider: str, limit: int | None, *, as_json: bool
) -> int:
    """Run and print. Exit 2 for a pack or a configuration that cannot be used."""

    async def work() -> int:
        settings = _settings(config, provider)
        logs.configure(open_redactor(settings), level="ERROR")
        try:
            with tempfile.TemporaryDirectory(prefix="kortex-eval-") as folder:
                results, tallies = await _run(settings, packs, limit, Path(folder))
        except BadPack as error:
            raise ConfigurationError(str(error)) from error
        if as_json:
            sets: list[JsonValue] = [tally.as_json() for tally in tallies]
            rows: list[JsonValue] = [result.as_json() for result in results]
            told = orjson.dumps({"sets": sets, "results": rows}, option=orjson.OPT_INDENT_2)
            sys.stdout.write(told.decode() + "\n")
        else:
            print("\n".join(table(tallies)))
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


async def _run(
    settings: Settings, packs: Sequence[Path], limit: int | None, folder: Path
) -> tuple[list[Result], list[Tally]]:
    template = folder / "template.db"
    await schema.migrate(_url(template))
    results: list[Result] = []
    tallies: dict[str, Tally] = {}
    for case in islice(_judged(packs), limit):
        with tempfile.TemporaryDirectory(dir=folder) as own:
            database = Path(own) / "case.db"
            shutil.copyfile(template, database)
            result, products, name = await _ask(settings, case.found, database)
        results.append(result)
        for key in (name, f"{name}:{case.truth.suite}" if case.truth.suite else ""):
            if key:
                tallies.setdefault(key, Tally(key)).add(products, case.truth, result)
        _progress(len(results), result)
    return results, [tallies[key] for key in sorted(tallies)]


def _judged(packs: Sequence[Path]) -> Iterator[_Judged]:
    """Cases with a truth that can be counted; those to be graded by reading are left out."""
    left_out = 0
    for found in case_files(packs):
        truth = _truth(found)
        if truth is None:
            left_out += 1
            continue
        files = {name: content for name, content in found.files.items() if name != TRUTH_FILE}
        yield _Judged(CaseFiles(found.place, files), truth)
    if left_out:
        _tell(f"{left_out} cases without a truth that can be counted were left out")


def _truth(found: CaseFiles) -> Truth | None:
    try:
        raw = orjson.loads(found.files[TRUTH_FILE])
        return Truth.model_validate(raw) if "healthy" in raw else None
    except KeyError:
        return None
    except (orjson.JSONDecodeError, ValidationError) as error:
        raise BadPack(f"{found.place}/{TRUTH_FILE}: {error}") from error


async def _ask(
    settings: Settings, found: CaseFiles, database: Path
) -> tuple[Result, Sequence[str], str]:
    recording = read_recording(found)
    case = recording.case
    here = settings.model_copy(
        update={
            "database": DatabaseSettings.model_validate({"url": _url(database)}),
            "channels": (ChannelSettings(match="*", products=case.products),),
        }
    )
    began = time.monotonic()
    answer = await answer_here(here, case.asked, _CHANNEL, lambda _: None, world_of(recording))
    return _result(case.id, answer, time.monotonic() - began), case.products, case.set


def _result(case_id: str, answer: Mapping[str, JsonValue], seconds: float) -> Result:
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
