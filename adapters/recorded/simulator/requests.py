"""Single requests through the shop: a tree of calls with times, failures and retries.

A trace id begins with its start in seconds (as X-Ray's do), so that one trace is found again by
simulating one minute, and nothing needs an index.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from math import exp
from random import Random

from adapters.recorded.simulator.scenario import Fault
from adapters.recorded.simulator.seeded import below, load, stream
from adapters.recorded.simulator.steady import times
from adapters.recorded.simulator.topology import (
    BY_NAME,
    HOSTS,
    ROUTES,
    Call,
    Route,
    Service,
    calls_of,
)
from tools.capabilities import Span, Trace

_CANDIDATES_PER_MINUTE = 8
_SAMPLES_PER_MINUTE = 2  # kept though neither slow nor failed
_ERROR_BIAS = 2.0  # tail sampling keeps failures more often than they happen
# A rarer failure would occur less than a few times a day in the sample: each would look like an
# error unseen for a day, and no day would be quiet for long.
_ORDINARY_ERRORS = 0.0015
_SAMPLED = [*accumulate(route.sampled for route in ROUTES)]
_RETRY_FAILS = 0.6  # a second attempt at a faulty service meets the same fault


@dataclass(slots=True)
class Visit:
    """One service doing one piece of work. `error` is empty unless it failed."""

    service: str
    operation: str
    host: str
    start_us: int
    attempt: int = 1
    duration_us: int = 0
    self_us: int = 0
    error: str = ""
    children: list["Visit"] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Request:
    trace_id: str
    route: Route
    root: Visit
    slow: bool

    def visits(self) -> Iterator[tuple[Visit, Visit | None]]:
        stack: list[tuple[Visit, Visit | None]] = [(self.root, None)]
        while stack:
            visit, parent = stack.pop()
            yield visit, parent
            if visit.children:
                stack += [(child, visit) for child in reversed(visit.children)]


def minute_of(trace_id: str) -> int | None:
    """The minute (since the epoch) in which a trace began, None when it is not one of ours."""
    try:
        return int(trace_id[:8], 16) // 60
    except ValueError:
        return None


def requests_in(seed: str, minute: int, fault: Fault | None) -> Sequence[Request]:
    """The kept requests that began in a minute: all slow and failed ones, and a few samples."""
    random = stream(seed, "requests", minute)
    kept: list[Request] = []
    for number in range(_CANDIDATES_PER_MINUTE):
        start_us = minute * 60_000_000 + random.randrange(60_000) * 1000
        (route,) = random.choices(ROUTES, cum_weights=_SAMPLED)
        walk = _Walk(random, fault, start_us, route)
        root = walk.visit("web", route.name, start_us)
        slow = root.duration_us > route.slow_ms * 1000
        trace_id = f"{start_us // 1_000_000:08x}{random.getrandbits(96):024x}"
        if slow or root.error or number < _SAMPLES_PER_MINUTE:
            kept.append(Request(trace_id, route, root, slow))
    return kept


class _Walk:
    def __init__(self, random: Random, fault: Fault | None, start_us: int, route: Route) -> None:
        at_s = start_us / 1e6
        self._random = random
        self._intensity = fault.intensity(at_s) if fault is not None else 0.0
        self._fault = fault if self._intensity > 0.0 else None
        self._faulty = self._fault.service if self._fault is not None else ""
        self._pressure = 0.9 + 0.2 * load(at_s)
        self._route = route

    def visit(self, name: str, operation: str, start_us: int, attempt: int = 1) -> Visit:
        service = BY_NAME[name]
        hosts = HOSTS[name]
        host = hosts[below(self._random, len(hosts))]
        visit = Visit(name, operation, host, start_us, attempt)
        calls = self._planned(name)
        visit.self_us = self._self_us(service)
        slice_us = visit.self_us // (len(calls) + 1)
        cursor_us = start_us + slice_us
        for call in calls:
            cursor_us = self._call(visit, call, cursor_us) + slice_us
            if visit.error:
                break
        visit.duration_us = cursor_us - start_us
        if not visit.error:
            self._maybe_fail(visit, service)
        return visit

    def _planned(self, name: str) -> Sequence[Call]:
        calls = self._route.calls if name == "gateway" else calls_of(name)
        if not calls:
            return calls
        draw = self._random.random
        if name != self._faulty:
            return [
                call
                for call in calls
                if call.share >= 1.0 or draw() < call.share
                for _ in range(call.times)
            ]
        made = [call for call in calls if call.share >= 1.0 or draw() < call.share]
        often = (round(times(call, name, self._fault, self._intensity)) for call in made)
        return [call for call, count in zip(made, often, strict=True) for _ in range(count)]

    def _call(self, caller: Visit, call: Call, start_us: int) -> int:
        """Make one call, and once more when it fails; the instant at which the caller goes on."""
        child = self.visit(call.target, call.operation, start_us)
        caller.children.append(child)
        if child.error and caller.service not in {"web", "gateway"}:
            again_us = start_us + child.duration_us + 20_000  # a fixed back-off of 20 ms
            child = self.visit(call.target, call.operation, again_us, attempt=2)
            caller.children.append(child)
        if child.error:
            caller.error = f"{call.target}: {child.error}"[:160]
        return child.start_us + child.duration_us

    def _self_us(self, service: Service) -> int:
        own_ms = service.self_ms * self._pressure * exp(self._random.normalvariate(0.0, 0.3))
        if self._fault is not None and service.name == self._faulty:
            added_ms = self._fault.added_self_ms * self._intensity
            own_ms += added_ms * exp(self._random.normalvariate(0.0, 0.25))
        return int(own_ms * 1000)

    def _maybe_fail(self, visit: Visit, service: Service) -> None:
        fails = self._random.random() < service.error_ratio
        if fails and service.error_ratio >= _ORDINARY_ERRORS:
            visit.error = "unexpected EOF from peer"
        fault = self._fault
        if fault is None or service.name != self._faulty:
            return
        chance = fault.added_error_ratio * _ERROR_BIAS if visit.attempt == 1 else _RETRY_FAILS
        if self._random.random() < chance * self._intensity:
            visit.error = fault.error_text
            waited_us = max(0, int(fault.timeout_ms * 1000) - visit.duration_us)
            visit.self_us += waited_us
            visit.duration_us += waited_us


def trace_of(request: Request, fault: Fault | None, versions: Mapping[str, str]) -> Trace:
    """The whole trace; its first span is the root. `versions` are the running versions by service."""
    random = stream(request.trace_id)
    ids: dict[int, str] = {}
    spans: list[Span] = []
    for visit, parent in request.visits():
        ids[id(visit)] = span_id = f"{random.getrandbits(64) | 1:016x}"
        parent_id = ids[id(parent)] if parent is not None else ""
        spans.append(_span(visit, span_id, parent_id, versions))
        bits = random.getrandbits(64)  # drawn for every visit, so that a fault moves no other id
        if fault is not None and fault.service == visit.service and fault.wait_operation:
            spans += _waits(visit, f"{bits | 1:016x}", span_id, fault)
    return Trace(request.trace_id, tuple(spans))


def _span(visit: Visit, span_id: str, parent_id: str, versions: Mapping[str, str]) -> Span:
    tags = {"host": visit.host, "version": versions[visit.service]}
    if BY_NAME[visit.service].datastore:
        tags["db.system"] = "postgresql"
    if visit.attempt > 1:
        tags["retry.attempt"] = str(visit.attempt)
    return Span(
        span_id,
        parent_id,
        visit.service,
        visit.operation,
        visit.start_us,
        visit.duration_us,
        status="error" if visit.error else "ok",
        message=visit.error,
        tags=tags,
    )


def _waits(visit: Visit, span_id: str, parent_id: str, fault: Fault) -> Iterator[Span]:
    waited_us = visit.self_us - int(BY_NAME[visit.service].self_ms * 2000)
    if waited_us <= 0:
        return
    yield Span(
        span_id,
        parent_id,
        visit.service,
        fault.wait_operation,
        visit.start_us,
        min(waited_us, visit.duration_us),
        status="error" if visit.error else "ok",
        tags={"host": visit.host, "db.pool.max": "40", "db.pool.in_use": "40"},
    )
