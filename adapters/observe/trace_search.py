"""What every trace search shares: which traces fit, their summaries, the slowest first."""

from collections.abc import Iterable, Sequence
from typing import Final

from adapters.observe.instants import check_order, to_ns
from tools.capabilities import Span, Trace, TraceQuery, TraceSummary
from tools.errors import InvalidArguments

MOST_TRACES: Final = 100  # of one answer; Jaeger's own default
_MOST_CHARS: Final = 200


def checked(query: TraceQuery) -> TraceQuery:
    """Raises InvalidArguments for an empty range or an invalid name."""
    check_order(query.interval)
    for what, text in (("product", query.product), ("operation", query.operation)):
        if len(text) > _MOST_CHARS or not text.isprintable():
            raise InvalidArguments(f"{what}: at most {_MOST_CHARS} printable characters")
    if not query.product.strip():
        raise InvalidArguments("name one product")
    return query


def fits(trace: Trace, query: TraceQuery) -> bool:
    """Whether one span of the product's is all that is asked for, and began in the range."""
    start_us, end_us = (to_ns(at) // 1000 for at in (query.interval.start, query.interval.end))
    return any(
        span.service == query.product
        and start_us <= span.start_us < end_us
        and query.operation in ("", span.operation)
        and span.duration_us >= query.min_duration_ms * 1000
        and (span.status == "error" or not query.errors)
        for span in trace.spans
    )


def summary_of(trace: Trace) -> TraceSummary:
    """A trace with its spans, in one line. There is one span at least."""
    begun = min(span.start_us for span in trace.spans)
    ended = max(span.start_us + span.duration_us for span in trace.spans)
    root = min(trace.spans, key=lambda span: (bool(span.parent_id), span.start_us))
    return TraceSummary(
        trace.trace_id,
        begun,
        ended - begun,
        root.service,
        root.operation,
        tuple(sorted({span.service for span in trace.spans})),
        len(trace.spans),
        sum(span.status == "error" for span in trace.spans),
        calls_of(trace.spans),
    )


def calls_of(spans: Sequence[Span]) -> Sequence[tuple[str, str]]:
    service = {span.span_id: span.service for span in spans}
    calls = {(service.get(span.parent_id, ""), span.service) for span in spans}
    return tuple(sorted((a, b) for a, b in calls if a and b and a != b))


def slowest(found: Iterable[TraceSummary], limit: int) -> Sequence[TraceSummary]:
    """Of equal ones the newest first."""
    ordered = sorted(found, key=lambda one: (-one.duration_us, -one.start_us, one.trace_id))
    return tuple(ordered[: max(1, min(limit, MOST_TRACES))])
