"""The traps of a z-score, each on the shape of data that sprang it; downsampling and percentiles."""

import statistics
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tools.statistics import (
    baseline,
    direction,
    downsampled,
    finite,
    relative_change,
    summary,
    sustained_from,
)

T0 = datetime(2026, 4, 7, tzinfo=UTC)
floats = st.floats(-1e9, 1e9, allow_nan=False)


def minutes(values: list[float]) -> list[tuple[datetime, float]]:
    return [(T0 + timedelta(minutes=index), value) for index, value in enumerate(values)]


def test_the_deviation_is_that_of_a_sample() -> None:
    usual = baseline([1.0, 2.0, 3.0, 4.0], 4)
    assert usual.stddev == pytest.approx(statistics.stdev([1, 2, 3, 4]))


def test_thirty_points_are_needed() -> None:
    assert baseline([1.0, 2.0] * 15, 30).z_score(9.0) is not None
    assert baseline([1.0, 2.0] * 14, 30).z_score(9.0) is None
    assert not baseline([1.0, 2.0] * 14, 30).anomalous(9.0)


def test_two_percent_on_an_idle_series_is_not_news() -> None:
    idle = baseline([100.0, 100.001] * 50, 100)
    assert idle.z_score(102.0) == pytest.approx(2.0, abs=0.1)


def test_an_artefact_in_the_baseline_does_not_hide_behind_its_own_deviation() -> None:
    spiky = baseline([1.0, 1.1] * 50 + [3600.0], 101)
    assert spiky.floor >= spiky.stddev


def test_a_wide_spread_with_a_small_deviation_uses_the_median_spread() -> None:
    usual = baseline([0.0, 10.0] * 50, 100)
    assert usual.floor == pytest.approx(1.4826 * 5)


def test_a_constant_baseline_has_no_score_but_a_change_from_it_is_anomalous() -> None:
    calm = baseline([0.0] * 100, 100)
    assert calm.constant
    assert calm.z_score(5.0) is None
    assert calm.anomalous(5.0)
    assert not calm.anomalous(0.0)


def test_coverage_says_how_much_was_there() -> None:
    assert baseline([1.0] * 72, 144).coverage == 0.5
    assert baseline([1.0] * 200, 144).coverage == 1.0
    assert baseline([], 144).coverage == 0.0


def test_one_spike_is_not_sustained_and_three_in_a_row_are() -> None:
    usual = baseline([1.0, 2.0] * 50, 100)
    assert sustained_from(minutes([1, 99, 1, 99, 1, 99]), usual) is None
    assert sustained_from(minutes([1, 99, 1, 99, 99, 99]), usual) == T0 + timedelta(minutes=3)
    assert sustained_from(minutes([99, 99]), usual) == T0
    assert sustained_from([], usual) is None


def test_direction_and_relative_change() -> None:
    usual = baseline([9.0, 11.0] * 50, 100)
    assert [direction(usual, mean) for mean in (5.0, 10.0, 15.0)] == ["down", "flat", "up"]
    assert relative_change(10.0, 15.0) == pytest.approx(0.5)
    assert relative_change(-10.0, -15.0) == pytest.approx(-0.5)
    assert relative_change(0.0, 5.0) is None


def test_points_that_are_not_finite_are_left_out_and_order_is_restored() -> None:
    later = T0 + timedelta(minutes=1)
    points = [(later, 2.0), (T0, None), (T0, float("nan")), (T0, float("inf")), (T0, 1.0)]
    assert finite(points) == [(T0, 1.0), (later, 2.0)]


@given(st.lists(floats, min_size=1))
def test_percentiles_are_ordered_and_within_the_values(values: list[float]) -> None:
    stats = summary(values)
    assert stats is not None
    assert min(values) == stats.min <= stats.p50 <= stats.p95 <= stats.p99 <= stats.max
    assert stats.min <= stats.mean <= stats.max == max(values)


def test_no_values_have_no_summary() -> None:
    assert summary([]) is None


@given(st.lists(floats, max_size=500), st.integers(2, 60))
def test_downsampling_keeps_order_and_the_extremes(values: list[float], most: int) -> None:
    points = minutes(values)
    kept = downsampled(points, most)
    assert len(kept) <= most
    assert kept == sorted(set(kept))
    assert set(kept) <= set(points)
    assert {f({v for _, v in kept} or {0.0}) for f in (min, max)} == {
        f(set(values) or {0.0}) for f in (min, max)
    }
