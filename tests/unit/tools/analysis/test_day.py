"""The newest values of a series against its last day, and against the same time yesterday."""

import math
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tools.analysis.day import (
    day_course,
    day_shift,
    fall_since_yesterday,
    held_step,
    medians,
)
from tools.analysis.shift import Points, Shift
from tools.analysis.usual import UNUSUAL
from tools.signals import Role, Worse

END = 40 * 86_400.0
STEP_S = 600.0
HALF_HOUR = 1800.0


def day(value: Callable[[float], float], hours: float = 30.0) -> Points:
    """A sample each ten minutes up to END; `value` takes the hours until then."""
    number = int(hours * 6)
    return [
        (END - STEP_S * n, value(n / 6) * (1 + 0.02 * (n % 3 - 1))) for n in range(number, -1, -1)
    ]


def against_day(points: Points, role: Role = "latency", worse: Worse = "up") -> Shift | None:
    return day_shift(points, END - HALF_HOUR, END, role, None, worse, STEP_S)


def since_yesterday(points: Points) -> Shift | None:
    return fall_since_yesterday(points, END - HALF_HOUR, END, "traffic", None, STEP_S)


@pytest.mark.parametrize("hours", [3.0, 8.0, 20.0])
def test_trouble_of_any_age_within_the_day_is_found_with_its_onset(hours: float) -> None:
    found = against_day(day(lambda ago: 1.2 if ago <= hours else 0.2))

    assert found is not None
    assert found.up > UNUSUAL
    assert found.usual == pytest.approx(0.2, rel=0.1)
    assert found.since == pytest.approx(END - hours * 3600, abs=STEP_S)


def test_trouble_that_is_over_is_not_reported() -> None:
    assert against_day(day(lambda ago: 1.2 if 1 < ago <= 3 else 0.2)) is None


def test_a_spike_within_the_range_is_not_reported() -> None:
    assert against_day(day(lambda ago: 1.2 if ago == 1 / 6 else 0.2)) is None


def test_load_that_fell_hours_ago_is_found() -> None:
    found = against_day(day(lambda ago: 0.0 if ago <= 5 else 40.0), "traffic", "either")

    assert found is not None
    assert (found.last, found.down > UNUSUAL) == (0.0, True)


def test_an_hour_of_data_is_not_enough_for_a_day() -> None:
    assert against_day(day(lambda ago: 1.2 if ago <= 1 else 0.2, hours=3)) is None


def test_a_missing_daily_peak_is_found() -> None:
    def peak(ago: float) -> float:
        return 20.0 if ago <= 1 or 1 < ago <= 23 else 80.0

    found = since_yesterday(day(lambda ago: peak(ago % 25)))

    assert found is not None
    assert (round(found.usual, -1), round(found.last, -1)) == (80.0, 20.0)
    assert found.since == pytest.approx(END - 3600, abs=2 * STEP_S)


@pytest.mark.parametrize(
    "value",
    [
        pytest.param(lambda ago: 50.0 + 40 * math.cos(ago / 24 * 2 * math.pi), id="same as ever"),
        pytest.param(lambda ago: 12.0 if ago <= 1 else 20.0, id="a little less"),
        pytest.param(lambda ago: 0.0 if ago < 29 else 40.0, id="nothing since yesterday"),
    ],
)
def test_traffic_equal_to_yesterday_is_not_a_drop(value: Callable[[float], float]) -> None:
    assert since_yesterday(day(value)) is None


def test_less_than_a_day_of_data_is_not_compared_with_yesterday() -> None:
    assert since_yesterday(day(lambda ago: 5.0 if ago <= 1 else 40.0, hours=20)) is None


def test_course_has_the_samples_of_the_day_followed_by_medians() -> None:
    recent = [(END - 60.0 * n, 9.0 if n % 10 == 5 else 1.0) for n in range(120, -1, -1)]
    course = day_course(day(lambda _: 3.0), recent, END, STEP_S)

    assert [at for at, _ in course] == sorted({at for at, _ in course})
    assert {value for at, value in course if at >= END - 7000} == {1.0}
    assert all(value > 2 for at, value in course if at < END - 7300)


@given(
    st.lists(
        st.tuples(st.floats(-1e6, 40 * 86_400 + 1e4), st.floats(allow_nan=False, width=32)),
        max_size=40,
    )
)
def test_medians_are_ordered_and_within_their_values(points: list[tuple[float, float]]) -> None:
    found = medians(points, END, STEP_S)

    assert [at for at, _ in found] == sorted({at for at, _ in found})
    assert all(at <= END for at, _ in found)
    known = [value for at, value in points if at <= END + 1]
    assert all(min(known) <= value <= max(known) for _, value in found)


@given(st.lists(st.floats(-1e300, 1e300), min_size=0, max_size=200), st.floats(0, 1e300))
def test_any_values_give_finite_scores(values: list[float], newest: float) -> None:
    points = [(END - STEP_S * n, value) for n, value in enumerate([newest, *values])][::-1]
    found = [against_day(points, "other", "either"), since_yesterday(points)]

    assert all(math.isfinite(one.size) for one in found if one is not None)


def step_of(points: Points, worse: Worse = "either") -> Shift | None:
    return held_step(points, END - HALF_HOUR, END, "traffic", None, worse, STEP_S)


@pytest.mark.parametrize("share", [0.0, 0.4, 3.0])
@pytest.mark.parametrize("hours", [1.5, 5.0, 14.0])
def test_a_sudden_lasting_change_is_found_with_its_onset(hours: float, share: float) -> None:
    found = step_of(day(lambda ago: 40.0 * (share if ago <= hours else 1.0)))

    assert found is not None
    assert found.size > UNUSUAL
    assert found.usual == pytest.approx(40.0, rel=0.05)
    assert found.since == pytest.approx(END - hours * 3600, abs=STEP_S)


@pytest.mark.parametrize(
    "value",
    [
        lambda ago: 40 * (1 + 0.8 * math.cos(ago / 24 * 2 * math.pi)),  # a rhythm
        lambda ago: 90.0 if ago % 12 < 6 else 40.0,  # each of several equal steps
        lambda ago: 90.0 if 4 < ago < 8 else 40.0,  # over
        lambda ago: 40.0 + 2 * max(0.0, 20 - ago),  # slow growth
        lambda ago: 40.0 if ago > 3 else 44.0,  # small
    ],
)
def test_slow_frequent_and_small_changes_are_not_steps(
    value: Callable[[float], float],
) -> None:
    assert step_of(day(value)) is None


def test_a_step_in_the_good_direction_is_not_reported() -> None:
    points = day(lambda ago: 10.0 if ago <= 5 else 40.0)

    assert step_of(points, "up") is None
    assert step_of(points, "down") is not None


@given(st.lists(st.floats(-1e300, 1e300), max_size=200))
def test_any_course_has_a_finite_step_or_none(values: list[float]) -> None:
    found = step_of([(END - STEP_S * n, value) for n, value in enumerate(values)][::-1])

    assert found is None or (math.isfinite(found.up) and math.isfinite(found.down))
