"""The traces of a case."""

import asyncio
from collections.abc import Mapping, Sequence

from adapters.observe.trace_ids import trace_id_of
from adapters.observe.trace_search import checked, fits, slowest, summary_of
from tools.capabilities import Span, Trace, TraceQuery, TracesFound, TraceSummary

_TRACES_BETWEEN_YIELDS = 50


class PackedTraces:
    """Traces by id; one that had not ended when the question was asked is not there."""

    def __init__(self, spans: Mapping[str, Sequence[Span]]) -> None:
        self._traces = {trace_id_of(trace): tuple(found) for trace, found in spans.items()}

    async def get(self, trace_id: str) -> Trace | None:
        """None when unknown. Raises InvalidArguments: no trace id."""
        wanted = trace_id_of(trace_id)
        spans = self._traces.get(wanted)
        return Trace(wanted, spans) if spans else None

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
