"""The telemetry sent to a collector, decoded by the protocol's own protobuf; and a collector's
failures.
"""

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import pytest
import pytest_asyncio
from opentelemetry.semconv._incubating.attributes import gen_ai_attributes
from opentelemetry.semconv._incubating.metrics import gen_ai_metrics

from adapters.http.egress import LocalHosts, confined_to
from adapters.llm.messages import Usage
from adapters.otel.exporters import Collector
from bot.telemetry import conventions as names
from bot.telemetry.export import MAX_CONTENT_CHARS, MOST_WAITING, Export
from bot.telemetry.metrics import Metrics
from bot.telemetry.spans import FinishedSpan, SpanKind, Value, root_of, trace_of, turn_span_of
from tests.fakes.collector import FakeCollector, collecting, values
from tests.fakes.redactor import FakeRedactor
from tests.fixtures_tls import certificate, serving_tls

pytestmark = pytest.mark.asyncio(loop_scope="module")

TURN: Final = "turn:T1:C1:1.2"
SPAN: Final = FinishedSpan(
    "chat model-1",
    SpanKind.CLIENT,
    trace_of(TURN),
    root_of(TURN),
    turn_span_of(TURN),
    1_700_000_000_000_000_000,
    1_700_000_001_000_000_000,
    {names.PROVIDER: "aws.bedrock"},
)


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def listening() -> AsyncIterator[FakeCollector]:
    async with collecting() as collector:
        yield collector


@pytest.fixture
def collector(listening: FakeCollector) -> FakeCollector:
    listening.__init__(listening.url)  # type: ignore[misc]
    return listening


@dataclass
class Sending:
    export: Export
    metrics: Metrics

    async def all(self, *spans: FinishedSpan) -> None:
        """Take the spans, and send them before the end."""
        for span in spans:
            self.export.ended(span)
        await self.export.aclose()

    @property
    def dropped(self) -> float:
        return self.metrics.registry.get_sample_value("kortex_telemetry_dropped_total") or 0.0


Sent = Callable[..., Sending]


@pytest_asyncio.fixture(loop_scope="module")
async def sent(collector: FakeCollector, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Sent]:
    # A busy machine may need longer than the product waits.
    monkeypatch.setattr("bot.telemetry.export.LAST_WORDS_S", 60.0)
    opened: list[Export] = []

    def open_export(
        url: str = "",
        redactor: FakeRedactor | None = None,
        ratio: float = 1.0,
        every_s: float | None = None,
        gate: threading.Event | None = None,
    ) -> Sending:
        metrics, masked = Metrics(), (redactor or FakeRedactor()).redact

        def redact(text: str) -> str:
            if gate is not None and text == SPAN.name:
                gate.wait(10)
            return masked(text)

        to = Collector(url or collector.url, {"authorization": "Bearer collector-key"})
        export = Export(
            to.spans(),
            metrics,
            resource={names.SERVICE: "kortex"},
            redact=redact,
            sample_ratio=ratio,
            with_content=True,
            metric_exporter=None if every_s is None else to.metrics(),
            metrics_every_s=every_s or 60.0,
        )
        opened.append(export)
        return Sending(export, metrics)

    yield open_export
    for each in opened:
        await each.aclose()


def with_value(value: Value) -> FinishedSpan:
    return replace(SPAN, attributes={"told": value})


async def test_a_span_arrives_unchanged(collector: FakeCollector, sent: Sent) -> None:
    sending = sent()
    await sending.all(replace(SPAN, error="overloaded"))

    (span,) = collector.spans
    assert (span.name, span.kind) == ("chat model-1", 3)
    assert (span.trace_id, span.span_id) == (trace_of(TURN), root_of(TURN))
    assert span.parent_span_id == turn_span_of(TURN)
    assert span.end_time_unix_nano - span.start_time_unix_nano == 1_000_000_000
    assert values(span.attributes) == {names.PROVIDER: "aws.bedrock", names.ERROR: "overloaded"}
    assert span.status.code == 2
    assert collector.resource[names.SERVICE] == "kortex"
    assert collector.headers[0]["authorization"] == "Bearer collector-key"


