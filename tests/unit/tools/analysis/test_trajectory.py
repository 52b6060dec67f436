"""What a series says that nothing before can be compared with."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tools.analysis.trajectory import Trajectory, trajectory_of
from tools.signals import Role, Worse

STEP = 60.0


def trajectory_from(
    values: Sequence[float],
    role: Role = "queue",
    unit: str | None = "seconds",
    worse: Worse = "up",
    limit: float | None = None,
    step_s: float = STEP,
) -> Trajectory | None:
    points = [(n * step_s, value) for n, value in enumerate(values)]
    return trajectory_of(points, role, unit, worse, limit, STEP)


def test_a_clear_departure_from_the_first_values_is_reported() -> None:
    found = trajectory_from([1.2, 1.1, 70, 200, 400, 700, 900, 1100])

    assert found is not None
    assert (found.first, found.now, found.limit) == (1.1, 1000, None)
    assert found.size > 100


@pytest.mark.parametrize(
    "values",
    [
        [10, 11, 9, 10, 11, 10, 9, 10],
        [10, 11, 9, 40, 41, 10, 9, 10],
        [40, 41, 40, 39, 20, 10, 10, 10],
        [1, 50, 90],
        [],
    ],
    ids=["steady", "over again", "better", "too few", "none"],
)
def test_a_series_without_a_clear_bad_direction_is_not_reported(values: Sequence[float]) -> None:
    assert trajectory_from(values) is None


def test_a_sparse_series_has_no_first_values() -> None:
    assert trajectory_from([1, 1, 70, 200, 400, 700, 900, 1100], step_s=5 * STEP) is None


@pytest.mark.parametrize(
    ("role", "unit", "limit", "now", "over"),
    [
        ("cpu", "percent", None, 92.0, 90.0),
        ("pool", "ratio", None, 0.97, 0.9),
        ("latency", "milliseconds", 0.02, 84.0, 20.0),
        ("queue", "seconds", 60.0, 900.0, 60.0),
        ("memory", "kibibytes", 2.0**28, 3e5, 2.0**18),
        ("memory", "bits", 2.0**28, 6e8, None),
        ("memory", "percent", None, 97.0, None),
        ("queue", "", None, 900.0, None),
        ("cpu", "percent", None, 70.0, None),
    ],
)
def test_a_limit_counts_without_history(
    role: Role, unit: str, limit: float | None, now: float, over: float | None
) -> None:
    found = trajectory_from([now] * 8, role, unit, limit=limit)

    assert (found.limit if found else None) == over


@pytest.mark.parametrize(
    "values",
    [[95, 95, 95, 95, 20, 20, 20, 20], [95] * 11 + [20]],
    ids=["for long", "with the newest sample"],
)
def test_only_the_last_values_are_compared_with_a_limit(values: Sequence[float]) -> None:
    assert trajectory_from(values, "cpu", "percent") is None


def test_a_limit_in_seconds_does_not_apply_without_a_unit() -> None:
    assert trajectory_from([1.1] * 8, "latency", "seconds", limit=0.02) is not None
    assert trajectory_from([1.1] * 8, "latency", None, limit=0.02) is None


def test_space_that_runs_out_within_hours_is_reported_with_the_time() -> None:
    found = trajectory_from([50e9 - n * 4e9 for n in range(10)], "disk", "bytes", "down")

    assert found is not None
    assert found.runs_out_s == pytest.approx(210, abs=1)


def test_recovered_space_is_not_reported() -> None:
    assert (
        trajectory_from([30e9, 20e9, 3e9, 3e9, 200e9, 200e9, 200e9], "disk", "bytes", "down")
        is None
    )


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), max_size=30))
def test_any_values_are_accepted(values: list[float]) -> None:
    found = trajectory_from(values, limit=1.0)

    assert found is None or found.size >= 0
