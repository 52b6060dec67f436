"""The answer to "since when?": the onset, and what moved in the order in which it did."""

from collections.abc import Iterator
from datetime import datetime

from adapters.llm.triage.case import Case, plain
from adapters.llm.triage.deploy_facts import DeployFact
from adapters.llm.triage.details import MOST_LINES
from adapters.llm.triage.evidence import LogFact, Moved
from adapters.llm.triage.judgement import Judgement
from adapters.llm.triage.linked import own_trouble
from adapters.llm.triage.period import period
from adapters.llm.triage.telling import clock, since_text, told
from adapters.llm.triage.vanished import GoneFact
from adapters.llm.triage.weigh import Point, Suspicion


def onset(case: Case, judgement: Judgement) -> Iterator[str]:
    """Paragraphs about the first suspect; none without a suspect or a known time."""
    over, blamed = judgement.undone, judgement.blamed
    if over is not None and blamed is not None and blamed.since is not None:
        began = f"{'before ' if blamed.began_before else ''}{clock(blamed.since, case.now)}"
        until = f"until it was rolled back at {clock(over.back.at, case.now)}"
        shown = [blamed.first.mark] if blamed.first else []
        marks = ", ".join(dict.fromkeys((over.back.seen.mark, *shown)))
        yield f"**{plain(blamed.product)}: from {began} {until}.** [{marks}]"
        return
    top = next(iter(judgement.suspects), None)
    if names_other(case, top):
        lines = own_trouble(case, judgement.facts)[:MOST_LINES]
        state = (
            "moved as follows:"
            if lines
            else f"I see nothing that left its usual range{period(case)}."
        )
        yield f"**{plain(case.subject)}: {state}**"
        yield "\n".join(f"- {line}" for line in lines)
    if top is None or top.since is None:
        return
    yield f"**{plain(top.product)}:{_span(case, top, top.since)}.**"
    timed = [(at, point) for point in top.ordered if (at := _began(point)) is not None]
    lines = [told(point, case.now) for _, point in sorted(timed, key=lambda each: each[0])]
    yield "\n".join(f"- {line}" for line in lines[:MOST_LINES])
    if top.began_before:
        yield "It began before the time that I checked. Ask about an earlier time."


def names_other(case: Case, top: Suspicion | None) -> bool:
    """Whether the message itself names another product than the first suspect."""
    named = case.asked.subject.lower()
    return (
        bool(named)
        and named in case.question.lower()
        and (top is None or top.product != case.subject)
    )


def _span(case: Case, top: Suspicion, since: datetime) -> str:
    now = case.now
    if top.over_since is None and case.is_past:
        return since_text(top, now).replace(" since ", " from ", 1)
    if top.over_since is None:
        return since_text(top, now)
    before = "before " if top.began_before else ""
    return f" from {before}{clock(since, now)} until {clock(top.over_since, now)}; back to normal{'' if case.is_past else ' now'}"


def _began(point: Point) -> datetime | None:
    match point.fact:
        case Moved() | LogFact() | GoneFact():
            return point.fact.since
        case DeployFact():
            return point.fact.at
        case _:
            return None
