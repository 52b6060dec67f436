"""A simulated request as the spans that tracing would have stored."""

from collections.abc import Iterator, Mapping

from adapters.recorded.simulator.requests import Request, Visit
from adapters.recorded.simulator.scenario import Fault
from adapters.recorded.simulator.seeded import stream
from adapters.recorded.simulator.topology import BY_NAME
from tools.capabilities import Span, Trace


def trace_of(request: Request, fault: Fault | None, versions: Mapping[str, str]) -> Trace:
    """The whole trace; its first span holds the others. `versions` is what ran where at the time."""
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
    """The span in which the time shows that a fault added to its service."""
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
