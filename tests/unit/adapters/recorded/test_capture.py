"""The data taken out of backends is a case; unreadable parts are reported, and the rest is taken."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import orjson
import pytest
from pydantic import JsonValue, TypeAdapter

from adapters.observe.cursor import UnsealedCodec
from adapters.recorded.packs.archive import case_files
from adapters.recorded.packs.capture import (
    take_cluster,
    take_deploys,
    take_logs,
    take_metrics,
    take_traces,
)
from adapters.recorded.packs.recording import read_recording
from adapters.recorded.packs.schema import LineRow, SeriesRow, SpanRow
from adapters.recorded.packs.writing import NotWritten, WrittenCase, write_case
from adapters.recorded.simulator.incidents import RecordedIncidents
from bot.privacy.redactor import TextRedactor
from tests.fakes.capabilities import FakeDeploys, FakeLogs, FakeMetrics, FakeTraces
from tests.fakes.set_clock import SetClock
from tools.capabilities import Interval, MetricResult
from tools.errors import InvalidArguments, UpstreamFailed
from tools.redactor import RedactionFailed

NOW = datetime(2026, 11, 21, 14, 3, tzinfo=UTC)
HOUR = Interval(NOW - timedelta(hours=1), NOW)
PRODUCTS = ("checkout", "payments")
DOWN = UpstreamFailed("Loki answered 503", 503)
INCIDENTS = RecordedIncidents(SetClock(NOW), UnsealedCodec(), NOW)
CHECKOUT = INCIDENTS.of(next(iter(INCIDENTS.scenarios)))
SECRET = "hunter2-correct-horse"
GITHUB = "ghp_" + "a1B2c3D4e5" * 3 + "f6G7h8"


class OneAtATime:
    """Metrics of a backend that takes no pattern; one name cannot be read."""

    def __init__(self, failing: str) -> None:
        self.failing = failing
        self.discover = CHECKOUT.metrics.discover
        self.sweep = CHECKOUT.metrics.sweep
        self.query_range = CHECKOUT.metrics.query_range

    async def promql(
        self, text: str, interval: Interval, step_s: float | None, *, instant: bool = False
    ) -> MetricResult:
        if text.startswith(self.failing):
            raise UpstreamFailed("too many samples", 503)
        if "=~" in text:
            raise InvalidArguments("no patterns here")
        return await CHECKOUT.metrics.promql(text, interval, step_s, instant=instant)


async def test_every_series_is_recorded_and_failures_are_named() -> None:
    found = await CHECKOUT.metrics.discover(PRODUCTS, HOUR)
    failing, *others = (metric.name for metric in found.metrics)

    taken = await take_metrics(OneAtATime(failing), PRODUCTS, HOUR, 60.0)

    rows = TypeAdapter(list[SeriesRow]).validate_python(taken.rows)
    assert {(row.name, row.labels["service"]) for row in rows} == {
        (name, product) for name in others for product in PRODUCTS
    }
    assert taken.notes == [f"metrics: {failing}: not read: too many samples"]
    assert all(len(row.points) == 60 for row in rows)


async def test_product_without_metrics_is_named() -> None:
    taken = await take_metrics(CHECKOUT.metrics, ("checkout", "nobody"), HOUR, 60.0)

    assert taken.notes == ["metrics: none of nobody"]


async def test_lines_spans_and_deploys_have_the_shapes_of_a_case() -> None:
    logs = await take_logs(CHECKOUT.logs, PRODUCTS, HOUR)
    traces, calls = await take_traces(CHECKOUT.traces, PRODUCTS, (HOUR,))
    deploys = await take_deploys(
        [CHECKOUT.deploys], PRODUCTS, Interval(NOW - timedelta(days=1), NOW)
    )

    assert TypeAdapter(list[LineRow]).validate_python(logs.rows)
    assert TypeAdapter(list[SpanRow]).validate_python(traces.rows)
    assert calls == []
    assert {row["product"] for row in deploys.rows} <= set(PRODUCTS)
    assert deploys.rows


async def test_cluster_is_recorded_without_secrets() -> None:
    state, notes = await take_cluster(CHECKOUT.kubernetes, PRODUCTS)

    objects = state["objects"]
    assert isinstance(objects, list)
    assert len(objects) > 2
    assert notes == []


async def test_failing_backends_leave_notes_and_no_exception() -> None:
    metrics = await take_metrics(FakeMetrics(failure=DOWN), PRODUCTS, HOUR, 60.0)
    logs = await take_logs(FakeLogs(failure=DOWN), PRODUCTS, HOUR)
    traces, _calls = await take_traces(FakeTraces(failure=DOWN), PRODUCTS, (HOUR,))
    deploys = await take_deploys([FakeDeploys(failure=DOWN)], ("checkout",), HOUR)

    assert metrics.notes == ["metrics: not read: Loki answered 503"]
    assert logs.notes == ["logs: not read: Loki answered 503"]
    assert traces.notes == ["traces: not read: Loki answered 503"]
    assert deploys.notes == ["deploys of checkout: not read: Loki answered 503"]


async def test_dead_backend_is_not_asked_for_every_product() -> None:
    deploys = FakeDeploys(failure=DOWN)

    taken = await take_deploys([deploys], [f"p{number}" for number in range(50)], HOUR)

    assert len(taken.notes) == 4
    assert taken.notes[-1] == "deploys of p2: given up after 3 failures"


async def test_backend_with_unknown_products_is_asked_for_all() -> None:
    deploys = FakeDeploys(failure=InvalidArguments("no such product"))

    taken = await take_deploys([deploys], [f"p{number}" for number in range(50)], HOUR)

    assert len(taken.notes) == 50


def case(rows: Sequence[dict[str, JsonValue]] = ()) -> WrittenCase:
    return WrittenCase("c", "own", "why?", NOW, PRODUCTS, {"logs.ndjson": rows}, {})


def as_it_is(value: JsonValue) -> JsonValue:
    return value


def line(text: str) -> dict[str, JsonValue]:
    at = round((NOW - timedelta(minutes=1)).timestamp()) * 10**9
    return {"ts_ns": at, "labels": {"service": "checkout"}, "line": text}


def test_secrets_are_in_no_file(tmp_path: Path) -> None:
    redactor = TextRedactor([SECRET], b"key")
    labels: dict[str, JsonValue] = {"service": "checkout", "user": "jane@example.org"}
    series: dict[str, JsonValue] = {"name": "up", "labels": labels, "points": [[1.0, 2.0]]}
    pod: JsonValue = {"kind": "Pod", "metadata": {"name": "p"}, "status": {"message": GITHUB}}
    whole = WrittenCase(
        "c",
        "own",
        f"why does {SECRET} fail?",
        NOW,
        PRODUCTS,
        {"logs.ndjson": [line(f"login with {SECRET}, {GITHUB}")], "metrics.ndjson": [series]},
        {"kubernetes.json": {"objects": [pod], "events": []}},
        [f"logs: not read: {SECRET}"],
    )

    write_case(tmp_path / "c", whole, redactor.redact_value)

    written = b"".join(file.read_bytes() for file in (tmp_path / "c").iterdir())
    for secret in (SECRET, GITHUB, "jane@example.org"):
        assert secret.encode() not in written
    assert b"[[1.0,2.0]]" in written


def test_written_case_is_read_again(tmp_path: Path) -> None:
    write_case(tmp_path / "c", case([line("failed"), line("failed again")]), as_it_is)

    (found,) = case_files([tmp_path])
    recording = read_recording(found)

    assert [one.text for one in recording.lines or ()] == ["failed", "failed again"]
    assert recording.case.asked == "why?"
    assert (tmp_path / "c").stat().st_mode & 0o077 == 0


def test_another_case_is_never_written_over(tmp_path: Path) -> None:
    write_case(tmp_path / "c", case([line("first")]), as_it_is)

    with pytest.raises(NotWritten, match="already exists"):
        write_case(tmp_path / "c", case([line("second")]), as_it_is)

    assert b"first" in (tmp_path / "c" / "logs.ndjson").read_bytes()


def test_case_that_cannot_be_redacted_leaves_nothing(tmp_path: Path) -> None:
    def refuse(value: JsonValue) -> JsonValue:
        raise RedactionFailed("no")

    with pytest.raises(RedactionFailed):
        write_case(tmp_path / "c", case([line("first")]), refuse)

    assert list(tmp_path.iterdir()) == []


def test_folder_that_cannot_be_created_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    with pytest.raises(NotWritten, match="cannot be written"):
        write_case(tmp_path / "file" / "c", case(), as_it_is)


def test_case_respects_its_size_limit_and_says_what_did_not_fit(tmp_path: Path) -> None:
    rows = [line("x" * 1000) for _ in range(10)]

    left_out = write_case(tmp_path / "c", case(rows), as_it_is, most_bytes=5_000)

    assert left_out == ["logs.ndjson: 6 of 10 lines did not fit"]
    assert orjson.loads((tmp_path / "c" / "case.json").read_bytes())["notes"] == left_out
    assert len((tmp_path / "c" / "logs.ndjson").read_bytes()) < 5_000