async def test_spans_keep_the_ids_of_their_turn(collector: FakeCollector, sent: Sent) -> None:
    root = replace(SPAN, parent_id=b"")
    turn = replace(SPAN, span_id=turn_span_of(TURN), parent_id=root_of(TURN))
    another = replace(root, trace_id=trace_of("turn:2"), span_id=root_of("turn:2"))
    await sent().all(root, turn, another)

    assert [(s.trace_id, s.span_id, s.parent_span_id) for s in collector.spans] == [
        (trace_of(TURN), root_of(TURN), b""),
        (trace_of(TURN), turn_span_of(TURN), root_of(TURN)),
        (trace_of("turn:2"), root_of("turn:2"), b""),
    ]


async def test_a_collector_is_verified_by_the_systems_certificate_authorities(
    sent: Sent, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("adapters.otel.exporters.SEND_TIMEOUT_S", 1.5)
    proof = await asyncio.to_thread(certificate, tmp_path, "localhost")
    async with serving_tls(proof) as url:
        refused = sent(url)
        await refused.all(SPAN)
        monkeypatch.setattr("adapters.otel.exporters.SEND_TIMEOUT_S", 60.0)
        monkeypatch.setenv("SSL_CERT_FILE", str(proof))
        taken = sent(url)
        await taken.all(SPAN)

    assert (refused.dropped, taken.dropped) == (1, 0)


async def test_every_attribute_name_is_in_the_semantic_conventions() -> None:
    ours = {v for v in vars(names).values() if isinstance(v, str) and v.startswith("gen_ai.")}
    theirs = {v for v in vars(gen_ai_attributes).values() if isinstance(v, str)}

    assert len(ours) > 15
    assert {*ours, *names.METRIC_LABELS.values()} <= theirs
    assert {name for name, _ in names.METRICS.values()} <= {
        v for v in vars(gen_ai_metrics).values() if isinstance(v, str)
    }


@pytest.mark.parametrize(
    "value",
    [
        2**127,
        -(2**64),
        float("nan"),
        "half \ud83d a pair",
        "\x00\x1b[2J",
        "",
        ("a", "\udfff"),
        True,
        "[" * 1_500,
    ],
)
async def test_a_span_with_any_attribute_value_is_sent(
    collector: FakeCollector, sent: Sent, value: Value
) -> None:
    sending = sent()
    await sending.all(with_value(value))

    assert [pair.key for pair in collector.spans[0].attributes] == ["told"]


async def test_a_clock_set_back_gives_no_negative_duration(
    collector: FakeCollector, sent: Sent
) -> None:
    sending = sent()
    await sending.all(
        replace(SPAN, ended_ns=5),
        replace(SPAN, started_ns=-5, ended_ns=-1),
        replace(SPAN, started_ns=2**80, ended_ns=2**81),
    )

    assert [s.end_time_unix_nano - s.start_time_unix_nano for s in collector.spans] == [0, 0, 0]


async def test_content_is_redacted_before_it_is_cut(collector: FakeCollector, sent: Sent) -> None:
    sending = sent()
    text = "x" * (MAX_CONTENT_CHARS - 10) + "SECRET-abcdefghijkl" + "y" * 100_000
    await sending.all(replace(SPAN, name="chat SECRET-model", content={names.INPUT_MESSAGES: text}))

    told = values(collector.spans[0].attributes)[names.INPUT_MESSAGES]
    assert told.endswith("[redacted]")
    assert len(told) == MAX_CONTENT_CHARS
    assert collector.spans[0].name == "chat [redacted]"


async def test_content_that_cannot_be_redacted_is_withheld(
    collector: FakeCollector, sent: Sent
) -> None:
    sending = sent(redactor=FakeRedactor(fails=True))
    await sending.all(replace(SPAN, content={names.TOOL_RESULT: "a password"}))

    assert set(values(collector.spans[0].attributes).values()) == {"hidden: could not be redacted"}


@pytest.mark.parametrize("status", [429, 502, 503, 504])
async def test_a_batch_that_a_collector_postpones_is_sent_again(
    collector: FakeCollector, sent: Sent, status: int
) -> None:
    collector.statuses = [status]
    sending = sent()
    await sending.all(SPAN)

    assert (len(collector.headers), len(collector.spans), sending.dropped) == (2, 1, 0)


@pytest.mark.parametrize("status", [400, 401, 404, 413])
async def test_a_batch_that_a_collector_refuses_is_counted_and_not_repeated(
    collector: FakeCollector, sent: Sent, status: int
) -> None:
    collector.statuses = [status]
    sending = sent()
    await sending.all(SPAN)

    assert (len(collector.headers), sending.dropped) == (1, 1)


async def test_spans_do_not_follow_a_redirect(collector: FakeCollector, sent: Sent) -> None:
    collector.statuses = [307]
    sending = sent()
    await sending.all(SPAN)

    assert (len(collector.headers), sending.dropped) == (1, 1)


async def test_spans_beyond_the_queue_are_counted_and_dropped(
    collector: FakeCollector, sent: Sent
) -> None:
    go_on = threading.Event()
    sending = sent(gate=go_on)
    for _ in range(MOST_WAITING + 8):
        sending.export.ended(SPAN)
    go_on.set()
    await sending.all()

    # One is being recorded, and so has left the queue.
    assert sending.dropped in (7, 8)
    assert len(collector.spans) == MOST_WAITING + 8 - sending.dropped


async def test_a_span_after_the_end_is_counted_as_dropped(sent: Sent) -> None:
    sending = sent()
    await sending.all()
    sending.export.ended(SPAN)

    assert sending.dropped == 1


async def test_a_silent_collector_delays_neither_turns_nor_the_shutdown(
    collector: FakeCollector, sent: Sent, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bot.telemetry.export.LAST_WORDS_S", 0.05)
    collector.silent = True
    sending = sent(every_s=60)
    before = time.monotonic()
    await sending.all(SPAN)

    assert time.monotonic() - before < 1.0


async def test_no_setting_comes_from_the_environment(
    collector: FakeCollector, sent: Sent, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login somebody password else\n")
    monkeypatch.setenv("NETRC", str(netrc))
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-more=1")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_COMPRESSION", "gzip")
    await sent().all(SPAN)

    (headers,) = collector.headers
    assert headers["authorization"] == "Bearer collector-key"
    assert "content-encoding" not in headers


async def test_local_only_mode_sends_nothing_past_its_guard(
    collector: FakeCollector, sent: Sent
) -> None:
    sending = sent("http://collector.example.com:4318")
    with confined_to(LocalHosts()):
        await sending.all(SPAN)

    assert (collector.headers, sending.dropped) == ([], 1)


@pytest.mark.parametrize("ratio", [0.0, 0.25, 1.0])
async def test_the_sampling_ratio_decides_how_many_turns_are_traced(
    sent: Sent, ratio: float
) -> None:
    export = sent(ratio=ratio).export
    taken = sum(export.takes(trace_of(f"turn:{number}")) for number in range(2_000))

    assert abs(taken / 2_000 - ratio) < 0.05


async def test_metrics_arrive_equal_to_a_scrape(collector: FakeCollector, sent: Sent) -> None:
    sending = sent(every_s=60)
    sending.metrics.turn_ended("answered")
    sending.metrics.fallback("model")
    sending.metrics.model_asked("bedrock", 1.5, Usage(10, 0, 0, 5))
    early = dict(collector.metrics)
    await sending.all()
    (ended,) = collector.metrics["kortex_turns"].sum.data_points
    (taken,) = collector.metrics["kortex_fallbacks"].sum.data_points
    (asked,) = collector.metrics["gen_ai.client.operation.duration"].histogram.data_points
    used = collector.metrics["gen_ai.client.token.usage"].histogram.data_points

    assert early == {}
    assert (ended.as_double, values(ended.attributes)) == (1.0, {"end": "answered"})
    assert (asked.count, asked.sum, sum(asked.bucket_counts)) == (1, 1.5, 1)
    assert len(asked.bucket_counts) == len(asked.explicit_bounds) + 1
    assert values(asked.attributes) == {
        "gen_ai.operation.name": "chat", "gen_ai.provider.name": "aws.bedrock"
    }  # fmt: skip
    assert values(taken.attributes) == {"kind": "model"}
    assert {values(p.attributes)["gen_ai.token.type"]: p.sum for p in used} == {
        "input": 10,
        "output": 5,
    }
    assert collector.metrics["process_open_fds"].gauge.data_points
