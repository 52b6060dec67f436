"""What every source of traces promises, and the traces it is asked for."""

from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from adapters.recorded.simulator.dataset import Dataset
from adapters.recorded.simulator.scenario import INCIDENTS
from tools.capabilities import Interval, Trace, TraceQuery, Traces
from tools.errors import InvalidArguments


def contract_traces(now: datetime) -> list[Trace]:
    """The traces of ten minutes of an incident, failed ones among them."""
    data = Dataset(INCIDENTS["bad-deploy"](now), now, 11)
    last = int(now.timestamp()) // 60 - 1
    return [trace for minute in range(last - 10, last) for trace in data.traces(minute)]


class TracesContract:
    """Run against every implementation. `traces` holds `contract_traces(now)`."""

    @pytest.fixture
    def known(self, now: datetime) -> list[Trace]:
        return contract_traces(now)

    async def test_a_trace_is_returned_complete(self, traces: Traces, known: list[Trace]) -> None:
        failed = [t for t in known if any(span.status == "error" for span in t.spans)]
        assert failed
        for one in (*failed[:3], *known[:3]):
            found = await traces.get(one.trace_id)
            assert found is not None
            assert found.trace_id == one.trace_id
            assert sorted(found.spans, key=lambda s: s.span_id) == sorted(
                one.spans, key=lambda s: s.span_id
            )

    async def test_capitals_and_dashes_do_not_matter(
        self, traces: Traces, known: list[Trace]
    ) -> None:
        text = known[0].trace_id.upper()
        found = await traces.get(f"{text[:8]}-{text[8:12]}-{text[12:]}")
        assert found is not None
        assert found.trace_id == known[0].trace_id

    async def test_an_unknown_trace_is_not_found(self, traces: Traces) -> None:
        assert await traces.get("0123456789abcdef0123456789abcdef") is None

    @pytest.mark.parametrize("text", ["req-77-zz", "f" * 33, "../admin", ""])
    async def test_an_invalid_trace_id_is_refused_with_a_message(
        self, traces: Traces, text: str
    ) -> None:
        with pytest.raises(InvalidArguments, match="trace_id of a line"):
            await traces.get(text)

    @pytest.fixture
    def query(self, now: datetime) -> TraceQuery:
        end = now - timedelta(minutes=1)
        return TraceQuery("checkout", Interval(end - timedelta(minutes=10), end), limit=100)

    async def test_search_returns_the_slowest_first(
        self, traces: Traces, known: list[Trace], query: TraceQuery
    ) -> None:
        found = (await traces.search(query)).traces
        expected = {
            one.trace_id for one in known if any(s.service == "checkout" for s in one.spans)
        }
        durations = [one.duration_us for one in found]
        assert durations == sorted(durations, reverse=True)
        assert expected >= {one.trace_id for one in found}
        assert len(found) == min(100, len(expected))
        assert "checkout" in found[0].services

    async def test_search_returns_failed_traces(
        self, traces: Traces, known: list[Trace], query: TraceQuery
    ) -> None:
        found = (await traces.search(replace(query, errors=True))).traces
        failed = {
            one.trace_id
            for one in known
            if any(s.service == "checkout" and s.status == "error" for s in one.spans)
        }
        assert found
        assert {one.trace_id for one in found} <= failed
        assert all(one.failed for one in found)

    async def test_search_returns_slow_traces(self, traces: Traces, query: TraceQuery) -> None:
        found = (await traces.search(replace(query, min_duration_ms=100.0))).traces
        assert found
        assert all(one.duration_us >= 99_000 for one in found)

    async def test_search_returns_one_operation(
        self, traces: Traces, known: list[Trace], query: TraceQuery
    ) -> None:
        operation = next(
            span.operation for one in known for span in one.spans if span.service == "checkout"
        )
        found = (await traces.search(replace(query, operation=operation))).traces
        assert found
        none = (await traces.search(replace(query, operation="no such thing"))).traces
        assert list(none) == []

    async def test_unknown_service_lists_the_known_ones(
        self, traces: Traces, query: TraceQuery
    ) -> None:
        found = await traces.search(replace(query, product="chekout"))
        assert list(found.traces) == []
        assert "checkout" in found.notes[0]

    @pytest.mark.parametrize("product", ["", " ", "a\nb", "x" * 300])
    async def test_invalid_product_name_is_refused(
        self, traces: Traces, query: TraceQuery, product: str
    ) -> None:
        with pytest.raises(InvalidArguments):
            await traces.search(replace(query, product=product))
