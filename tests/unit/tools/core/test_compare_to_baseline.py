"""A window against the day before it: verdicts, their doubts, and the traps."""

from collections.abc import Callable
from datetime import datetime, timedelta

import orjson
import pytest

from tests.fakes.capabilities import NOW, FakeMetrics, fake_capabilities
from tests.fakes.tools import Bench, bench
from tools.capabilities import Series
from tools.core.compare_to_baseline import CompareToBaseline
from tools.records import ToolOutcome

DAY = 24 * 60 + 60


def shaped(value_at: Callable[[int], float | None], **labels: str) -> Series:
    """One point a minute for 25 hours; `value_at` is given how many minutes ago."""
    points = [(NOW - timedelta(minutes=ago), value_at(ago)) for ago in range(DAY, 0, -1)]
    return Series(labels, points)


def wobble(ago: int) -> float:
    return 1.0 + 0.1 * (ago % 3 - 1)


def comparing(*series: Series, metric: str = "p99") -> Bench:
    metrics = FakeMetrics({("checkout", metric): series})
    return bench([CompareToBaseline()], caps=fake_capabilities(metrics=metrics))


def bench_of(metrics: FakeMetrics) -> Bench:
    return bench([CompareToBaseline()], caps=fake_capabilities(metrics=metrics))


async def ask(
    b: Bench,
    metric: str = "p99",
    time_range: str = "last 30m",
    product: str = "checkout",
    **context: object,
) -> ToolOutcome:
    given = {"product": product, "metric_name": metric, "time_range": time_range}
    return await b.run(orjson.dumps(given).decode(), "core__compare_to_baseline", **context)


async def test_a_fault_is_found_with_its_start_and_its_caveats() -> None:
    b = comparing(shaped(lambda ago: 3.0 if ago <= 15 else wobble(ago)))
    outcome = await ask(b)
    body = orjson.loads(outcome.content)
    assert body["anomalous"] is True
    assert body["first_anomaly_at"] == "2026-04-07T14:20:00Z"
    assert (body["anomaly_count"], body["direction"]) == (15, "up")
    assert body["baseline_mean"] == pytest.approx(1.0, rel=0.01)
    assert body["max_z_score"] == pytest.approx(2 / (1.4826 * 0.1), rel=0.01)
    assert body["relative_change"] == pytest.approx(1.0, rel=0.05)
    assert (body["n"], body["coverage"], body["window_max"]) == (1440, 1.0, 3.0)
    assert body["baseline_window"] == "2026-04-06T13:55:00Z/2026-04-07T13:55:00Z"
    assert body["range"] == "2026-04-07T14:05:00Z/2026-04-07T14:35:00Z"
    assert "2026-04-07T14:20:00Z" in [sample["ts"] for sample in body["samples"]]
    assert len(body["samples"]) <= 12
    assert outcome.summary == "p99 3.0x baseline, z 13"


async def test_the_guard_gap_keeps_the_incident_out_of_its_own_baseline() -> None:
    b = comparing(shaped(lambda ago: 500.0 if ago <= 40 else wobble(ago)))
    body = orjson.loads((await ask(b)).content)
    assert body["baseline_median"] == pytest.approx(1.0, rel=0.01)


async def test_a_normal_window_is_reported_as_normal() -> None:
    outcome = await ask(comparing(shaped(wobble)))
    body = orjson.loads(outcome.content)
    assert (body["anomalous"], body["anomaly_count"], body["direction"]) == (False, 0, "flat")
    assert outcome.summary == "p99 within baseline"


async def test_a_single_spike_is_counted_and_is_not_an_anomaly() -> None:
    b = comparing(shaped(lambda ago: 99.0 if ago == 10 else wobble(ago)))
    body = orjson.loads((await ask(b)).content)
    assert (body["anomalous"], body["anomaly_count"]) == (False, 1)


async def test_a_drop_is_an_anomaly_too() -> None:
    outcome = await ask(comparing(shaped(lambda ago: 0.1 if ago <= 10 else wobble(ago))))
    body = orjson.loads(outcome.content)
    assert (body["anomalous"], body["direction"]) == (True, "down")
    assert body["max_z_score"] < 0


async def test_a_constant_baseline_has_no_score_but_a_verdict() -> None:
    outcome = await ask(comparing(shaped(lambda ago: 5.0 if ago <= 10 else 0.0)))
    body = orjson.loads(outcome.content)
    assert body["anomalous"] is True
    assert "max_z_score" not in body
    assert any("baseline constant" in note for note in body["notes"])
    assert outcome.summary == "p99 0 → 5"


async def test_too_small_a_baseline_gives_no_verdict() -> None:
    b = comparing(shaped(lambda ago: 9.0 if ago <= 30 else (1.0 if ago % 60 == 0 else None)))
    outcome = await ask(b)
    body = orjson.loads(outcome.content)
    assert body["anomalous"] is False
    assert "direction" not in body
    assert any("insufficient baseline" in note for note in body["notes"])
    assert outcome.summary == "p99: insufficient baseline"


async def test_gaps_are_reported() -> None:
    b = comparing(shaped(lambda ago: wobble(ago) if ago % 2 else None))
    body = orjson.loads((await ask(b)).content)
    assert body["coverage"] == 0.5
    assert "gaps in the baseline" in body["notes"]


