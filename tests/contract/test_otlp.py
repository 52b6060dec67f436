"""What a collector is told, decoded by the protocol's own protobuf; and what it may do to us."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field, replace
from typing import Final

import pytest
import pytest_asyncio
from opentelemetry.semconv._incubating.attributes import gen_ai_attributes
from opentelemetry.semconv._incubating.metrics import gen_ai_metrics

from adapters.egress import LocalHosts, confined_to
from adapters.llm.messages import Usage
from adapters.otlp_http import OtlpHttp
from bot.telemetry import conventions as names
from bot.telemetry.export import BATCH, MOST_WAITING, Export
from bot.telemetry.metrics import Metrics
from bot.telemetry.otlp import MAX_CONTENT_CHARS, Encoder
from bot.telemetry.spans import FinishedSpan, SpanKind, Value, root_of, trace_of, turn_span_of
from tests.fakes.collector import FakeCollector, collecting, values
from tests.fakes.redactor import FakeRedactor

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
    client: OtlpHttp
    now: list[float] = field(default_factory=lambda: [0.0])

    async def after(self, seconds: float) -> None:
        self.now[0] += seconds
        await self.export.run()

    @property
    def dropped(self) -> float:
        return self.metrics.registry.get_sample_value("kortex_telemetry_dropped_total") or 0.0


Sent = Callable[..., Sending]


@pytest_asyncio.fixture(loop_scope="module")
async def sent(collector: FakeCollector) -> AsyncIterator[Sent]:
    opened: list[Sending] = []

    def open_export(
        url: str = "",
        redactor: FakeRedactor | None = None,
        ratio: float = 1.0,
        every_s: float | None = None,
    ) -> Sending:
        now, metrics = [0.0], Metrics()
        client = OtlpHttp(url or collector.url, {"authorization": "Bearer collector-key"})
        encoder = Encoder({names.SERVICE: "kortex"}, (redactor or FakeRedactor()).redact)
        export = Export(
            client, encoder, metrics,
            sample_ratio=ratio, with_content=True, metrics_every_s=every_s, clock=lambda: now[0],
        )  # fmt: skip
        opened.append(Sending(export, metrics, client, now))
        return opened[-1]

    yield open_export
    for each in opened:
        await each.client.aclose()


def with_value(value: Value) -> FinishedSpan:
    return replace(SPAN, attributes={"told": value})


async def test_a_span_arrives_as_it_was(collector: FakeCollector, sent: Sent) -> None:
    sending = sent()
    sending.export.ended(replace(SPAN, error="overloaded"))
    await sending.export.run()

    (span,) = collector.spans
    assert (span.name, span.kind) == ("chat model-1", 3)
    assert (span.trace_id, span.parent_span_id) == (trace_of(TURN), turn_span_of(TURN))
    assert span.end_time_unix_nano - span.start_time_unix_nano == 1_000_000_000
    assert values(span.attributes) == {names.PROVIDER: "aws.bedrock", names.ERROR: "overloaded"}
    assert span.status.code == 2
    assert collector.resource[names.SERVICE] == "kortex"
    assert collector.headers[0]["authorization"] == "Bearer collector-key"


async def test_every_name_of_the_conventions_is_one_of_theirs() -> None:
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
async def test_no_value_keeps_a_span_from_being_told(
    collector: FakeCollector, sent: Sent, value: Value
) -> None:
    sending = sent()
    sending.export.ended(with_value(value))
    await sending.export.run()

    assert [pair.key for pair in collector.spans[0].attributes] == ["told"]


async def test_a_clock_that_was_set_back_gives_no_time_before_the_beginning(
    collector: FakeCollector, sent: Sent
) -> None:
    sending = sent()
    sending.export.ended(replace(SPAN, ended_ns=5))
    sending.export.ended(replace(SPAN, started_ns=-5, ended_ns=-1))
    sending.export.ended(replace(SPAN, started_ns=2**80, ended_ns=2**81))
    await sending.export.run()

    assert [s.end_time_unix_nano - s.start_time_unix_nano for s in collector.spans] == [0, 0, 0]


async def test_what_was_said_is_redacted_before_it_is_cut(
    collector: FakeCollector, sent: Sent
) -> None:
    sending = sent()
    text = "x" * (MAX_CONTENT_CHARS - 10) + "SECRET-abcdefghijkl" + "y" * 100_000
    sending.export.ended(
        replace(SPAN, name="chat SECRET-model", content={names.INPUT_MESSAGES: text})
    )
    await sending.export.run()

    told = values(collector.spans[0].attributes)[names.INPUT_MESSAGES]
    assert told.endswith("[redacted]")
    assert len(told) == MAX_CONTENT_CHARS
    assert collector.spans[0].name == "chat [redacted]"


async def test_what_cannot_be_redacted_is_withheld(collector: FakeCollector, sent: Sent) -> None:
    sending = sent(redactor=FakeRedactor(fails=True))
    sending.export.ended(replace(SPAN, content={names.TOOL_RESULT: "a password"}))
    await sending.export.run()

    assert set(values(collector.spans[0].attributes).values()) == {
        "withheld: could not be redacted"
    }


@pytest.mark.parametrize("status", [429, 502, 503, 504])
async def test_what_a_collector_cannot_take_now_is_sent_again_later(
    collector: FakeCollector, sent: Sent, status: int
) -> None:
    collector.statuses = [status]
    sending = sent()
    sending.export.ended(SPAN)
    await sending.after(2)
    await sending.after(1)
    early = len(collector.headers)
    await sending.after(60)

    assert (early, len(collector.headers), len(collector.spans)) == (1, 2, 1)
    assert sending.dropped == 0


@pytest.mark.parametrize("status", [400, 401, 404, 413, 500])
async def test_what_a_collector_refuses_is_counted_and_not_sent_again(
    collector: FakeCollector, sent: Sent, status: int
) -> None:
    collector.statuses = [status]
    sending = sent()
    sending.export.ended(SPAN)
    await sending.export.run()
    sending.export.ended(SPAN)
    await sending.export.run()

    assert (len(collector.spans), sending.dropped) == (1, 1)


async def test_a_refusal_is_logged_once_until_it_is_another(
    collector: FakeCollector, sent: Sent, capsys: pytest.CaptureFixture[str]
) -> None:
    collector.statuses = [401, 401, 403, 403]
    sending = sent()
    for _ in range(4):
        sending.export.ended(SPAN)
        await sending.export.run()

    assert capsys.readouterr().out.count("telemetry.refused") == 2


async def test_what_a_collector_takes_only_in_part_is_counted(
    collector: FakeCollector, sent: Sent
) -> None:
    collector.rejects = 3
    sending = sent()
    for _ in range(BATCH + 1):
        sending.export.ended(SPAN)
    await sending.export.run()

    assert (len(collector.spans), sending.dropped) == (BATCH + 1, 6)


async def test_a_collector_that_is_away_costs_no_more_than_the_oldest_spans(sent: Sent) -> None:
    sending = sent("http://127.0.0.1:9")
    for _ in range(MOST_WAITING + 7):
        sending.export.ended(SPAN)
    await sending.export.run()
    for _ in range(5):
        sending.export.ended(SPAN)
    await sending.after(0.1)

    assert sending.dropped == 12


async def test_a_collector_that_never_answers_holds_up_neither_turns_nor_the_end(
    collector: FakeCollector, sent: Sent, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bot.telemetry.export.LAST_WORDS_S", 0.05)
    collector.silent = True
    sending = sent()
    sending.export.ended(SPAN)
    under_way = asyncio.create_task(sending.export.run())
    await asyncio.sleep(0)
    before = time.monotonic()
    sending.export.ended(SPAN)
    under_way.cancel()
    await asyncio.wait([under_way])
    await sending.export.aclose()

    assert time.monotonic() - before < 1.0
    assert sending.dropped == 2


async def test_nothing_is_sent_past_the_guard_of_local_only_mode(
    collector: FakeCollector, sent: Sent
) -> None:
    sending = sent("http://collector.example.com:4318")
    with confined_to(LocalHosts()):
        sending.export.ended(SPAN)
        await sending.export.run()

    assert (collector.headers, sending.dropped) == ([], 1)


@pytest.mark.parametrize("ratio", [0.0, 0.25, 1.0])
async def test_so_many_turns_are_traced_as_was_asked_for(sent: Sent, ratio: float) -> None:
    export = sent(ratio=ratio).export
    taken = sum(export.takes(trace_of(f"turn:{number}")) for number in range(2_000))

    assert abs(taken / 2_000 - ratio) < 0.05


async def test_metrics_arrive_as_a_scrape_would_read_them(
    collector: FakeCollector, sent: Sent
) -> None:
    sending = sent(every_s=60)
    sending.metrics.turn_ended("answered")
    sending.metrics.fallback("model")
    sending.metrics.model_asked("bedrock", 1.5, Usage(10, 0, 0, 5))
    await sending.after(59)
    early = dict(collector.metrics)
    await sending.after(1)
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
