"""The sweeps: anomalies, changes and failures of all products at once, and the gaps."""

import random
from collections.abc import Mapping
from typing import Any

import orjson
import pytest

from adapters.observe.cursor import UnsealedCodec
from adapters.recorded.packs.archive import CaseFiles
from adapters.recorded.packs.recording import read_recording
from adapters.recorded.player.backends import backends_of
from tests.fakes.capabilities import fake_capabilities
from tests.fakes.set_clock import SetClock
from tests.fakes.tools import bench
from tests.packs import NOW, minutes
from tools.core.error_patterns import ErrorPatterns
from tools.core.metric_sweep import MetricSweep
from tools.core.sweep_arguments import SweepInput
from tools.core.sweep_metrics import SweepMetrics
from tools.core.sweep_traces import SweepTraces

PRODUCTS = ("web", "cart", "db")
LOADS = {"web": 200, "cart": 50, "db": 120}


async def sweep(tool: Any, given: str = "{}", **stems: Any) -> dict[str, Any]:
    """Run one over files of a case, rows by stem."""
    case = {"id": "c", "set": "s", "asked": "?", "now": NOW.isoformat(), "products": PRODUCTS}
    files = {"case.json": orjson.dumps(case)}
    for stem, rows in stems.items():
        lines = (
            b"\n".join(map(orjson.dumps, rows)) if isinstance(rows, list) else orjson.dumps(rows)
        )
        files[f"{stem}.{'ndjson' if isinstance(rows, list) else 'json'}"] = lines
    clock = SetClock(NOW)
    world = backends_of(read_recording(CaseFiles("c", files)), clock, UnsealedCodec())
    seen = {name: getattr(world, name) for name in ("logs", "metrics", "traces", "kubernetes")}
    caps = fake_capabilities(**{name: one for name, one in seen.items() if one is not None})
    outcome = await bench([tool()], caps=caps).run(
        given, tool.contract.id, now=NOW, products=PRODUCTS
    )
    assert outcome.record.ok, outcome.content
    told: dict[str, Any] = orjson.loads(outcome.content)
    return told


def metric(name: str, product: str, late: float, usual: float = 0.2) -> Mapping[str, object]:
    points = [
        (at, late if n >= 230 else usual + 0.001 * (n % 5)) for n, at in enumerate(minutes(240))
    ]
    return {"name": name, "labels": {"service": product}, "points": points}


async def test_what_changed_comes_first_and_the_rest_counts_as_checked() -> None:
    name = "http_request_duration_seconds_p99"
    rows = [metric(name, "web", 0.2), metric(name, "cart", 1.9)]
    found = await sweep(SweepMetrics, metrics=rows)

    (moved,) = [one for one in found["shifts"] if one["score"] >= 3]
    assert (moved["product"], moved["role"], moved["direction"]) == ("cart", "latency", "up")
    assert moved["since"] == "2026-11-20T13:50:00Z"
    assert found["within"]["web"] == "latency"
    assert found["without"] == ["db"]


def counted(name: str, product: str, mean: int) -> Mapping[str, object]:
    chooser = random.Random(f"{name}/{product}")
    values = [sum(chooser.random() < mean / 500 for _ in range(500)) for _ in range(240)]
    points = list(zip(minutes(240), values, strict=False))
    return {"name": name, "labels": {"service": product}, "points": points}


async def test_an_unnamed_count_shows_how_many_requests_a_slow_product_gets() -> None:
    rows = [counted("doorbell", product, mean) for product, mean in LOADS.items()]
    rows.append(metric("http_request_duration_seconds_p99", "cart", 1.9))
    found = await sweep(SweepMetrics, metrics=rows)

    (slow,) = [one for one in found["shifts"] if one["role"] == "latency"]
    assert 40 <= slow["requests"] <= 60
    assert found["traffic"] == {}  # a series that only may be requests is not reported as traffic


