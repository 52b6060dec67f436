"""A question about a point in time: the state then comes before earlier or later changes."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Final

from adapters.llm.triage.about import asked_first
from adapters.llm.triage.case import Case, SeenResult, instant, plain, text_of
from adapters.llm.triage.evidence import METRICS, LogFact, Moved
from adapters.llm.triage.judgement import Judgement
from adapters.llm.triage.period import period
from adapters.llm.triage.telling import clock, named, told
from adapters.llm.triage.weigh import Point, Suspicion

_MOST_NAMED: Final = 3
_EDGE: Final = timedelta(minutes=2)  # two samples: an onset is known no better


def first_of_all(case: Case, judgement: Judgement) -> str:
    """The state of the product asked about at that point, else over the whole range."""
    itself = asked_first(case, judgement)
    then = "" if judgement.verdict == "healthy" else at_point(case, judgement)
    is_told = itself and not judgement.own_blind
    return itself if is_told or not then else f"{then}\n\n{itself}".strip()


def at_point(case: Case, judgement: Judgement) -> str:
    """The state of each product then, one sentence each; empty without a point in time.

    Also empty if none could be compared, which another text explains.
    """
    at, metrics = case.asked.at, case.of(METRICS)
    if at is None or metrics is None:
        return ""
    products = (case.asked.subject,) if case.names_subject else case.products
    told_of = [words for one in products if (words := _then(case, judgement, metrics, one, at))]
    if not told_of:
        return ""
    states = "; ".join(state for state, _ in told_of[:_MOST_NAMED])
    lines = "\n".join(f"- {line}" for _, line in told_of[:_MOST_NAMED] if line)
    head = f"At the time you mention, {states}. I checked the time{period(case)}."
    return f"{head}\n\n{lines}".strip()


def came_later(case: Case, top: Suspicion) -> str:
    """`What follows came later, from 12:31 UTC on. `; empty where it was under way at that point."""
    at, since = case.asked.at, top.since
    if at is None or since is None or since <= at or top.began_before:
        return ""
    return f"What follows came later, from {clock(since, case.now)} on. "


def _then(
    case: Case, judgement: Judgement, metrics: SeenResult, product: str, at: datetime
) -> tuple[str, str] | None:
    points = [
        point
        for one in (*judgement.suspects, *judgement.others)
        if one.product == product
        for point in one.ordered
        if isinstance(point.fact, Moved | LogFact) and point.counts
    ]
    name, mark = plain(product), f"[{metrics.mark}]"
    if ill := [point for point in points if _lasted(point, at)]:
        return f"{name} was not as usual", named(product, told(ill[0], case.now))
    if lacking := list(_lacking(metrics, product, at)):
        return f"{name} was not measured", f"no samples of {name}'s {', '.join(lacking)} {mark}"
    if any(_onset(point) is None for point in points):
        return f"I cannot say how {name} was: it is not known when its changes began", ""
    if any(at < onset <= at + _EDGE for point in points if (onset := _onset(point))):
        return f"{name} was at the edge of its usual range", ""
    own = [fact for fact in judgement.facts.moved if fact.product == product]
    off = {plain(fact.role) for fact in own if not _is_clear(fact, at)}
    within = metrics.mapping("within").get(product)
    known = set(within.split() if isinstance(within, str) else ())
    usual = sorted((known | {plain(fact.role) for fact in own}) - off)
    little = f"{', '.join(sorted(off))} of {name} changed a little" if off else ""
    if not usual:
        return (f"I cannot say that {name} was normal", f"{little} {mark}") if off else None
    shown = f"no change then in {', '.join(usual)} of {name}{f'; {little}' if off else ''} {mark}"
    return f"{name} was as usual", shown


def _is_clear(fact: Moved, at: datetime) -> bool:
    if fact.since is not None and fact.since > at and not fact.since_before:
        return True
    return fact.until is not None and fact.until <= at


def _lasted(point: Point, at: datetime) -> bool:
    """Whether it was under way then, as far as its onset and its end are known."""
    fact, since = point.fact, _onset(point)
    if since is None or since > at:
        return False
    until = fact.until if isinstance(fact, Moved | LogFact) else None
    last = fact.last_at if isinstance(fact, Moved) else None
    return (until is None or at < until) and (last is None or at <= last)


def _onset(point: Point) -> datetime | None:
    return point.fact.since if isinstance(point.fact, Moved | LogFact) else None


def _lacking(metrics: SeenResult, product: str, at: datetime) -> Iterator[str]:
    for row in metrics.rows("gaps"):
        since, until = instant(text_of(row, "since")), instant(text_of(row, "until"))
        if text_of(row, "product") != product or row.get("is_down") is True or since is None:
            continue
        if since < at and (until is None or at < until):
            yield from map(plain, text_of(row, "roles").split())
