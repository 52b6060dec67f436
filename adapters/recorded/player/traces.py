"""The traces of a case."""

import asyncio
from collections.abc import Mapping, Sequence

from adapters.observe.instants import check_order, to_ns
from adapters.observe.trace_ids import trace_id_of
from adapters.observe.trace_search import checked, fits, slowest, summary_of
from tools.capabilities import (
    Interval,
    Span,
    Trace,
    TraceQuery,
    TraceSample,
    TracesFound,
    TraceSummary,
)

_TRACES_BETWEEN_YIELDS = 50


class PackedTraces:
    """Traces by id; one that had not ended when the question was asked is not there."""

    def __init__(
        self, spans: Mapping[str, Sequence[Span]], calls: Sequence[tuple[str, str]] = ()
    ) -> None:
        self._calls = tuple(calls)
        self._traces = {trace_id_of(trace): tuple(found) for trace, found in spans.items()}

    async def get(self, trace_id: str) -> Trace | None:
        """None when unknown. Raises InvalidArguments: no trace id."""
        wanted = trace_id_of(trace_id)
        spans = self._traces.get(wanted)
        return Trace(wanted, spans) if spans else None

    async def sample(self, products: Sequence[str], interval: Interval, limit: int) -> TraceSample:
        """The newest first; the case's own graph beside them."""
        check_order(interval)
        start_us, end_us = to_ns(interval.start) // 1000, to_ns(interval.end) // 1000
        wanted, found = set(products), list[tuple[int, Trace]]()
        for number, (trace_id, spans) in enumerate(self._traces.items()):
            begun = min(span.start_us for span in spans)
            if start_us <= begun < end_us and any(span.service in wanted for span in spans):
                found.append((begun, Trace(trace_id, spans)))
            if number % _TRACES_BETWEEN_YIELDS == 0:
                await asyncio.sleep(0)
        newest = sorted(found, key=lambda one: (-one[0], one[1].trace_id))[:limit]
        return TraceSample([trace for _, trace in newest], self._calls)

    async def search(self, query: TraceQuery) -> TracesFound:
        """Those that fit, the slowest first."""
        checked(query)
        found: list[TraceSummary] = []
        names: set[str] = set()
        for number, (trace_id, spans) in enumerate(self._traces.items()):
            names.update(span.service for span in spans)
            trace = Trace(trace_id, spans)
            if fits(trace, query):
                found.append(summary_of(trace))
            if number % _TRACES_BETWEEN_YIELDS == 0:
                await asyncio.sleep(0)
        known = ", ".join(sorted(names)[:20])
        unknown = [f"no service {query.product!r}; there are: {known}"]
        return TracesFound(slowest(found, query.limit), () if query.product in names else unknown)
