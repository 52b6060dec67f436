"""Findings that do not fit into the answer; Kortex shows them under Evidence."""

import re
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Final

from adapters.llm.triage.case import Case
from adapters.llm.triage.cluster_facts import IllFact
from adapters.llm.triage.evidence import CLUSTER, LOGS, METRICS, SWEEPS, Moved, swept
from adapters.llm.triage.judgement import Judgement
from adapters.llm.triage.listed import last_deploy
from adapters.llm.triage.surroundings import around, quoted
from adapters.llm.triage.telling import clock, suspect_line, told
from adapters.llm.triage.unmeasured import samples_missing
from adapters.llm.triage.weigh import SUSPECTED, Point, Suspicion

MOST_LINES: Final = 5  # of evidence that fit on a phone's screen
_MOST_POINTS: Final = 4
_MOST_LACKING: Final = 2


def details(case: Case, judgement: Judgement) -> Sequence[str]:
    return list(dict.fromkeys(_details(case, judgement)))


def _details(case: Case, judgement: Judgement) -> Iterator[str]:
    top = judgement.suspects[0] if judgement.verdict == "cause" else None
    shown = shown_points(top, case.asked.symptom) if top is not None else ()
    if top is not None:
        rest = (
            point for point in top.ordered if point not in shown and not _is_repeated(point, top)
        )
        yield from (told(point, case.now) for point in rest)
    yield from (f"also suspected: {suspect_line(one, case.now)}" for one in judgement.suspects[1:])
    yield from (f"not the cause: {line}" for line in ruled_out(case, judgement))
    if top is None:
        yield from (suspect_line(one, case.now) for one in judgement.others if one.points)
    yield from around(case)
    yield from quiet(case, judgement)


def shown_points(top: Suspicion, symptom: str) -> Sequence[Point]:
    """The points to show: the symptom asked about, the first change, then the heaviest."""
    asked = [p for p in top.ordered if isinstance(p.fact, Moved) and p.fact.role == symptom][:1]
    first = [p for p in top.ordered if p.fact is top.first and p not in asked]
    before = [*asked, *first]
    ordered = [*before, *(point for point in top.ordered if point not in before)]
    return [point for point in ordered if not _is_repeated(point, top)][:_MOST_POINTS]


def _is_repeated(point: Point, top: Suspicion) -> bool:
    fact = point.fact
    return (
        isinstance(fact, IllFact)
        and fact.warned
        and any(
            isinstance(ill, IllFact)
            and not ill.warned
            and ill.name == fact.name
            and fact.detail in ill.detail
            for ill in (other.fact for other in top.ordered)
        )
    )


def ruled_out(case: Case, judgement: Judgement) -> Iterator[str]:
    blamed = {one.product for one in judgement.suspects if one.weight >= SUSPECTED}
    for fact in judgement.facts.deploys:
        if fact.product not in blamed:
            yield (
                f"the deploy of {fact.product} {fact.version} at {clock(fact.at, case.now)} "
                f"[{fact.seen.mark}] (its metrics hardly changed)"
            )


def quiet(case: Case, judgement: Judgement) -> Iterator[str]:
    seen = [swept(case, tool) for tool in SWEEPS]
    marks = [f"[{one.mark}]" for one in seen if one is not None]
    looked = [
        f"{text} {mark}" for text, mark in zip(counted_out(judgement), marks, strict=False) if text
    ]
    if looked:
        yield f"checked {', '.join(looked)}: otherwise normal"
    yield from islice(_unmeasured_others(case), _MOST_LACKING)
    cluster = case.of(CLUSTER)
    if cluster is not None and not cluster.rows("ill"):
        yield f"pods and nodes are healthy [{cluster.mark}]"
        for row in cluster.rows("warnings")[:2]:
            over = "past" if row.get("over") is True else "current"
            yield f"a {over} warning: {quoted(str(row.get('message', '')))} [{cluster.mark}]"
        for text in cluster.texts("risks")[:1]:
            yield f"a risk, no harm yet: {quoted(text)} [{cluster.mark}]"
    logs = swept(case, LOGS)
    if logs is not None and not logs.rows("changes"):
        yield f"no new log patterns [{logs.mark}]"
    yield from last_deploy(case)


def counted_out(judgement: Judgement) -> Sequence[str]:
    """What was looked at, without the numbers of products, which no result contains.

    Empty where no product has bounds.
    """
    return [
        "" if " of 0 products" in text else re.sub(r" of \d+ products", "", text)
        for text in judgement.looked_at
    ]


def _unmeasured_others(case: Case) -> Iterator[str]:
    metrics, others = case.of(METRICS), [one for one in case.products if one != case.subject]
    if metrics is not None and others and case.names_subject:
        yield from samples_missing(metrics, others, case.now, goes_on=True)
