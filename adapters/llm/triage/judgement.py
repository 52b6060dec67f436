"""What a case comes to: a verdict, suspects, and how much was looked at. Never surer than that."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

from adapters.llm.stated import Stated
from adapters.llm.triage.case import Case
from adapters.llm.triage.coverage import (
    looked_at,
    not_looked_at,
    own_blind,
    roles_within,
    saw_anything,
)
from adapters.llm.triage.evidence import METRICS, Facts, LogFact, Moved, facts_of
from adapters.llm.triage.ranking import suspicions
from adapters.llm.triage.surroundings import ERRORS, new_errors
from adapters.llm.triage.undone import Undone, before, looked_since, settled, undone
from adapters.llm.triage.vanished import RecordFact
from adapters.llm.triage.weigh import BLAMED, SUSPECTED, Suspicion, is_figure
from adapters.llm.triage.worth_a_look import beyond_alone, worth_a_look
from tools.analysis.usual import UNUSUAL

Verdict = Literal["cause", "symptoms", "healthy", "unknown"]

MOST_SUSPECTS: Final = 5
WORTH_NAMING: Final = 1.0
FIRM: Final = 10.0  # points of it that are not weak
DOUBTFUL: Final = 10.0  # points from which "nothing is wrong" must not be said
DOUBTFUL_FIGURES: Final = 3.0  # of a latency or a share of failures, or of what fills up


@dataclass(frozen=True, slots=True)
class Judgement:
    """The verdict. `suspects` are named, best first; `others` have too little evidence.

    `errors` are errors on the subject's path that became more frequent. `own_blind` is the entry of
    `missing` that says why no figure of the subject could be compared.
    """

    verdict: Verdict
    suspects: Sequence[Suspicion]
    others: Sequence[Suspicion]
    errors: Sequence[LogFact]
    looked_at: Sequence[str]
    missing: Sequence[str]
    facts: Facts
    left_out: Sequence[
        tuple[Suspicion, Stated]
    ] = ()  # suspects that people ruled out, with other suspects
    own_blind: str = ""
    undone: Undone | None = None
    blamed: Suspicion | None = None  # before that rollback, where all is calm since


def judged(case: Case) -> Judgement:
    """Judge all that was seen; where a deploy was rolled back, by what came since, if that is calm."""
    over = undone(case)
    if over is None:
        return _judged(case, facts_of(case))
    earlier = before(case, over)
    found = _judged(earlier, facts_of(earlier))
    if looked_since(case, over):
        since = _judged(case, settled(facts_of(case), over))
        if since.verdict != "cause":
            return replace(since, undone=over, blamed=next(iter(found.suspects), None))
    return replace(found, undone=over) if is_blamed(found, over) else found


def is_blamed(found: Judgement, over: Undone) -> bool:
    """Whether the rolled-back version is, or may be, the cause found."""
    if not found.suspects:
        return False
    deploy = found.suspects[0].deploy
    if deploy is not None:
        return (deploy.product, deploy.version) == (over.gone.product, over.gone.version)
    return any(one.product == over.gone.product for one in found.suspects)


def _judged(case: Case, facts: Facts) -> Judgement:
    everybody = suspicions(
        facts,
        case.subject,
        case.asked.symptom,
        is_of_one=case.names_subject or len(case.products) < 2,
    )
    left_out = list(_left_out(case, everybody))
    out = [one for one, _ in left_out]
    found = [one for one in everybody if one not in out]
    named = [one for one in found if one.weight >= SUSPECTED]
    missing = list(not_looked_at(case))
    errors = more_errors(facts, case.asked.subject)
    is_open = bool(missing or left_out or not saw_anything(case))
    if named and _is_cause(named[0], found[0]):
        verdict: Verdict = "cause"
    elif not is_open and errors:
        verdict = "symptoms"
    elif is_open or _is_doubted(case, facts, found):
        verdict = "unknown"
    else:
        verdict = "healthy"
    faint: Sequence[Suspicion] = ()
    if verdict not in {"cause", "healthy"}:
        faint = worth_a_look(
            found,
            case.asked.subject,
            is_steady=_is_steady(case, facts),
            without_earlier_lines=facts.without_earlier_lines,
        )
    if verdict == "unknown" and not faint and not case.asked.subject:
        faint = beyond_alone(found, facts)
    if faint:
        verdict = "symptoms"
    is_cause = verdict == "cause"
    return Judgement(
        verdict=verdict,
        suspects=[one for one in found if one.weight >= WORTH_NAMING][:MOST_SUSPECTS]
        if is_cause
        else faint,
        others=() if is_cause else [one for one in found if one.points][:MOST_SUSPECTS],
        errors=errors,
        looked_at=list(looked_at(case)),
        missing=missing,
        facts=facts,
        left_out=left_out,
        own_blind=own_blind(case, found if is_cause else faint),
    )


def _is_cause(named: Suspicion, first: Suspicion) -> bool:
    is_over_alone = named.over_since is not None and first.over_since is None
    return named.weight >= BLAMED and named.firm >= FIRM and not is_over_alone


def _is_doubted(case: Case, facts: Facts, found: Sequence[Suspicion]) -> bool:
    """Whether anything moved, is new, is gone or is beyond all before, of the products in question."""
    return (
        any(_is_doubtful(one, case.subject) for one in found)
        or _has_new_errors(case)
        or _has_vanished(case, facts)
        or bool(unexplained(case, facts))
        or _has_moved(case, facts)
        or any(one.is_bad and _is_in_question(case, one.product) for one in facts.standing)
    )


def _is_steady(case: Case, facts: Facts) -> bool:
    metrics, subject = case.of(METRICS), case.asked.subject
    if metrics is None or roles_within(metrics, subject).isdisjoint({"latency", "errors"}):
        return False
    return not any(one.product == subject for one in facts.moved)


def _left_out(case: Case, found: Sequence[Suspicion]) -> Iterator[tuple[Suspicion, Stated]]:
    for one in found:
        said = next((s for s in case.stated if s.rules_out(one.product, one.kind)), None)
        if said is not None and one.weight >= SUSPECTED:
            yield one, said


def more_errors(facts: Facts, subject: str) -> Sequence[LogFact]:
    """Errors that contradict "nothing is wrong": of the subject, of products that it may reach, or
    naming it.

    Only a product that is certainly not on the path is left out, and none if the question names
    none (empty). Few errors and calm figures make no difference: some errors show in no figure.
    """
    reach = facts.graph.reach(subject)
    found = [
        fact
        for fact in facts.logs
        if fact.is_more_errors
        and (
            fact.product in reach
            or not subject
            or subject in fact.names
            or not (facts.graph.knows(subject) and facts.graph.knows(fact.product))
        )
    ]
    return sorted(found, key=lambda fact: (fact.product != subject, -fact.more))


def _has_new_errors(case: Case) -> bool:
    return any(
        new_errors(seen)
        for seen in case.all_of(ERRORS)
        if seen.arguments.get("product") == case.subject
    )


def _has_vanished(case: Case, facts: Facts) -> bool:
    subject, graph = case.asked.subject, facts.graph
    reach = graph.reach(subject)
    return any(
        not subject
        or one.product in reach
        or not (graph.knows(subject) and graph.knows(one.product))
        for one in facts.gone
    )


def unexplained(case: Case, facts: Facts) -> Sequence[RecordFact]:
    """Series of the products in question that are further from usual than ever before."""
    return [one for one in facts.records if _is_in_question(case, one.product)]


def _has_moved(case: Case, facts: Facts) -> bool:
    return any(
        one.beyond and one.score >= UNUSUAL and one.over_since is None and not one.is_back
        for one in facts.moved
        if _is_in_question(case, one.product)
    )


def _is_in_question(case: Case, product: str) -> bool:
    whom = (case.asked.subject,) if case.asked.subject else case.products
    return not whom or product in whom


def _is_doubtful(one: Suspicion, subject: str) -> bool:
    """Any change of the subject counts; of other products only changes beyond the earlier range."""
    figures = [
        p
        for p in one.points
        if is_figure(p)
        and isinstance(p.fact, Moved)
        and (one.product == subject or p.fact.is_unusual)
    ]
    return one.weight >= DOUBTFUL or any(p.points >= DOUBTFUL_FIGURES for p in figures)
