"""A whole bot with a collector: an event becomes one trace, and the log names it."""

import json
from typing import Any

from opentelemetry.proto.trace.v1.trace_pb2 import Span

from bot.demo.workspace.seeds import CHECKOUT, RESPONDER
from bot.telemetry.spans import trace_of
from tests.fakes.collector import FakeCollector, collecting, values
from tests.fakes.model_server import Recorded, Round
from tests.fixtures_service import Start, stage

__all__ = ["stage"]

SECRET = "xoxb-canary-9988776655-abcdef"


def script(request: Recorded) -> Round:
    return Round(text=(f"The pool is full. {SECRET}",))


def names_below(collector: FakeCollector, parent: Span) -> list[str]:
    return [span.name for span in collector.spans if span.parent_span_id == parent.span_id]


async def test_an_event_becomes_one_trace_without_message_content(stage: Start) -> None:
    async with collecting() as collector:
        otel: dict[str, Any] = {"endpoint": collector.url, "headers": {"x-key": "collector-key-1"}}
        async with stage(script, {"otel": otel}) as bot:
            asked = await bot.ask("@kortex why is checkout slow?", RESPONDER, CHECKOUT)
            await bot.answer(asked)
            await bot.stop_service()
            trace = trace_of(asked.turn_in(bot.workspace))
            log = [json.loads(line) for line in bot.log.getvalue().splitlines()]
        root = next(span for span in collector.spans if not span.parent_span_id)
        (turn,) = [span for span in collector.spans if span.name == "invoke_agent kortex"]

    assert {span.trace_id for span in collector.spans} == {trace}
    assert names_below(collector, root) == ["invoke_agent kortex"]
    assert names_below(collector, turn) == [
        "kortex.step.open",
        "kortex.step.placeholder",
        "chat test-model",
        "kortex.step.keep",
        "kortex.step.deliver",
    ]
    assert values(turn.attributes)["kortex.turn.end"] == "answered"
    assert "pool" not in str(collector.spans)
    assert collector.metrics["kortex_turns"].sum.data_points[0].as_double == 1.0
    assert collector.metrics["kortex_acknowledge_seconds"].histogram.data_points[0].count >= 1
    assert collector.metrics["kortex_database_up"].gauge.data_points[0].as_double == 1.0
    assert {
        values(point.attributes)["provider"]: point.as_double
        for point in collector.metrics["kortex_provider_available"].gauge.data_points
    } == {"openai": 1.0}
    assert collector.resource["service.instance.id"]
    assert collector.headers[0]["x-key"] == "collector-key-1"
    assert [line["trace"] for line in log if line.get("trace", trace.hex()) != trace.hex()] == []
