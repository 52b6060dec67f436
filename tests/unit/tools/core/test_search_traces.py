"""Traces of a product, found by their oddities."""

import orjson
import pytest

from tests.fakes.capabilities import FakeTraces, fake_capabilities
from tests.fakes.tools import bench
from tools.capabilities import TraceSummary
from tools.core.search_traces import SearchTraces
from tools.records import ToolOutcome

SLOW = TraceSummary(
    "ab" * 16, 1_775_571_000_000_000, 1_830_400, "web", "GET /", ("checkout", "web"), 9, 2
)


async def ask(traces: FakeTraces, **arguments: object) -> ToolOutcome:
    b = bench([SearchTraces()], caps=fake_capabilities(traces=traces))
    given = {"product": "checkout", "time_range": "last 30m", **arguments}
    return await b.run(orjson.dumps(given).decode(), "core__search_traces")


async def test_traces_are_listed_with_their_distinguishing_fields() -> None:
    outcome = await ask(FakeTraces(summaries=[SLOW], notes=["cut"]), errors=True)
    body = orjson.loads(outcome.content)
    assert body["traces"] == [
        {
            "trace_id": "ab" * 16, "ts": "2026-04-07T14:10:00Z", "duration_ms": 1830.4,
            "root": "web GET /", "services": ["checkout", "web"], "spans": 9, "failed": 2,
        }
    ]  # fmt: skip
    assert body["notes"] == ["cut"]
    assert outcome.summary == "1 failed traces of checkout, slowest 1830.4 ms"


@pytest.mark.parametrize(
    ("text", "milliseconds"), [("500ms", 500.0), ("2s", 2000.0), ("1m", 60_000.0), ("1.5ms", 1.5)]
)
async def test_duration_is_read(text: str, milliseconds: float) -> None:
    traces = FakeTraces()
    await ask(traces, min_duration=text)
    assert traces.searches[0].min_duration_ms == milliseconds


@pytest.mark.parametrize("text", ["fast", "-5ms", "ms", "5 parsecs"])
async def test_an_invalid_duration_is_refused(text: str) -> None:
    traces = FakeTraces()
    assert orjson.loads((await ask(traces, min_duration=text)).content)["error"] == "validation"
    assert traces.searches == []
