"""The baseline, and the part of it that belongs to ongoing trouble."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tools.analysis.usual import least_spread, untroubled, usual_of


def calm(number: int, usual: float = 0.2) -> list[float]:
    return [usual * (1 + 0.02 * (n % 5)) for n in range(number)]


def of_latency(values: list[float]) -> int:
    return untroubled(values, "latency", "seconds", "up")


@pytest.mark.parametrize("trouble", [7, 16, 45, 60, 85])
def test_ongoing_trouble_is_not_part_of_the_baseline(trouble: int) -> None:
    values = [*calm(120 - trouble), *calm(trouble, 1.6)]

    assert of_latency(values) == 120 - trouble
    assert usual_of(values[: of_latency(values)], "latency", "seconds").spread < 0.03


@pytest.mark.parametrize(
    "values",
    [
        calm(120),
        [*calm(60), *calm(30, 1.6), *calm(30)],
        [*calm(119), 1.6],
        [*calm(114), *calm(6, 1.6)],
        [0.2 + 0.01 * n for n in range(120)],
        calm(10),
        [0.2],
        [],
    ],
    ids=["calm", "over", "one sample", "no more than the tails", "drift", "few", "one", "none"],
)
def test_older_changes_are_part_of_the_baseline(values: list[float]) -> None:
    assert of_latency(values) == len(values)


def test_trouble_with_a_short_pause_continues() -> None:
    values = [*calm(90), *calm(10, 1.6), 0.2, 0.2, *calm(18, 1.6)]

    assert of_latency(values) == 90


@pytest.mark.parametrize(
    ("worse", "number"), [("up", 120), ("down", 100), ("either", 100)], ids=["up", "down", "either"]
)
def test_only_the_harmful_direction_is_trouble(worse: str, number: int) -> None:
    values = [*calm(100, 40.0), *calm(20, 4.0)]

    assert untroubled(values, "traffic", "per second", worse) == number  # type: ignore[arg-type]


def test_recurring_values_are_normal_at_the_end_too() -> None:
    batch = [*calm(40), *calm(20, 1.6)]

    assert of_latency([*batch, *batch]) == 120


@given(st.lists(st.floats(-1e9, 1e9), max_size=60))
def test_frequent_values_are_left_in_the_baseline(values: list[float]) -> None:
    left = untroubled(values, "other", None, "either")

    assert min(5, len(values)) <= left <= len(values)


@pytest.mark.parametrize(
    ("unit", "one_second"),
    [
        ("seconds", 1.0),
        ("ms", 1e3),
        ("milliseconds", 1e3),
        ("minutes", 1 / 60),
        ("hours", 1 / 3600),
    ],
)
def test_the_smallest_change_of_a_duration_is_equal_in_every_unit(
    unit: str, one_second: float
) -> None:
    in_seconds = least_spread(0.02, "latency", "seconds")

    assert least_spread(0.02 * one_second, "latency", unit) == pytest.approx(
        in_seconds * one_second
    )
