"""The traces of a case."""

from collections.abc import Mapping, Sequence

from adapters.observe.trace_ids import trace_id_of
from tools.capabilities import Span, Trace


class PackedTraces:
    """Traces by id; one that had not ended when the question was asked is not there."""

    def __init__(self, spans: Mapping[str, Sequence[Span]]) -> None:
        self._traces = {trace_id_of(trace): tuple(found) for trace, found in spans.items()}

    async def get(self, trace_id: str) -> Trace | None:
        """None when unknown. Raises InvalidArguments: no trace id."""
        wanted = trace_id_of(trace_id)
        spans = self._traces.get(wanted)
        return Trace(wanted, spans) if spans else None
