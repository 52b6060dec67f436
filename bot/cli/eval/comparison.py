"""Two runs over the same cases: what changed, and whether it got worse."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import orjson
from pydantic import BaseModel, Field, JsonValue, ValidationError

from bot.cli.eval.score import Result, Tally, Truth
from bot.settings.reading import ConfigurationError

# The figures of each set, and whether higher is better.
_FIGURES: Final[Mapping[str, bool]] = {
    "top_1": True,
    "top_3": True,
    "false_all_clear": False,
    "false_alarm": False,
    "abstained": False,
    "words": True,
}
# Ranking lower and knowing less is worse only where it costs an answer, which these count.
_DECISIVE: Final = frozenset({"top_1", "false_all_clear", "false_alarm"})


class _Earlier(BaseModel):
    results: tuple[Result, ...] = Field(min_length=1)


@dataclass(frozen=True, slots=True)
class Scored:
    """A case that was asked now: its set, products and truth beside the answer."""

    set: str
    products: Sequence[str]
    truth: Truth
    result: Result


@dataclass(frozen=True, slots=True)
class Comparison:
    """`before` and `after` by set, over the cases that both runs have."""

    cases: int
    before: Mapping[str, Mapping[str, JsonValue]]
    after: Mapping[str, Mapping[str, JsonValue]]
    changed: Sequence[str]
    worse: Sequence[str]

    def as_json(self) -> dict[str, JsonValue]:
        sets: list[JsonValue] = [
            {"set": name, "before": dict(self.before[name]), "after": dict(self.after[name])}
            for name in self.before
        ]
        return {
            "cases": self.cases,
            "sets": sets,
            "changed": list(self.changed),
            "worse": list(self.worse),
        }

    def lines(self, file: Path) -> Sequence[str]:
        """Lines with the figures of both runs, the changed answers, and the figures that got worse."""
        told = ["", f"against {file}, over the {self.cases} cases of both:"]
        for name, before in self.before.items():
            figures = ", ".join(
                f"{figure.replace('_', ' ')} {_share(before[figure])} -> {_share(after)}"
                for figure in _FIGURES
                if (after := self.after[name][figure]) is not None
            )
            told.append(f"{name}: {figures}")
        told += [f"  {line}" for line in self.changed]
        return [*told, f"WORSE: {', '.join(self.worse)}" if self.worse else "not worse"]


def earlier_results(file: Path) -> Mapping[str, Result]:
    """Those of a `--json` written before, by case. Raises ConfigurationError."""
    try:
        read = _Earlier.model_validate(orjson.loads(file.read_bytes()))
    except OSError as error:
        raise ConfigurationError(f"--against {file}: {error.strerror}") from error
    except (orjson.JSONDecodeError, ValidationError) as error:
        raise ConfigurationError(
            f"--against {file}: not what `kortex eval --json` prints, with a result at least"
        ) from error
    return {one.id: one for one in read.results}


def compared(earlier: Mapping[str, Result], scored: Sequence[Scored]) -> Comparison:
    """Score both runs over the cases that both have."""
    both = [one for one in scored if one.result.id in earlier]
    before, after = dict[str, Tally](), dict[str, Tally]()
    changed: list[str] = []
    for one in both:
        was = earlier[one.result.id]
        for tallies, result in ((before, was), (after, one.result)):
            tallies.setdefault(one.set, Tally(one.set)).add(one.products, one.truth, result)
        if _said(was) != _said(one.result):
            changed.append(f"{one.result.id}: {_said(was)} -> {_said(one.result)}")
    figures = [{name: t.as_json() for name, t in sorted(side.items())} for side in (before, after)]
    worse = [
        f"{name} {figure.replace('_', ' ')}"
        for name in figures[0]
        for figure in _FIGURES
        if figure in _DECISIVE and _is_worse(figure, figures[0][name], figures[1][name])
    ]
    return Comparison(len(both), figures[0], figures[1], changed, worse)


def _is_worse(figure: str, before: Mapping[str, JsonValue], after: Mapping[str, JsonValue]) -> bool:
    was, now = before[figure], after[figure]
    if not isinstance(was, float) or not isinstance(now, float):
        return False
    return now < was if _FIGURES[figure] else now > was


def _said(result: Result) -> str:
    return " ".join([result.verdict, *result.suspects[:1]])


def _share(value: JsonValue) -> str:
    return f"{value:.2f}" if isinstance(value, float) else "-"
