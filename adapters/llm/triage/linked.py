"""Whether the suspect is related to the product asked about, by the evidence."""

from collections.abc import Iterator, Sequence
from typing import Final

from adapters.llm.triage.case import Case
from adapters.llm.triage.cluster_facts import IllFact
from adapters.llm.triage.evidence import Facts, Moved, SpanFact, StandingFact
from adapters.llm.triage.judgement import Judgement
from adapters.llm.triage.telling import errors_line, told
from adapters.llm.triage.weigh import Point

_MOVED: Final = 3.0  # spreads from which core__sweep_metrics counts a product as moved


def own_trouble(case: Case, facts: Facts) -> Sequence[str]:
    """The abnormal figures of the product asked about, in words, the worst first."""
    return list(_troubles(case, facts))


def _troubles(case: Case, facts: Facts) -> Iterator[str]:
    subject = case.subject
    moved = [one for one in facts.moved if one.score >= _MOVED]
    found: Sequence[Moved | StandingFact | SpanFact | IllFact] = (
        *moved,
        *facts.standing,
        *facts.spans,
        *(one for one in facts.ill if not one.over),
    )
    for fact in found:
        if fact.product == subject:
            yield told(Point("", 0.0, False, True, fact), case.now)
    for line in facts.logs:
        if line.product == subject and line.is_more_errors:
            yield errors_line(line, case.now)


def is_linked(case: Case, judgement: Judgement) -> bool:
    """Whether the suspect is the subject, or related to it.

    It is related if the subject has trouble as well, calls it, or names it in its log.
    """
    top, subject = judgement.suspects[0].product, case.subject
    if not case.names_subject or top == subject:
        return True
    facts = judgement.facts
    return (
        bool(own_trouble(case, facts))
        or top in facts.graph.reach(subject)
        or any(line.product == subject and top in line.names for line in facts.logs)
    )
