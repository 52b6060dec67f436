"""One result of a first look as lines, the most important first. Every figure is copied from it."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import islice
from typing import Final

from pydantic import JsonValue

from adapters.llm.first_look.tokens import cut_to
from adapters.llm.triage.case import SeenResult, instant, plain
from adapters.llm.triage.cluster_facts import IllFact
from adapters.llm.triage.deploy_facts import DEPLOYS, DeployFact
from adapters.llm.triage.evidence import LOGS, METRICS, TRACES, LogFact, Moved, SpanFact
from adapters.llm.triage.judgement import Judgement
from adapters.llm.triage.plan import mark_of
from adapters.llm.triage.surroundings import ERRORS, error_line, quoted
from adapters.llm.triage.telling import errors_line, headline, since_text, told
from adapters.llm.triage.unmeasured import samples_missing
from adapters.llm.triage.weigh import Point, Suspicion

MOVED: Final = 3.0  # spreads from which a signal counts as changed
_AT_ONCE: Final[Mapping[str, int]] = {METRICS: 3, LOGS: 2, TRACES: 2, DEPLOYS: 2}
_MOST_ILL: Final = 200  # characters of one finding of Kubernetes
_HALF: Final = _MOST_ILL // 2 - 3
_MOST_LINES: Final = 40  # of a result; a digest has room for half of them in all
_NAMES_A_LINE: Final = 12
_SPANS_FIRST: Final = 2
_CALLERS_FIRST: Final = 4
_CODE: Final = re.compile(r"`([^`]*)`")
_LONGEST_EXAMPLE: Final = 100
_MOST_SUSPECTS: Final = 3
_MOST_MISSING: Final = 4
_MOST_TOKENS: Final = 40  # of each text of the rules
_NOTE: Final = "Fixed rules make of all of this first look, for you to check"

Fact = Moved | LogFact | SpanFact | IllFact | DeployFact


@dataclass(frozen=True, slots=True)
class Lines:
    mark: str
    head: Mapping[str, JsonValue]
    name: str
    lines: Sequence[str]
    notes: Sequence[str]
    at_once: int


def lines_of(seen: SeenResult, judgement: Judgement) -> Lines | None:
    """None for tools outside a first look."""
    rank = _ranks(judgement)
    match seen.tool:
        case "core__sweep_metrics":
            name, lines = "moved", _metrics(seen, judgement, rank)
        case "core__error_patterns":
            name, lines = "changed", _logs(seen, judgement, rank)
        case "core__sweep_traces":
            name, lines = "changed", _traces(seen, judgement, rank)
        case "core__sweep_cluster":
            name, lines = "ill", _cluster(seen, judgement)
        case "core__get_recent_deploys":
            name, lines = "deploys", _deploys(seen, judgement, rank)
        case "core__get_errors":
            name, lines = "errors", _errors(seen)
        case _:
            return None
    at_once = _AT_ONCE.get(seen.tool, 1)
    return Lines(
        seen.mark,
        _head(seen),
        name,
        list(islice(lines, _MOST_LINES)),
        list(_notes(seen, judgement)),
        at_once,
    )


def by_rules(judgement: Judgement) -> str:
    """The rule-based verdict, its suspects and the gaps.

    In a plain sentence: a small model continues in the form that it reads.
    """
    parts = [f"{_NOTE}: {judgement.verdict}"]
    if judgement.suspects:
        parts.append(cut_to(headline(judgement.suspects[0]), _MOST_TOKENS).rstrip("."))
    if named := [*judgement.suspects, *judgement.others][:_MOST_SUSPECTS]:
        told_of = (cut_to(_suspect(one), _MOST_TOKENS) for one in named)
        parts.append(f"Suspects: {'; '.join(told_of)}")
    if judgement.missing:
        missing = (cut_to(text, _MOST_TOKENS) for text in judgement.missing[:_MOST_MISSING])
        parts.append(f"Not looked at: {'; '.join(missing)}")
    return ". ".join(parts) + "."


def _suspect(one: Suspicion) -> str:
    marks = dict.fromkeys(mark_of(point.fact) for point in one.ordered[:4])
    cited = "".join(f"[{mark}]" for mark in marks)
    return f"{plain(one.product)}{since_text(one)} ({one.kind}) {cited}"


def _ranks(judgement: Judgement) -> Mapping[str, int]:
    named = [*judgement.suspects, *judgement.others]
    return {one.product: place for place, one in enumerate(named)}


def _head(seen: SeenResult) -> dict[str, JsonValue]:
    if seen.tool == METRICS:
        head: dict[str, JsonValue] = {"range": _range(seen.text("range"))}
        if before := _clock(seen.text("baseline_from")):
            head["compared_with"] = f"{before} UTC and later"
        return head
    if seen.tool in (DEPLOYS, ERRORS):
        return {"range": _range(seen.text("range"))}
    return {}


def _range(text: str) -> str:
    start, _, end = text.partition("/")
    first, last = instant(start), instant(end)
    if first is None or last is None:
        return ""
    return f"{first:%Y-%m-%d %H:%M} to {last:%H:%M} UTC"


def _clock(text: str) -> str:
    at: datetime | None = instant(text)
    return f"{at:%H:%M}" if at else ""


def _in_words(text: str, seen: SeenResult) -> str:
    """Without the mark, and with texts from outside as plain words: a model may repeat them."""
    return _CODE.sub(lambda code: f'"{quoted(code[1])}"', text.removesuffix(f" [{seen.mark}]"))


def _told(fact: Fact, seen: SeenResult) -> str:
    text = _in_words(told(Point("", 0.0, travels=False, is_weak=False, fact=fact)), seen)
    match fact:
        case Moved():
            words = fact.signal.replace("_", " ")  # a model may ask for the signal itself
            named = "" if f"({words})" in text else f" ({words})"
            return f"{plain(fact.product)}: {text}{named}"
        case DeployFact():
            return f"{plain(fact.product)}: {text}"
        case LogFact() | SpanFact():
            return text
        case IllFact():  # its reason is at the end
            return text if len(text) <= _MOST_ILL else f"{text[:_HALF]} ... {text[-_HALF:]}"


def _metrics(seen: SeenResult, judgement: Judgement, rank: Mapping[str, int]) -> Iterator[str]:
    last = len(rank)
    moved = [one for one in judgement.facts.moved if one.score >= MOVED]
    ordered = sorted(moved, key=lambda one: (rank.get(one.product, last), -one.score))
    # Every product's worst comes before any product's second.
    nth: dict[str, int] = {}
    places = []
    for one in ordered:
        nth[one.product] = nth.get(one.product, -1) + 1
        places.append((nth[one.product] // 2, one))
    yield from (_told(one, seen) for _, one in sorted(places, key=lambda each: each[0]))


def _logs(seen: SeenResult, judgement: Judgement, rank: Mapping[str, int]) -> Iterator[str]:
    last = len(rank)
    facts = sorted(
        judgement.facts.logs,
        key=lambda one: (not one.is_more_errors, rank.get(one.product, last)),
    )
    for fact in facts:
        one = replace(fact, example=fact.example[:_LONGEST_EXAMPLE])
        if one.is_more_errors:
            names = f"; they mention {plain(one.names[0])}" if one.names else ""
            yield _in_words(errors_line(one), seen) + names
        else:
            yield _told(one, seen)


def _traces(seen: SeenResult, judgement: Judgement, rank: Mapping[str, int]) -> Iterator[str]:
    last = len(rank)
    spans = sorted(
        judgement.facts.spans, key=lambda one: (rank.get(one.product, last), -one.weight)
    )
    told_of = [_told(one, seen) for one in spans]
    yield from told_of[:_SPANS_FIRST]
    called: dict[str, list[str]] = {}
    for line in seen.texts("calls"):
        caller, arrow, callee = line.partition(" > ")
        if arrow:
            called.setdefault(plain(caller), []).append(plain(callee))
    calls = [
        f"{caller} calls {_some(called[caller])}"
        for caller in sorted(called, key=lambda name: rank.get(name, last))
    ]
    yield from calls[:_CALLERS_FIRST]
    yield from told_of[_SPANS_FIRST:]
    yield from calls[_CALLERS_FIRST:]


def _cluster(seen: SeenResult, judgement: Judgement) -> Iterator[str]:
    facts = sorted(judgement.facts.ill, key=lambda one: (one.over, one.warned))
    return (_told(one, seen) for one in facts)


def _deploys(seen: SeenResult, judgement: Judgement, rank: Mapping[str, int]) -> Iterator[str]:
    last = len(rank)
    newest = sorted(judgement.facts.deploys, key=lambda one: rank.get(one.product, last))
    return (_told(one, seen) for one in newest)


def _errors(seen: SeenResult) -> Iterator[str]:
    rows = sorted(seen.rows("issues"), key=lambda row: row.get("new") is not True)
    return (("new: " if row.get("new") is True else "") + error_line(row) for row in rows)


def _notes(seen: SeenResult, judgement: Judgement) -> Iterator[str]:
    match seen.tool:
        case "core__sweep_metrics":
            moved = {one.product for one in judgement.facts.moved if one.score >= MOVED}
            within = [plain(name) for name in seen.mapping("within")]
            yield from _listed("within usual", [name for name in within if name not in moved])
            yield from _listed("too short a time before", list(seen.mapping("too_short")))
            yield from _listed("no metrics found of", seen.texts("without"))
            yield from islice(samples_missing(seen, (), None), _MOST_MISSING)
        case "core__error_patterns":
            yield from _listed("no lines found of", seen.texts("without"))
        case "core__sweep_cluster":
            yield f"pods of {len(seen.mapping('pods'))} products were looked at"
        case "core__get_errors":
            yield from map(quoted, seen.texts("notes"))
        case _:
            pass


def _listed(words: str, names: Sequence[str]) -> Iterator[str]:
    if names:
        yield f"{words}: {_some([plain(name) for name in names])}"


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - _NAMES_A_LINE} more" if len(names) > _NAMES_A_LINE else ""
    return ", ".join(names[:_NAMES_A_LINE]) + more
