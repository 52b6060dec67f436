"""Traces of a recorded incident."""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from typing import Final, Protocol

from adapters.observe.instants import check_order, to_ns
from adapters.observe.trace_ids import trace_id_of
from adapters.observe.trace_search import checked, fits, slowest, summary_of
from tools.capabilities import (
    Clock,
    Interval,
    Span,
    Trace,
    TraceQuery,
    TraceSample,
    TracesFound,
    TraceSummary,
)

_TRACES_BETWEEN_YIELDS: Final = 50
_MOST_READ: Final = 2000
_MOST_BLOCKS_SAMPLED: Final = 30
_MOST_NAMES: Final = 20


class TraceSource(Protocol):
    """The traces of an incident. `calls` are further known calls, as (caller, called)."""

    services: Sequence[str]
    calls: Sequence[tuple[str, str]]

    def trace(self, trace_id: str) -> Trace | None:
        """One trace by its whole id."""
        ...

    def blocks(self, interval: Interval) -> Iterator[Sequence[Trace]]:
        """Blocks of traces from the interval, the newest first; a block may reach beyond it."""
        ...


class RecordedTraces:
    """A trace that has not ended by the clock's now is not there."""

    def __init__(self, source: TraceSource, clock: Clock) -> None:
        self._source = source
        self._clock = clock

    async def get(self, trace_id: str) -> Trace | None:
        """None when unknown or not finished yet. Raises InvalidArguments: no trace id."""
        trace = self._source.trace(trace_id_of(trace_id))
        return trace if trace is not None and self._has_ended(summary_of(trace)) else None

    async def search(self, query: TraceQuery) -> TracesFound:
        """The slowest first."""
        checked(query)
        services = self._source.services
        if query.product not in services:
            known = ", ".join(services[:_MOST_NAMES])
            return TracesFound((), [f"no service {query.product!r}; there are: {known}"])
        found: list[TraceSummary] = []
        # A trace may begin before the span that is searched for.
        interval = Interval(query.interval.start - timedelta(minutes=1), query.interval.end)
        read, notes = 0, list[str]()
        for block in self._source.blocks(interval):
            if read >= _MOST_READ:
                notes.append("only the newest traces were searched")
                break
            for trace in block:
                read += 1
                if fits(trace, query) and self._has_ended(summary := summary_of(trace)):
                    found.append(summary)
                if read % _TRACES_BETWEEN_YIELDS == 0:
                    await asyncio.sleep(0)
            await asyncio.sleep(0)
        return TracesFound(slowest(found, query.limit), notes)

    async def sample(self, products: Sequence[str], interval: Interval, limit: int) -> TraceSample:
        """The newest first; of a long range its last minutes."""
        check_order(interval)
        start_us, end_us = to_ns(interval.start) // 1000, to_ns(interval.end) // 1000
        wanted, found = set(products), list[tuple[int, Trace]]()
        for number, block in enumerate(self._source.blocks(interval)):
            if len(found) >= limit or number > _MOST_BLOCKS_SAMPLED:
                break
            for read, trace in enumerate(block, start=1):
                if any(span.service in wanted for span in trace.spans):
                    summary = summary_of(trace)
                    if start_us <= summary.start_us < end_us and self._has_ended(summary):
                        found.append((summary.start_us, trace))
                if read % _TRACES_BETWEEN_YIELDS == 0:
                    await asyncio.sleep(0)
            await asyncio.sleep(0)
        newest = sorted(found, key=lambda one: (-one[0], one[1].trace_id))[:limit]
        return TraceSample([trace for _, trace in newest], self._source.calls)

    def _has_ended(self, summary: TraceSummary) -> bool:
        return summary.start_us + summary.duration_us <= to_ns(self._clock.now()) // 1000


class PackTraces:
    def __init__(
        self, spans: Mapping[str, Sequence[Span]], calls: Sequence[tuple[str, str]] = ()
    ) -> None:
        traces = (Trace(trace_id_of(each), tuple(own)) for each, own in spans.items())
        self._traces = {trace.trace_id: trace for trace in traces}
        self.services: Sequence[str] = sorted(
            {span.service for own in spans.values() for span in own}
        )
        self.calls: Sequence[tuple[str, str]] = tuple(calls)

    def trace(self, trace_id: str) -> Trace | None:
        return self._traces.get(trace_id)

    def blocks(self, interval: Interval) -> Iterator[Sequence[Trace]]:  # noqa: ARG002 - the port's
        yield list(self._traces.values())
