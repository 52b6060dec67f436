"""From facts to points against products. Each kind of evidence gives some; nothing here knows a name.

Points are comparable within one case.
"""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Final

from adapters.llm.triage.cluster_facts import IllFact
from adapters.llm.triage.cluster_findings import cluster_weight
from adapters.llm.triage.deploy_facts import DeployFact
from adapters.llm.triage.evidence import Facts, LogFact, Moved, SpanFact, StandingFact
from adapters.llm.triage.shared_dependency import kept, shared_dependency, with_server
from adapters.llm.triage.vanished import GoneFact, RecordFact
from tools.analysis.trajectory import is_small_part
from tools.analysis.usual import UNUSUAL, scale_of
from tools.log_templates import template_of

# A deploy shows within minutes; what starts later than this has another cause.
BLAMED_WITHIN: Final = timedelta(minutes=20)
CLOCK_TOLERANCE: Final = timedelta(minutes=3)
_WHOLE: Final = 0.99  # of a share of something unnamed
SATURATED: Final = 0.9  # a pool or a CPU in use beyond this queues

SUSPECTED: Final = 12.0  # points below which no product is named
BLAMED: Final = 14.0  # below it the first suspect is a symptom, not a cause
OWN_ERRORS: Final = "errors in its log"
_FEW_ERRORS: Final = 3.0  # lines; a client that went away is no trouble
_COMPLAINTS: Final = frozenset({"warn", "error", "fatal"})
_MANY_ERRORS: Final = 5.0  # this many may be a cause alone
_COUNTS: Final = 3.0  # points
_ALL_WAYS: Final = 0.8
PASSED_ON: Final = 0.4  # what a caller keeps of what the called one explains
_CONFIRMED: Final = 1.5  # if the subject changed in the same way
_UNCONFIRMED: Final = 0.6  # where its figures are there and did not move
_PER_DOUBLING: Final = {"latency": 6.0, "errors": 9.0}  # points; failures are noisy far less
_PATH_ROLES: Final = frozenset(_PER_DOUBLING)
_FILLING: Final = frozenset({"cpu", "pool", "memory", "disk", "queue", "restarts"})
_LOAD: Final = frozenset({"traffic", "network"})  # more of it is no trouble by itself
_OF_LOAD: Final = 0.3
_SHARED: Final = 1.0  # points at most of an unnamed figure that several products report alike
_LOAD_UNKNOWN: Final = 0.5  # if other products report theirs
_FELT: Final = 0.1  # of the subject's requests: a product that gets fewer explains little
_AT_LIMIT: Final = 14.0  # points of a signal at a limit that is bad for any product
_AT_THE_END: Final = frozenset({"cpu", "pool", "disk"})
_CUT_LEAST: Final = 15.0  # points of requests that end early, by how many more do
_CUT_MOST: Final = 45.0
_WHOLES: Final = frozenset({"percent", "%", "permille", "ratio", "millicores", "cores"})


@dataclass(frozen=True, slots=True)
class Point:
    """Points of one piece of evidence. `travels`: it may come from a called product.

    `is_weak`: alone it never makes a cause. `until`: when it ended; None if it continues, or if its
    kind has no times.
    """

    kind: str
    points: float
    travels: bool
    is_weak: bool
    fact: Moved | StandingFact | LogFact | SpanFact | IllFact | DeployFact | GoneFact | RecordFact
    until: datetime | None = None

    @property
    def counts(self) -> bool:
        """Whether its onset and its end are the product's."""
        return self.points >= _COUNTS

    @property
    def tells_time(self) -> bool:
        """Whether the fact has an end.

        A deploy is a moment, and a span's figure covers the whole range.
        """
        return not isinstance(self.fact, SpanFact | DeployFact)


