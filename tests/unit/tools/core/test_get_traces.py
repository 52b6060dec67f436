"""A trace as a tree: shape, folding, odd traces, logs beside it."""

from typing import Any

import orjson
import pytest

from tests.fakes.capabilities import (
    NOW,
    FakeLogs,
    FakeTraces,
    fake_capabilities,
    nanoseconds,
)
from tests.fakes.tools import Bench, bench
from tools.capabilities import LogLine, Logs, Span, Trace
from tools.core.get_traces import GetTraces
from tools.errors import UpstreamFailed
from tools.records import ToolOutcome

START_US = nanoseconds(NOW) // 1000


def span(span_id: str, parent: str = "", start: int = 0, duration: int = 100, **more: Any) -> Span:
    fields = {"service": "checkout", "operation": f"op-{span_id}", **more}
    return Span(span_id, parent, start_us=START_US + start, duration_us=duration, **fields)


def tracing(*spans: Span, notes: tuple[str, ...] = (), logs: Logs | None = None) -> Bench:
    traces = FakeTraces({"abc": Trace("abc", spans, notes)})
    return bench([GetTraces()], caps=fake_capabilities(traces=traces, logs=logs))


async def ask(b: Bench, request_id: str = "abc", **arguments: object) -> ToolOutcome:
    given = {"request_id": request_id, **arguments}
    return await b.run(orjson.dumps(given).decode(), "core__get_traces")


async def test_a_trace_has_the_documented_shape() -> None:
    b = tracing(
        span("r", duration=412_000),
        span("a", "r", 1000, 88_000, status="error", message="boom", tags={"http.code": "503"}),
    )
    outcome = await ask(b)
    assert orjson.loads(outcome.content) == {
        "trace_id": "abc",
        "range": "2026-04-07T14:35:00Z/2026-04-07T14:35:00.412Z",
        "duration_us": 412_000,
        "span_count": 2,
        "root": {
            "span_id": "r",
            "service": "checkout",
            "operation": "op-r",
            "start_us": 0,
            "duration_us": 412_000,
            "self_us": 324_000,
            "critical": True,
            "children": [
                {
                    "span_id": "a",
                    "service": "checkout",
                    "operation": "op-a",
                    "start_us": 1000,
                    "duration_us": 88_000,
                    "status": "error",
                    "critical": True,
                    "tags": {"http.code": "503"},
                }
            ],
        },
        "errors": [{"span_id": "a", "service": "checkout", "message": "boom"}],
        "truncated": False,
    }
    assert outcome.summary == "2 spans, 412 ms, 1 error"


@pytest.mark.parametrize("request_id", ["unknown", "empty"])
async def test_an_unknown_or_empty_trace_is_an_answer(request_id: str) -> None:
    b = bench(
        [GetTraces()], caps=fake_capabilities(traces=FakeTraces({"empty": Trace("empty", ())}))
    )
    outcome = await ask(b, request_id)
    assert outcome.record.ok
    assert orjson.loads(outcome.content)["span_count"] == 0
    assert outcome.summary == "no such trace"


async def test_a_giant_trace_is_folded_and_says_so() -> None:
    many = [span(f"s{n}", "r", n, 1, tags={"k": "v" * 500}) for n in range(5000)]
    outcome = await ask(tracing(span("r", duration=10_000), *many))
    body = orjson.loads(outcome.content)
    assert (body["span_count"], body["folded_spans"], body["truncated"]) == (5001, 4801, True)
    assert body["root"]["folded"] == 4801
    assert outcome.record.bytes <= 64 * 1024
    assert outcome.record.truncated


async def test_a_chain_of_thousands_is_valid_json() -> None:
    chain = [span(f"s{n}", f"s{n - 1}" if n else "", n, 9000 - n) for n in range(3000)]
    outcome = await ask(tracing(*chain))
    assert orjson.loads(outcome.content)["folded_spans"] == 2800


async def test_missing_parents_are_other_roots() -> None:
    body = orjson.loads((await ask(tracing(span("r"), span("a", "lost", 5, 10)))).content)
    (other,) = body["other_roots"]
    assert (body["root"]["span_id"], body["span_count"]) == ("r", 2)
    assert (other["operation"], other["note"]) == ("missing parent lost", "not in the trace")
    assert other["children"][0]["span_id"] == "a"


async def test_the_backends_notes_are_passed_on() -> None:
    body = orjson.loads((await ask(tracing(span("r"), notes=("PARTIAL: cut",)))).content)
    assert body["notes"] == ["PARTIAL: cut"]


async def test_log_lines_with_the_trace_id_are_included() -> None:
    lines = [LogLine(nanoseconds(NOW), "error", "h1", "trace abc failed")]
    b = tracing(span("r"), logs=FakeLogs({"checkout": lines}))
    body = orjson.loads((await ask(b, include_logs=True)).content)
    assert [line["message"] for line in body["logs"]] == ["trace abc failed"]


@pytest.mark.parametrize("logs", [None, FakeLogs(failure=UpstreamFailed("down SECRET-x", 503))])
async def test_a_trace_without_its_logs_is_shown(logs: Logs | None) -> None:
    outcome = await ask(tracing(span("r"), logs=logs), include_logs=True)
    body = orjson.loads(outcome.content)
    assert (outcome.record.ok, "logs" in body, len(body["notes"])) == (True, False, 1)
    assert "SECRET" not in outcome.content


@pytest.mark.parametrize("request_id", ["", "../admin", "a b", "x" * 200])
async def test_an_id_that_could_be_a_path_is_refused(request_id: str) -> None:
    assert orjson.loads((await ask(tracing(), request_id)).content)["error"] == "validation"
