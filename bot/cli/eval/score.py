"""How answers compare with the truth of recorded incidents, set by set, and with an earlier run."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import comb
from pathlib import Path
from statistics import median
from typing import Final

import orjson
from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError

from adapters.recorded.packs.plain_rules import PlainAnswer
from bot.cli.display import aligned
from bot.settings.reading import ConfigurationError


class Truth(BaseModel):
    """`truth.json`. An answer should hold one word of each group in `mechanism_words`."""

    model_config = ConfigDict(frozen=True)

    healthy: bool
    culprit: tuple[str, ...] = ()
    kind: str = ""
    mechanism_words: tuple[tuple[str, ...], ...] = ()
    forbidden: tuple[str, ...] = ()
    suite: str = ""
    anchor: str = ""  # published results on this set, as text


class PossibleTruth(BaseModel):
    """Whether a `truth.json` says what can be counted: a template, or one to be read, does not."""

    healthy: JsonValue = None


@dataclass(frozen=True, slots=True)
class Result:
    """One answer. `suspects` are product names, best first."""

    id: str
    verdict: str
    suspects: Sequence[str] = ()
    seconds: float = 0.0
    tool_calls: int = 0
    answer: str = ""
    backend_calls: int = 0
    tokens: int = 0
    cost_usd_micros: int = 0
    failed: bool = False

    def as_json(self) -> dict[str, JsonValue]:
        return {
            "id": self.id,
            "verdict": self.verdict,
            "suspects": list(self.suspects),
            "seconds": round(self.seconds, 3),
            "tool_calls": self.tool_calls,
            "backend_calls": self.backend_calls,
            "answer": self.answer,
        }


@dataclass(slots=True)
class Tally:
    """The figures of one set. A share is None while it has no cases."""

    set: str
    anchor: str = ""
    _counted: dict[str, float] = field(default_factory=dict)
    _results: list[Result] = field(default_factory=list)

    def add(
        self,
        products: Sequence[str],
        truth: Truth,
        result: Result,
        plain: PlainAnswer | None = None,
    ) -> None:
        """Count one answer to a case of these products, and what plain rules say of it."""
        self.anchor = self.anchor or truth.anchor
        self._results.append(result)
        suspects = [name.casefold() for name in result.suspects]
        silent = result.verdict == "symptoms" and not suspects
        self._count("all", 1)
        self._count("abstained", result.verdict == "unknown" or silent)
        if truth.healthy:
            self._count("healthy", 1)
            self._count("alarm", result.verdict == "cause" or bool(suspects))
        else:
            self._fault(products, truth, result, suspects)
        if plain is not None:
            self._plain(truth, plain)
        if truth.mechanism_words and result.answer:
            self._count("worded", 1)
            self._count("words", words_held(truth, result.answer))

    def _fault(
        self, products: Sequence[str], truth: Truth, result: Result, suspects: Sequence[str]
    ) -> None:
        culprits = {name.casefold() for name in truth.culprit}
        self._count("faults", 1)
        self._count("top_1", bool(culprits & set(suspects[:1])))
        self._count("top_3", bool(culprits & set(suspects[:3])))
        self._count("clear", result.verdict == "healthy")
        is_first = bool(culprits & set(suspects[:1]))
        self._count("wrong_blame", bool(suspects) and not is_first)
        if truth.mechanism_words:
            self._count("explained", 1)
            self._count("right", is_first and words_held(truth, result.answer) == 1)
        accepted = len(set(truth.culprit) & set(products))
        self._count("chance_1", _chance(len(products), accepted, 1))
        self._count("chance_3", _chance(len(products), accepted, 3))

    def _plain(self, truth: Truth, plain: PlainAnswer) -> None:
        if truth.healthy:
            self._count("plain_healthy", 1)
            self._count("plain_alarm", bool(plain.suspects))
            return
        culprits = {name.casefold() for name in truth.culprit}
        suspects = [name.casefold() for name in plain.suspects]
        self._count("plain_faults", 1)
        self._count("plain_1", bool(culprits & set(suspects[:1])))
        self._count("plain_3", bool(culprits & set(suspects[:3])))
        self._count("plain_clear", plain.verdict == "healthy")

    def as_json(self) -> dict[str, JsonValue]:
        """One element of `sets`. Seconds and tool calls are medians, tokens and cost are sums."""
        return {
            "set": self.set,
            "faults": int(self._counted.get("faults", 0)),
            "healthy": int(self._counted.get("healthy", 0)),
            "top_1": self._share("top_1", "faults"),
            "top_3": self._share("top_3", "faults"),
            "false_all_clear": self._share("clear", "faults"),
            "false_alarm": self._share("alarm", "healthy"),
            "abstained": self._share("abstained", "all"),
            "words": self._share("words", "worded"),
            "right": self._share("right", "explained"),
            "wrong_blame": self._share("wrong_blame", "faults"),
            "chance_1": self._share("chance_1", "faults"),
            "chance_3": self._share("chance_3", "faults"),
            "plain_1": self._share("plain_1", "plain_faults"),
            "plain_3": self._share("plain_3", "plain_faults"),
            "plain_all_clear": self._share("plain_clear", "plain_faults"),
            "plain_alarm": self._share("plain_alarm", "plain_healthy"),
            "seconds": round(median(r.seconds for r in self._results), 3),
            "tool_calls": median(r.tool_calls for r in self._results),
            "backend_calls": median(r.backend_calls for r in self._results),
            "tokens": sum(r.tokens for r in self._results),
            "cost_usd_micros": sum(r.cost_usd_micros for r in self._results),
            "anchor": self.anchor or None,
        }

    def _count(self, what: str, value: float) -> None:
        self._counted[what] = self._counted.get(what, 0.0) + value

    def _share(self, what: str, of: str) -> float | None:
        total = self._counted.get(of, 0.0)
        return round(self._counted.get(what, 0.0) / total, 4) if total else None


def words_held(truth: Truth, answer: str) -> float:
    """The share of word groups that an answer holds; a forbidden word makes it nought."""
    text = answer.casefold()
    if any(word.casefold() in text for word in truth.forbidden):
        return 0.0
    held = [any(word.casefold() in text for word in group) for group in truth.mechanism_words]
    return sum(held) / len(held)


def _chance(products: int, accepted: int, drawn: int) -> float:
    drawn = min(drawn, products)
    return 1 - comb(products - accepted, drawn) / comb(products, drawn) if products else 0.0


_COLUMNS: Mapping[str, str] = {
    "set": "set",
    "faults": "faults",
    "top-1": "top_1",
    "chance": "chance_1",
    "plain": "plain_1",
    "top-3": "top_3",
    "chance-3": "chance_3",
    "plain-3": "plain_3",
    "right": "right",
    "words": "words",
    "wrong blame": "wrong_blame",
    "false all-clear": "false_all_clear",
    "plain all-clear": "plain_all_clear",
    "healthy": "healthy",
    "false alarm": "false_alarm",
    "plain alarm": "plain_alarm",
    "abstained": "abstained",
    "seconds": "seconds",
    "backend calls": "backend_calls",
    "tokens": "tokens",
}


def table(tallies: Sequence[Tally]) -> Sequence[str]:
    """Lines of a table for people; anchors below it."""
    found = [tally.as_json() for tally in tallies]
    rows = [[*_COLUMNS, "USD"]]
    for one in found:
        spent = one["cost_usd_micros"]
        dollars = f"{spent / 1_000_000:.2f}" if isinstance(spent, int) else "-"
        rows.append([*(_cell(one[key]) for key in _COLUMNS.values()), dollars])
    anchors = {str(one["anchor"]): str(one["set"]) for one in reversed(found) if one["anchor"]}
    return [*aligned(rows), *(f"{name}: {anchor}" for anchor, name in reversed(anchors.items()))]


def _cell(value: JsonValue) -> str:
    if value is None:
        return "-"
    return f"{value:.2f}" if isinstance(value, float) else str(value)


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