async def test_ongoing_and_past_trouble_are_distinguished() -> None:
    name = "http_request_duration_seconds_p99"
    rows = [dict(metric(name, "web", 1.9)), dict(metric(name, "cart", 1.9))]
    points = list(rows[1]["points"])  # type: ignore[call-overload]
    rows[1]["points"] = [(at, 0.2 if n >= 234 else value) for n, (at, value) in enumerate(points)]
    found = await sweep(SweepMetrics, metrics=rows)

    told = {one["product"]: one for one in found["shifts"]}
    assert (told["web"]["last"], told["web"].get("until")) == (1.9, None)
    assert (told["cart"]["last"], told["cart"]["until"]) == (0.2, "2026-11-20T13:54:00Z")
    assert told["cart"]["worst"] == 1.9
    assert told["cart"].get("last_at") is None


async def test_an_ended_series_has_no_current_value() -> None:
    row = dict(metric("http_request_duration_seconds_p99", "web", 1.9))
    row["points"] = list(row["points"])[:235]  # type: ignore[call-overload]
    found = await sweep(SweepMetrics, metrics=[row])

    (moved,) = found["shifts"]
    assert (moved["last"], moved["last_at"]) == (1.9, "2026-11-20T13:55:00Z")


async def test_the_largest_changes_have_their_course_for_any_product() -> None:
    rows = [metric("http_request_duration_seconds_p99", one, 1.9) for one in PRODUCTS]
    rows += [metric("cpu_usage_percent", one, 95.0, 20.0) for one in PRODUCTS]
    found = await sweep(SweepMetrics, '{"product": "db"}', metrics=rows)

    courses = {(one["product"], one["role"]): one.get("course") for one in found["shifts"]}
    drawn = {whose for whose, course in courses.items() if course}
    assert len(drawn) == 4
    assert {("db", "latency"), ("db", "cpu")} <= drawn
    told = courses["db", "latency"]
    assert told["before_end_s"][0] == 2_700
    assert len(told["values"]) == len(told["before_end_s"]) <= 20
    # The onset is among them, and nothing that was not read.
    assert 600 in told["before_end_s"]
    assert set(told["values"]) <= {0.2, 0.201, 0.202, 0.203, 0.204, 1.9}


async def test_too_short_a_baseline_is_reported() -> None:
    row = {**metric("cpu_usage_percent", "web", 90.0)}
    row["points"] = list(row["points"])[-5:]  # type: ignore[call-overload]
    found = await sweep(SweepMetrics, metrics=[row])

    assert found["too_short"] == {"web": "cpu"}
    assert found["shifts"] == found["standing"] == []


async def test_young_data_says_when_it_can_be_compared() -> None:
    row = {**metric("cpu_usage_percent", "web", 95.0)}
    row["points"] = list(row["points"])[-20:]  # type: ignore[call-overload]
    found = await sweep(SweepMetrics, metrics=[row])
    past = await sweep(
        SweepMetrics,
        given='{"time_range": "2026-11-20T13:40:00Z/2026-11-20T13:55:00Z"}',
        metrics=[row],
    )

    assert found["least_before_s"] == 600.0
    # Data from 13:41 on: ten samples and a step before 13:53, of half an hour up to then.
    assert found["comparable"]["web"]["range_from"] == "2026-11-20T13:53:00Z"
    assert found["comparable"]["web"]["asked_at"] == "2026-11-20T14:23:00Z"
    assert past["comparable"]["web"].get("asked_at") is None
    assert [one["first_at"] for one in found["standing"]] == ["2026-11-20T13:41:00Z"]


async def test_young_data_is_compared_from_the_promised_time() -> None:
    row = {**metric("cpu_usage_percent", "web", 95.0)}
    row["points"] = list(row["points"])[-20:]  # type: ignore[call-overload]
    young = await sweep(SweepMetrics, metrics=[row])
    since = young["comparable"]["web"]["range_from"]
    found = await sweep(SweepMetrics, given=f'{{"time_range": "{since}"}}', metrics=[row])

    assert found["too_short"] == found["comparable"] == {}


async def test_a_limit_counts_without_a_baseline() -> None:
    row = {**metric("cpu_usage_percent", "web", 95.0)}
    row["points"] = list(row["points"])[-9:]  # type: ignore[call-overload]
    found = await sweep(SweepMetrics, metrics=[row])

    (stands,) = found["standing"]
    assert (stands["product"], stands["role"], stands["now"]) == ("web", "cpu", 95.0)
    assert stands["limit"] == 90.0