@dataclass(slots=True)
class Suspicion:
    """A product with what speaks against it; `weight` after what it passes on was taken away."""

    product: str
    points: list[Point] = field(default_factory=list)
    passed_to: str = ""
    inherited: float = 0.0

    @property
    def weight(self) -> float:
        """Its points, those along calls lessened by what it passes on."""
        return self.inherited + sum(self._kept(point) for point in self.points)

    @property
    def firm(self) -> float:
        own = sum(self._kept(point) for point in self.points if not point.is_weak)
        return own + (self.inherited if own else 0.0)

    @property
    def blame(self) -> float:
        """The rank among suspects: weak evidence counts half."""
        return (self.weight + self.firm) / 2

    @property
    def own(self) -> float:
        """What cannot come from a called product."""
        return sum(p.points for p in self.points if not p.travels and not p.is_weak)

    def _kept(self, point: Point) -> float:
        return point.points * (PASSED_ON if self.passed_to and point.travels else 1.0)

    @property
    def ordered(self) -> Sequence[Point]:
        """The heaviest first."""
        return sorted(self.points, key=lambda point: -point.points)

    @property
    def since(self) -> datetime | None:
        """The onset: of its figures the earliest, else of its log."""
        if self.first is not None:
            return self.first.since
        facts = (point.fact for point in self.ordered)
        timed = (f.since for f in facts if isinstance(f, LogFact | GoneFact))
        return next((since for since in timed if since is not None), None)

    @property
    def first(self) -> Moved | None:
        """Of its figures the one that moved first, of several the heaviest."""
        timed = [(moved.since, moved) for moved in self._figures if moved.since is not None]
        return min(timed, key=lambda one: one[0])[1] if timed else None

    @property
    def began_before(self) -> bool:
        """Whether its onset is earlier than the data shows."""
        first = self.since
        return any(moved.since_before for moved in self._figures if moved.since == first)

    @property
    def was_under_way(self) -> bool:
        """Whether its trouble is older than the range, be its onset known or not."""
        return any(moved.under_way for moved in self._figures)

    @property
    def over_since(self) -> datetime | None:
        """When the last relevant trouble ended; None while any of it continues.

        Only a figure proves an end: a silent log may belong to a product without requests.
        """
        timed = [p for p in self.points if p.counts and p.tells_time]
        ends = [p.until for p in timed if p.until is not None]
        is_told = any(isinstance(p.fact, Moved) for p in timed)
        return max(ends) if is_told and len(ends) == len(timed) else None

    @property
    def _figures(self) -> Sequence[Moved]:
        heavy = [p for p in self.ordered if p.counts]
        return [p.fact for p in heavy if isinstance(p.fact, Moved) and p.fact.score >= 3]

    @property
    def deploy(self) -> DeployFact | None:
        return next((p.fact for p in self.points if isinstance(p.fact, DeployFact)), None)

    @property
    def is_deploy_late(self) -> bool:
        """Whether the deploy is on record for a later minute than the onset."""
        if self.deploy is None or self.since is None:
            return False
        return self.deploy.at.replace(second=0, microsecond=0) > self.since

    @property
    def kind(self) -> str:
        """What the heaviest evidence is of; a deploy before all."""
        return "deploy" if self.deploy else self.ordered[0].kind if self.points else ""


def points_of(facts: Facts, subject: str, symptom: str) -> Iterator[tuple[str, Point]]:
    """Every piece of evidence with its product.

    `symptom` is what people complain about, or empty.
    """
    shared = shared_dependency(facts)
    alike = Counter([*(m.figure for m in facts.moved), *(s.figure for s in facts.standing)])
    for product, point in _points(with_server(facts, shared), subject, symptom):
        fact, points = point.fact, kept(product, point.points, point.fact, shared)
        if isinstance(fact, Moved | StandingFact) and fact.role == "other":
            points = min(points, _SHARED) if alike[fact.figure] > 1 else points
        yield product, point if points == point.points else replace(point, points=points)


def _points(facts: Facts, subject: str, symptom: str) -> Iterator[tuple[str, Point]]:
    yield from _metric_points(facts, subject, symptom)
    yield from _log_points(facts)
    yield from _span_points(facts)
    for one in facts.standing:
        yield one.product, _standing_point(one, facts.standing, subject)
    for gone in facts.gone:
        yield gone.product, _gone_point(gone)
    for fact in facts.ill:
        if weight := cluster_weight(fact):
            kind = fact.mechanism or fact.state
            yield fact.product or fact.name, Point(kind, weight, False, False, fact)


def _metric_points(facts: Facts, subject: str, symptom: str) -> Iterator[tuple[str, Point]]:
    own = _worst_by_role(m for m in facts.moved if m.product == subject and m.score >= 1.5)
    calm = not own and subject in facts.measured
    worst = _worst_by_role(m for m in facts.moved if m.product != subject)
    for moved in facts.moved:
        if moved.role in _PATH_ROLES:
            points = _PER_DOUBLING[moved.role] * math.log2(1 + min(moved.score, 40.0))
            points *= _relevance(moved, _alike(moved, own) or _alike(moved, worst), facts)
            is_asked = symptom in ("", moved.role)
            points *= (1.0 if moved.beyond else 0.7) * (1.0 if is_asked else 0.3)
            if own.get(moved.role):
                points *= _CONFIRMED
            elif calm and moved.role == "latency":
                points *= _UNCONFIRMED
            if moved.score >= 1.5 and _grew(moved, 0.2):
                is_weak = moved.score < UNUSUAL
                yield (
                    moved.product,
                    Point(moved.role, points, True, is_weak, moved, moved.over_since),
                )
        else:
            yield from _capacity_points(moved)


