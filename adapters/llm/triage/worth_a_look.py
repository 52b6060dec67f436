"""The products to check first when no cause is established: evidence that is too weak for blame."""

from collections.abc import Collection, Iterator, Sequence
from typing import Final

from adapters.llm.triage.evidence import Facts, Moved, SpanFact, StandingFact
from adapters.llm.triage.vanished import GoneFact
from adapters.llm.triage.weigh import CLOCK_TOLERANCE, OWN_ERRORS, Point, Suspicion, is_figure
from tools.analysis.usual import UNUSUAL

MOST: Final = 3
_ALONE: Final = 10.0  # points; below them a figure may be chance
_COINCIDES: Final = 1.5  # of its own figures that began when other products became slow or failed
_TOGETHER: Final = 5.0  # the same, where those who call it moved as well
_LOAD: Final = frozenset({"traffic", "network"})  # more of it is no trouble
_OVERFLOWS: Final = 10.0  # times the baseline: so much waiting is no chance
_UNUSED: Final = 0.25  # of a latency that ended: a product without requests has no samples
_LISTED: Final = 2.0  # points from which a second product is listed
# Of healthy systems about one series in 500 is beyond all before: of so few hardly any is.
_FEW_SERIES: Final = 50
_MOST_SERIES: Final = 250  # of more, two signals of one product may be beyond by chance as well
_OF_RECORD: Final = 1.0  # points of a series that left its range, which may matter little


def worth_a_look(
    found: Sequence[Suspicion],
    subject: str,
    *,
    is_steady: bool,
    without_earlier_lines: Collection[str] = (),
) -> Sequence[Suspicion]:
    """The first few suspects, if at least one has evidence that is hardly chance.

    `subject` is the product that the question names, or empty; `is_steady`: its own figures were
    compared and none changed. Then a suspect's own evidence must suffice: effects on its callers do
    not reach the subject. For products in `without_earlier_lines` it is unknown whether log lines
    are new.
    """
    began = [_began_at_once(one, found) for one in found]
    of_all = () if subject else {one.product for one in found} - {*without_earlier_lines}
    telling = [
        _is_telling(
            one, {subject, *of_all}, is_steady=is_steady, weight=_COINCIDES if at_once else 1.0
        )
        for one, at_once in zip(found, began, strict=True)
    ]
    if not any(telling):
        return ()
    listed = sorted(
        zip(found, telling, began, strict=True), key=lambda each: not (each[1] and each[2])
    )
    return [one for one, is_telling, _ in listed if is_telling or one.weight >= _LISTED][:MOST]


def beyond_alone(found: Sequence[Suspicion], facts: Facts) -> Sequence[Suspicion]:
    """The only product with a series beyond all before, where that is no chance.

    Where many were compared it may be, unless two of its signals rose. Where very many were, those
    may be as well. A restart lets signals fall.
    """
    products = {one.product for one in facts.records}
    if len(products) != 1 or facts.compared > _MOST_SERIES:
        return ()
    first = facts.records[0]
    rose = (one for one in facts.moved if one.beyond and one.score >= UNUSUAL and not one.falls)
    others = {one.signal for one in rose if one.product == first.product} - {first.signal}
    if facts.compared > _FEW_SERIES and (first.falls or not others):
        return ()
    known = (one for one in found if one.product == first.product)
    point = Point(first.role, _OF_RECORD, travels=True, is_weak=True, fact=first)
    return [next(known, Suspicion(first.product, [point]))]


def _is_telling(
    one: Suspicion, in_question: Collection[str], *, is_steady: bool, weight: float
) -> bool:
    """Its figures left all that was before, or moved along the calls; or its own bad words."""
    stands, says, beyond, moved = 0.0, 0.0, 0.0, False
    for point in one.points:
        match point.fact:
            case Moved() if is_figure(point) and point.fact.score >= UNUSUAL:
                moved = True
                beyond = max(beyond, weight * point.points if point.fact.beyond else 0.0)
            case Moved() if _overflows(point.fact):
                stands += _ALONE
            case StandingFact() if _is_trouble(point.fact):
                stands += point.points
            case GoneFact(how="ended", role="errors" | "latency", is_common=is_common) if (
                is_common or one.product not in in_question
            ):
                stands += point.points * _UNUSED
            case SpanFact() | GoneFact():
                stands += point.points
            case _ if point.kind == OWN_ERRORS and one.product in in_question:
                says = point.points
            case _:
                pass
    inherited = 0.0 if is_steady else one.inherited
    if beyond and beyond + inherited >= _ALONE:
        return True
    return (moved and inherited > 0 and one.weight >= _TOGETHER) or stands + says >= _ALONE


def _began_at_once(one: Suspicion, found: Sequence[Suspicion]) -> bool:
    felt = [
        fact.since for other in found if other is not one for fact in _going_on(other, travels=True)
    ]
    own = (fact.since for fact in _going_on(one, travels=False) if fact.beyond)
    return any(abs(since - at) <= CLOCK_TOLERANCE for since in own if since for at in felt if at)


def _going_on(one: Suspicion, *, travels: bool) -> Iterator[Moved]:
    for point in one.points:
        fact = point.fact
        if point.travels is not travels or not isinstance(fact, Moved) or not is_figure(point):
            continue
        if fact.over_since is None and fact.score >= UNUSUAL:
            yield fact


def _overflows(fact: Moved) -> bool:
    is_growing = fact.over_since is None and not fact.is_back and not fact.falls and fact.beyond
    return fact.role == "queue" and is_growing and fact.worst >= _OVERFLOWS * max(fact.usual, 1.0)


def _is_trouble(fact: StandingFact) -> bool:
    """More of one signal without a known role may be good news; several at once hardly are."""
    if fact.role == "other" and fact.is_alone and not fact.is_bad:
        return False
    return fact.role not in _LOAD