@pytest.mark.parametrize(("lasts_s", "told"), [(180, ["cart"]), (60, [])])
async def test_a_few_minutes_of_dense_samples_are_read_at_their_step(
    lasts_s: int, told: list[str]
) -> None:
    times = [NOW.timestamp() - before for before in range(lasts_s, -1, -5)]
    slow = [0.005 + (2.0 if n > len(times) / 3 else 0.0) for n in range(len(times))]
    rows = [
        {"name": "p95latency", "unit": "seconds", "labels": {"service": product}, "points": points}
        for product, points in (
            ("cart", list(zip(times, slow, strict=True))),
            ("web", [(at, 0.2) for at in times]),
        )
    ]
    found = await sweep(SweepMetrics, metrics=rows)

    assert found["step_s"] == 5.0
    assert [(one["product"], one["role"]) for one in found["standing"]] == [
        (product, "latency") for product in told
    ]


async def test_a_window_shorter_than_the_interval_has_the_newest_sample() -> None:
    row = dict(metric("http_request_duration_seconds_p99", "web", 0.2))
    at = minutes(2400)[::-20][::-1]
    row["points"] = [(each, 1.9 if each == at[-1] else 0.2) for each in at]
    found = await sweep(SweepMetrics, given='{"time_range": "last 5m"}', metrics=[row])

    (moved,) = found["shifts"]
    assert (moved["product"], moved["worst"]) == ("web", 1.9)


async def test_new_kinds_of_errors_are_reported_with_the_products_they_name() -> None:
    def line(at: float, text: str, level: str) -> dict[str, object]:
        return {"ts_ns": int(at * 1e9), "labels": {"service": "cart", "level": level}, "line": text}

    usual = [line(at, "served", "info") for at in minutes(90)]
    bad = [line(at, "no answer from db", "error") for at in minutes(9)]
    found = await sweep(ErrorPatterns, logs=[*usual, *bad])

    (change,) = found["changes"]
    assert (change["product"], change["change"], change["after"]) == ("cart", "new", 10)
    assert change["names"] == ["db"]
    assert found["without"] == ["web", "db"]


@pytest.mark.parametrize(
    ("silent", "until"), [(5, "2026-11-20T13:55:00Z"), (2, None)], ids=["ended", "goes on"]
)
async def test_errors_that_stopped_have_an_end(silent: int, until: str | None) -> None:
    def line(at: float, text: str, level: str) -> dict[str, object]:
        return {"ts_ns": int(at * 1e9), "labels": {"service": "cart", "level": level}, "line": text}

    usual = [line(at, "served", "info") for at in minutes(90)]
    bad = [line(at, "no answer from db", "error") for at in minutes(14)[:-silent]]
    found = await sweep(ErrorPatterns, logs=[*usual, *bad])

    (change,) = found["changes"]
    assert change.get("until") == until


async def test_traces_show_calls_between_services_and_slower_ones() -> None:
    def spans(at: float, own_ms: int) -> list[dict[str, object]]:
        start, trace = int(at * 1e9), f"{int(at):032x}"
        shared = {"trace_id": trace, "start_ns": start}
        return [
            {**shared, "span_id": "a", "service": "web", "name": "GET", "end_ns": start + 10**9},
            {**shared, "span_id": "b", "parent_id": "a", "service": "cart", "name": "add",
             "end_ns": start + own_ms * 10**6},
        ]  # fmt: skip

    usual = [one for at in minutes(180)[:-31] for one in spans(at, 20)]
    slow = [one for at in minutes(29)[:-1] for one in spans(at, 600)]
    found = await sweep(SweepTraces, traces=[*usual, *slow])

    assert found["calls"] == ["web > cart"]
    assert ("cart", "own") in {(one["product"], one["what"]) for one in found["shifts"]}


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("", "1 product changed, 1 normal"),
        ("web", "web normal; 1 other products changed, 0 are normal"),
        ("cart", "cart changed; 0 other products changed, 1 are normal"),
        ("db", "db not compared; 1 other products changed, 1 are normal"),
    ],
)
async def test_the_summary_of_a_sweep_names_what_changed(asked: str, said: str) -> None:
    name = "http_request_duration_seconds_p99"
    found = await sweep(SweepMetrics, metrics=[metric(name, "web", 0.2), metric(name, "cart", 1.9)])
    output = MetricSweep.model_validate(found)

    assert SweepMetrics().summarise(output, SweepInput(product=asked)) == said