def _capacity_points(moved: Moved) -> Iterator[tuple[str, Point]]:
    """Of what fills up; anything else that moved much counts a little."""
    full, size = _fullness(moved), 10 * math.log2(1 + min(moved.score, 60.0))
    if moved.role in _FILLING:
        if moved.score >= 4 and _grew(moved, 0.3 if is_full(moved) else 1.0):
            points = size * (1.0 if full is not None and full >= 0.5 else 0.3)
            is_weak = full is None or (moved.over_since is not None and not is_full(moved))
            yield moved.product, Point(moved.role, points, False, is_weak, moved, moved.over_since)
    elif moved.score >= 6 and moved.beyond and full is not None and full >= _WHOLE:
        yield moved.product, Point(moved.role, size, False, False, moved, moved.over_since)
    elif moved.score >= 6:
        points = min(8.0, math.log2(1 + moved.score))
        yield moved.product, Point(moved.role, points, True, True, moved, moved.over_since)


def _standing_point(fact: StandingFact, found: Sequence[StandingFact], subject: str) -> Point:
    """Something that queues at its limit may be a cause; anything else only shows that there is one.

    What always was so is no cause, and hardly counts unless its product is asked about.

    What travels along calls counts by its growth, compared with the largest of the same signal.
    """
    points = 2 * math.log2(1 + min(fact.size, 60.0))
    travels = fact.role in _PATH_ROLES
    if travels:
        alike = [abs(one.now - one.first) for one in found if one.signal == fact.signal]
        points *= abs(fact.now - fact.first) / max(alike) if max(alike) > 0 else 1.0
    elif fact.role in _LOAD:
        points *= _OF_LOAD
    firm = fact.is_bad and fact.role in _AT_THE_END and not fact.is_usual
    at_limit = _AT_LIMIT if fact.is_bad else 0.0
    is_others = fact.role != "errors" and fact.product != subject
    if fact.is_usual and (is_others or is_small_part(fact.limit, fact.unit, falls=fact.falls)):
        at_limit /= 2
    return Point(fact.role, points + at_limit, travels, not firm, fact)


def _gone_point(fact: GoneFact) -> Point:
    """A target that is down may be a cause; silence of a signal shows that there is one."""
    kind = "down" if fact.is_target_down else "signal gone"
    travels = fact.how == "zero" and fact.role != "other"
    return Point(kind, fact.points, travels, not fact.is_target_down, fact)


def _worst_by_role(found: Iterable[Moved]) -> dict[str, Moved]:
    worst: dict[str, Moved] = {}
    for moved in (one for one in found if one.role in _PATH_ROLES):
        for key in (moved.role, moved.signal):
            if key not in worst or _share(moved, worst[key]) > 1:
                worst[key] = moved
    return worst


def _alike(moved: Moved, by_role: Mapping[str, Moved]) -> Moved | None:
    return by_role.get(moved.signal) or by_role.get(moved.role)


def _share(moved: Moved, reference: Moved) -> float:
    own, other = (abs(m.worst - m.usual) / scale_of(m.unit) for m in (moved, reference))
    if moved.requests is not None and reference.requests is not None:
        own, other = own * moved.requests, other * reference.requests
    return own / other if other > 0 else 1.0


def _relevance(moved: Moved, reference: Moved | None, facts: Facts) -> float:
    """What of the symptom it can explain, from 0 to 1; hardly used products explain little."""
    share = min(1.0, _share(moved, reference)) if reference is not None else 1.0
    if not facts.usual_requests:
        return share
    if moved.requests is None:
        return share * _LOAD_UNKNOWN
    needed = max(facts.usual_requests, _FELT * (facts.subject_requests or 0.0))
    return share * min(1.0, moved.requests / needed)


def _grew(moved: Moved, least: float) -> bool:
    """By this share of usual at least; a share of failures counts as it is."""
    if moved.role == "errors" or moved.falls:
        return True
    return moved.worst - moved.usual >= least * abs(moved.usual)


def is_full(moved: Moved) -> bool:
    """Whether it is of something that queues when it is full, and it is."""
    full = _fullness(moved) if moved.role in _FILLING else None
    return full is not None and full >= SATURATED


def is_figure(point: Point) -> bool:
    """Whether it is of latency, of failures, or of what fills up by a known measure."""
    if not isinstance(fact := point.fact, Moved):
        return False
    return fact.role in _PATH_ROLES or (fact.role in _FILLING and not point.is_weak)