async def test_a_sustained_fault_comes_before_a_higher_spike_of_another_series() -> None:
    spike = shaped(lambda ago: 9e9 if ago == 5 else wobble(ago), pod="spike")
    fault = shaped(lambda ago: 3.0 if ago <= 15 else wobble(ago), pod="fault")
    body = orjson.loads((await ask(comparing(spike, fault))).content)
    assert body["series"] == {"pod": "fault"}
    assert "2 series; the most unusual one is shown" in body["notes"]


async def test_yesterday_at_the_same_time_is_reported_too() -> None:
    b = comparing(shaped(lambda ago: 3.0 if ago <= 30 or ago > 1440 else wobble(ago)))
    body = orjson.loads((await ask(b)).content)
    assert body["same_time_yesterday_mean"] == pytest.approx(3.0)


async def test_a_raw_counter_is_refused() -> None:
    b = comparing(shaped(lambda ago: float(DAY - ago)), metric="requests_total")
    body = orjson.loads((await ask(b, "requests_total")).content)
    assert (body["error"], "raw counter" in body["message"]) == ("validation", True)


async def test_a_rate_of_a_counter_is_compared() -> None:
    b = comparing(shaped(wobble), metric="requests_total")
    assert (await ask(b, "requests_total")).record.ok


async def test_missing_data_is_reported() -> None:
    outcome = await ask(comparing(), "p99")
    assert "no data in the time range" in orjson.loads(outcome.content)["notes"]
    assert outcome.summary == "p99: no data, last 30m"


async def test_more_than_a_day_cannot_be_compared() -> None:
    outcome = await ask(comparing(shaped(wobble)), time_range="last 25h")
    assert orjson.loads(outcome.content)["error"] == "validation"


async def test_the_end_point_belongs_to_the_next_window() -> None:
    seen: list[datetime] = [at for at, _ in shaped(wobble).points]
    body = orjson.loads((await ask(comparing(shaped(wobble)), time_range="now-1m..now")).content)
    assert [sample["ts"] for sample in body["samples"]] == ["2026-04-07T14:34:00Z"]
    assert seen[-1] == NOW - timedelta(minutes=1)


def spaced(minutes: int, value_at: Callable[[int], float | None]) -> Series:
    """Twenty-five hours with a point every so many minutes."""
    ago = range(DAY - DAY % minutes, 0, -minutes)
    return Series({}, [(NOW - timedelta(minutes=m), value_at(m)) for m in ago])


async def test_five_minute_samples_are_compared_too() -> None:
    fault = spaced(5, lambda ago: 3.0 if ago <= 20 else wobble(ago // 5))
    metrics = FakeMetrics({("checkout", "p99"): [fault]}, spacing_s=300.0)
    body = orjson.loads((await ask(bench_of(metrics))).content)
    assert (body["anomalous"], body["coverage"]) == (True, 1.0)
    assert metrics.queries[0].step_s == 300.0


async def test_one_five_minute_sample_is_not_a_sustained_fault() -> None:
    spike = spaced(5, lambda ago: 3.0 if ago == 10 else wobble(ago // 5))
    metrics = FakeMetrics({("checkout", "p99"): [spike]}, spacing_s=300.0)
    assert orjson.loads((await ask(bench_of(metrics))).content)["anomalous"] is False


async def test_an_anomalous_hour_before_is_reported() -> None:
    b = comparing(shaped(lambda ago: 3.0 if ago <= 120 else wobble(ago)))
    body = orjson.loads((await ask(b)).content)
    assert body["hour_before_median"] == 3.0
    assert any("it began before this time range" in note for note in body["notes"])


async def test_a_daily_recurring_level_is_not_anomalous() -> None:
    points = [
        (NOW - timedelta(minutes=ago), 3.0 if ago % 1440 <= 30 else wobble(ago))
        for ago in range(4 * 1440, 0, -1)
    ]
    body = orjson.loads((await ask(comparing(Series({}, points)))).content)
    assert body["same_time_earlier_days"] == [3.0, 3.0, 3.0]
    assert body["anomalous"] is False
    assert any("the same at this time on 3 earlier days" in note for note in body["notes"])


async def test_all_products_of_the_channel_are_compared_in_one_query() -> None:
    metrics = FakeMetrics(
        {
            ("checkout", "p99"): [shaped(wobble)],
            ("payments", "p99"): [shaped(lambda ago: 9.0 if ago <= 10 else wobble(ago))],
            ("other", "p99"): [shaped(lambda ago: 99.0 if ago <= 10 else wobble(ago))],
        }
    )
    channel = ("checkout", "payments", "cart")
    outcome = await ask(bench_of(metrics), product="*", products=channel)
    body = orjson.loads(outcome.content)
    assert [(one["product"], one["anomalous"]) for one in body["products"]] == [
        ("payments", True), ("checkout", False),
    ]  # fmt: skip
    assert body["series"] == {"product": "payments"}
    assert "without this metric: cart" in body["notes"]
    assert outcome.summary == "p99 unusual for payments"
    assert len([one for one in metrics.sweeps if len(one.products) == 3]) == 3  # two earlier days


async def test_unknown_metric_lists_the_known_ones() -> None:
    b = bench_of(FakeMetrics({("checkout", "p99"): [shaped(wobble)]}))
    body = orjson.loads((await ask(b, "p50", product="*")).content)
    assert "there are: p99" in body["message"]
