"""Downsampling, percentiles, relative change."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tools.statistics import (
    downsampled,
    finite,
    relative_change,
    summary,
)

T0 = datetime(2026, 4, 7, tzinfo=UTC)
floats = st.floats(-1e9, 1e9, allow_nan=False)


def minutes(values: list[float]) -> list[tuple[datetime, float]]:
    return [(T0 + timedelta(minutes=index), value) for index, value in enumerate(values)]


def test_a_relative_change_is_computed() -> None:
    assert relative_change(10.0, 15.0) == pytest.approx(0.5)
    assert relative_change(-10.0, -15.0) == pytest.approx(-0.5)
    assert relative_change(0.0, 5.0) is None


def test_non_finite_points_are_dropped_and_order_is_restored() -> None:
    later = T0 + timedelta(minutes=1)
    points = [(later, 2.0), (T0, None), (T0, float("nan")), (T0, float("inf")), (T0, 1.0)]
    assert finite(points) == [(T0, 1.0), (later, 2.0)]


@given(st.lists(floats, min_size=1))
def test_percentiles_are_ordered_and_within_the_values(values: list[float]) -> None:
    stats = summary(values)
    assert stats is not None
    assert min(values) == stats.min <= stats.p50 <= stats.p95 <= stats.p99 <= stats.max
    assert stats.min <= stats.mean <= stats.max == max(values)


def test_no_values_give_no_summary() -> None:
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