def _fullness(moved: Moved) -> float | None:
    is_part = moved.unit.lower() in _WHOLES and not moved.falls
    return moved.worst / scale_of(moved.unit) if is_part else None


def _log_points(facts: Facts) -> Iterator[tuple[str, Point]]:
    by_product: dict[str, list[LogFact]] = {}
    for fact in facts.logs:
        by_product.setdefault(fact.product, []).append(fact)
    for product, found in by_product.items():
        bad = [f for f in found if f.level in {"error", "fatal"} and f.change != "gone"]
        lines = _more_lines(bad)
        # A change in the kind of errors alone is not an increase.
        lines = min(lines, facts.more_errors.get(product, lines))
        if bad and lines >= _FEW_ERRORS:
            first, points = _most_grown(bad), _error_points(lines)
            is_weak = lines < _MANY_ERRORS or product in facts.failing_no_more
            is_weak = is_weak or _may_be_nothing(product, bad, by_product, facts)
            yield product, Point(OWN_ERRORS, points, True, is_weak, first, _last_of(bad))
            yield from _named_by(bad, lines)
        warned = [f for f in found if f.level == "warn" and f.change != "gone"]
        more = sum(fact.more for fact in warned)
        if warned and more >= 5:
            first = _most_grown(warned)
            points = 2 * math.log2(1 + more)
            yield product, Point("warnings", points, True, True, first, _last_of(warned))
        # Complaints that no longer come are no trouble.
        silent = [f for f in found if f.change == "gone" and f.level not in _COMPLAINTS]
        if silent:
            first = max(silent, key=lambda fact: fact.expected)
            points = min(30.0, 5 * math.log2(1 + first.expected))
            yield product, Point("lines that no longer come", points, False, True, first)


def _may_be_nothing(
    product: str, bad: Sequence[LogFact], by_product: Mapping[str, Sequence[LogFact]], facts: Facts
) -> bool:
    """Whether possibly old errors are over, all name another product, or occur elsewhere too."""
    if product not in facts.without_earlier_lines:
        return False
    if _last_of(bad) is not None:
        return True  # as a start writes them
    own = {template_of(fact.example) for fact in bad}
    others = (one for name, found in by_product.items() if name != product for one in found)
    is_shared = any(one.level in _COMPLAINTS and template_of(one.example) in own for one in others)
    return is_shared or all(fact.names for fact in bad)


def _named_by(bad: Sequence[LogFact], most: float) -> Iterator[tuple[str, Point]]:
    """The products that errors name, by number of lines: any client may write a single line."""
    for named in sorted({name for fact in bad for name in fact.names}):
        telling = [fact for fact in bad if named in fact.names]
        lines = min(most, _more_lines(telling))
        if lines >= _FEW_ERRORS:
            points, first = _error_points(lines) / 3, _most_grown(telling)
            yield named, Point("named by errors", points, True, True, first, _last_of(telling))


def _last_of(facts: Sequence[LogFact]) -> datetime | None:
    ends = [fact.until for fact in facts if fact.until is not None]
    return max(ends) if ends and len(ends) == len(facts) else None


def _more_lines(facts: Sequence[LogFact]) -> float:
    return sum(max(0.0, fact.more) for fact in facts)


def _error_points(lines: float) -> float:
    return min(30.0, 8 * math.log2(1 + lines))


def _most_grown(facts: Sequence[LogFact]) -> LogFact:
    return max(facts, key=lambda fact: fact.more)


def _span_points(facts: Facts) -> Iterator[tuple[str, Point]]:
    for fact in facts.spans:
        if fact.what == "cut":
            points = min(_CUT_MOST, _CUT_LEAST + 40 * (fact.after - fact.before)) * fact.weight
            yield fact.product, Point("requests end early", points, False, fact.weight < 1, fact)
            continue
        if fact.what == "failing":
            points = min(40.0, 10 + 40 * (fact.after - fact.before))
            yield fact.product, Point("failing operations", points, True, False, fact)
            continue
        growth = math.log2(max(fact.after, 1.0) / max(fact.before, 1.0))
        points = min(60.0, 10 * growth * fact.weight)
        if fact.what == "own":
            yield fact.product, Point("own time", points, False, False, fact)
            continue
        for end in (fact.product, fact.callee):
            share = facts.ways_slow.get(end, 0.0)
            # Slow on (nearly) all of its calls: the fault is not in a single called product.
            travels = share < _ALL_WAYS
            yield end, Point("way to others", points * share, travels, fact.is_outlier, fact)
