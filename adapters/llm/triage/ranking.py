"""From points to ranked suspects.

Symptoms that travel along calls (latency, errors, waiting) are moved from a caller to the product
that explains them: the deepest on an anomalous path keeps them. Ongoing trouble ranks before
trouble that is over.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Final

from adapters.llm.triage.cluster_facts import IllFact
from adapters.llm.triage.evidence import Facts, StandingFact
from adapters.llm.triage.weigh import (
    BLAMED,
    BLAMED_WITHIN,
    CLOCK_TOLERANCE,
    PASSED_ON,
    SUSPECTED,
    Point,
    Suspicion,
    points_of,
)
from tools.analysis.usual import UNUSUAL

_INHERITED: Final = 0.25  # of what callers pass on, what speaks against the called one as well
_EXPLAINS: Final = 0.4  # of the caller's points along calls


def suspicions(
    facts: Facts, subject: str, symptom: str, *, is_of_one: bool = True
) -> Sequence[Suspicion]:
    """Ranked, strongest first. `symptom` is the role that people complain about, or empty.

    A product that the symptom's requests never reach is suspected only without another suspect; or
    if the question names no product (not `is_of_one`).
    """
    bounded = is_of_one and facts.graph.called_by(subject)
    reach = facts.graph.reach(subject) if bounded else frozenset()
    found = _ranked(facts, subject, symptom, reach)
    if reach and not any(one.weight >= SUSPECTED for one in found):
        return _ranked(facts, subject, symptom, frozenset())
    return found


def _ranked(facts: Facts, subject: str, symptom: str, reach: frozenset[str]) -> Sequence[Suspicion]:
    found: dict[str, Suspicion] = {}
    for product, point in points_of(facts, subject, symptom):
        if not product or (reach and product not in reach and facts.graph.knows(product)):
            continue
        found.setdefault(product, Suspicion(product)).points.append(point)
    for product, one in list(found.items()):
        one.points = list(_heaviest(one.points))
        if not one.points:
            del found[product]
    _blame_deploys(found, facts)
    path = {p: sum(x.points for x in one.points if x.travels) for p, one in found.items()}
    firm = {p: sum(x.points for x in one.points if _explains(x)) for p, one in found.items()}
    over = frozenset(p for p, one in found.items() if one.over_since is not None)
    for product, one in found.items():
        # Trouble that is over explains nothing current.
        able = firm if product in over else {p: w for p, w in firm.items() if p not in over}
        explains = {**able, product: path[product]}
        one.passed_to = facts.graph.passes_on(product, explains, _EXPLAINS)
        if one.passed_to:
            lost = path[product] * (1 - PASSED_ON)
            found[one.passed_to].inherited += min(lost, path[one.passed_to]) * _INHERITED
    late = over if _goes_on(found, facts, subject, over) else frozenset()
    ranked = sorted(
        found.values(),
        key=lambda one: (
            one.product in late,
            _is_only_symptom(one, subject, found, late),
            -one.weight,
            one.product,
        ),
    )
    causes = [
        one
        for one in ranked
        if one.product not in late and not _is_only_symptom(one, subject, found, late)
    ]
    first = max(causes, key=lambda one: one.blame, default=None)
    return sorted(ranked, key=lambda one: one is not first)


def _explains(point: Point) -> bool:
    return not point.is_weak or isinstance(point.fact, StandingFact)


def _goes_on(
    found: Mapping[str, Suspicion], facts: Facts, subject: str, over: frozenset[str]
) -> bool:
    if any(one.weight >= SUSPECTED for product, one in found.items() if product not in over):
        return True
    own = (m for m in facts.moved if m.product == subject and m.score >= UNUSUAL)
    is_one = subject in found and subject not in over
    return is_one and any(moved.over_since is None for moved in own)


def _is_only_symptom(
    one: Suspicion, subject: str, found: Mapping[str, Suspicion], late: frozenset[str]
) -> bool:
    """The subject ranks last, unless a cause is its own or no other product explains it."""
    able = (o for product, o in found.items() if product != subject and product not in late)
    others = any(o.weight >= SUSPECTED for o in able)
    return one.product == subject and one.own < BLAMED and others


def _heaviest(points: Sequence[Point]) -> Iterator[Point]:
    taken: dict[str, int] = {}
    for point in sorted(points, key=lambda one: -one.points):
        # Figures of unknown meaning are not of one kind, as those with a role are.
        is_unnamed = isinstance(point.fact, StandingFact) and point.kind == "other"
        most = 3 if is_unnamed or isinstance(point.fact, IllFact) else 1
        if point.points > 0 and taken.get(point.kind, 0) < most:
            taken[point.kind] = taken.get(point.kind, 0) + 1
            alike = [one.until for one in points if one.kind == point.kind and one.counts]
            ends = [until for until in alike if until is not None]
            until = max(ends) if ends and len(ends) == len(alike) else None
            yield replace(point, until=until if point.counts else point.until)


def _blame_deploys(found: dict[str, Suspicion], facts: Facts) -> None:
    """A product's own deploy shortly before its trouble began; only where there is trouble."""
    for product, one in found.items():
        since = one.since
        if since is None or one.weight < SUSPECTED:
            continue
        # Where only an end of the onset is known, what came after that is no cause.
        tolerance = timedelta() if one.began_before else CLOCK_TOLERANCE
        for deploy in facts.deploys:
            first, last = deploy.at - tolerance, deploy.at + BLAMED_WITHIN
            if deploy.product == product and first <= since <= last:
                one.points.append(Point("deploy", 30.0, False, False, deploy))
                break
