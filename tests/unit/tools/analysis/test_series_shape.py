"""The kind of a series by its values alone."""

import random
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tools.analysis.series_shape import (
    Shape,
    growth_of,
    shape_of,
    unit_of_duration,
    usual_number,
    with_shape,
)
from tools.analysis.shift import Points
from tools.signals import MAIN, UNKNOWN, USUAL, Role, Signal, Worse


def each_minute(values: list[float]) -> Points:
    return [(60.0 * number, value) for number, value in enumerate(values)]


def signal(role: Role = "other", rank: int = UNKNOWN, worse: Worse = "either") -> Signal:
    return Signal("app_x1", role, "gauge", "app_x1", rank=rank, worse=worse)


GOOD = [0.999, 1.0, 0.998, 1.0] * 10
BAD = [0.0, 0.0, 0.004, 0.0] * 10
SHAPES = {
    "a share of successes": (GOOD, Shape("ratio", good=True)),
    "the same in percent": ([100 * one for one in GOOD], Shape("percent", good=True)),
    "a share of failures": (BAD, Shape("ratio", good=False)),
    "a flag that is up": ([1.0] * 40, Shape("flag", good=True)),
    "a flag that is mostly down": ([0.0] * 39 + [1.0], Shape("flag", good=False)),
    "nought alone": ([0.0] * 40, Shape("")),
    "a counter": ([7.0 * n for n in range(40)], Shape("counter")),
    "a counter with a reset": ([7.0 * (n % 25) + 1 for n in range(40)], Shape("counter")),
    "a queue": ([10.0, 12.0, 9.0, 11.0] * 10, Shape("")),
    "a latency": ([0.21, 0.24, 0.22, 0.2] * 10, Shape("")),
    "a CPU in percent": ([20.0, 35.5, 28.0, 91.0] * 10, Shape("")),
    "a CPU that gets full": (
        [4.5, 6.1, 5.2, 7.0] * 9 + [99.8, 100.0, 100.3, 99.9],
        Shape("percent", is_usage=True),
    ),
    "a share that gets full": (
        [0.2, 0.31, 0.24, 0.2] * 9 + [0.995, 1.0, 1.004, 1.0],
        Shape("ratio", is_usage=True),
    ),
    "milliseconds that come near 100": ([4.5, 6.1, 5.2, 99.8] * 10, Shape("")),
    "milliseconds beyond 100": ([4.5, 6.1, 5.2, 7.0] * 9 + [99.8, 100.0, 130.0], Shape("")),
    "a temperature below nought": ([-1.0, 2.0] * 20, Shape("")),
    "too few samples": ([1.0, 0.99], Shape("")),
}


@pytest.mark.parametrize(("values", "shape"), SHAPES.values(), ids=SHAPES)
def test_the_values_decide_the_kind_of_a_series(values: list[float], shape: Shape) -> None:
    assert shape_of([each_minute(values)]) == shape


def test_products_are_judged_together() -> None:
    above_one = [1.0, 1.0, 1.7, 1.0] * 10

    assert shape_of([each_minute(GOOD), each_minute(above_one)]) == Shape("")


@pytest.mark.parametrize(
    ("known", "values", "role", "worse"),
    [
        (signal(), GOOD, "errors", "down"),
        (signal(), BAD, "errors", "up"),
        (signal("errors", USUAL, "up"), GOOD, "errors", "down"),
        (signal("errors", USUAL, "down"), BAD, "errors", "up"),
        (signal("errors", MAIN, "up"), GOOD, "errors", "up"),
        (signal("cpu", USUAL, "up"), GOOD, "cpu", "up"),
    ],
    ids=[
        "an unknown share of successes",
        "an unknown share of failures",
        "a name with `error` that is usually at 100 %",
        "a name with `success` that is usually at 0 %",
        "a name that is known stays",
        "a CPU that is full stays one",
    ],
)
def test_the_usual_value_decides_which_direction_is_good(
    known: Signal, values: list[float], role: Role, worse: Worse
) -> None:
    found = with_shape(known, [each_minute(values)])

    assert (found.role, found.worse) == (role, worse)


@given(st.lists(st.integers(0, 10**6), min_size=2, max_size=50))
def test_growth_counts_across_counter_resets(steps: list[int]) -> None:
    total, points = 0.0, []
    for number, step in enumerate(steps):
        total = float(step) if number % 7 == 6 else total + step
        points.append((60.0 * number, total))
    grown = growth_of(points)

    assert len(grown) == len(points) - 1
    assert all(value >= 0 for _, value in grown)


@given(
    st.lists(st.floats(0, 1e15) | st.sampled_from([0.0, 1.0, 100.0]), max_size=60),
    st.sampled_from(["gauge", "rate"]),
)
def test_any_values_keep_the_signals_name(values: list[float], reading: str) -> None:
    known = Signal("app_x1", "other", "gauge" if reading == "gauge" else "rate", "app_x1")
    found = with_shape(known, [each_minute(values)])

    assert found.name == known.name
    assert found.role in ("other", "errors")


@pytest.mark.parametrize(
    ("usual", "unit"),
    [(0.3, None), (3.0, None), (95.0, "milliseconds"), (9e4, "microseconds"), (9e7, "nanoseconds")],
)
def test_a_duration_that_is_too_large_for_seconds_is_in_smaller_units(
    usual: float, unit: str | None
) -> None:
    assert unit_of_duration([each_minute([usual] * 30)]) == unit


@pytest.mark.parametrize(
    ("known", "unit"),
    [
        (signal("cpu", MAIN, "up"), "percent"),
        (signal(), "percent"),
        (signal("latency", USUAL, "up"), None),
    ],
    ids=["a CPU", "an unknown name", "a duration has another measure"],
)
def test_a_usage_without_a_unit_is_a_share_where_it_stays_full(
    known: Signal, unit: str | None
) -> None:
    found = with_shape(known, [each_minute([4.5, 6.1, 5.2, 7.0] * 9 + [100.0] * 4)])

    assert (found.role, found.unit) == (known.role, unit)


def counted(chooser: random.Random, mean: float) -> float:
    """Arrivals within a minute, each independent of the others."""
    return float(sum(chooser.random() < mean / 1000 for _ in range(1000)))


LEVELS: dict[str, Callable[[random.Random, float], float]] = {
    "parts of one": lambda chooser, mean: mean * chooser.uniform(0.8, 1.2) + 0.25,
    "a level that hardly varies": lambda chooser, mean: mean + chooser.choice((0, 0, 0, 1)),
    "bytes": lambda chooser, mean: float(round(1e6 * mean * chooser.uniform(0.8, 1.2))),
    "tenths": lambda chooser, mean: round(mean * chooser.uniform(0.97, 1.03), 1),
    "nought": lambda chooser, mean: 0.0 * mean * chooser.random(),
    "below nought": lambda chooser, mean: -counted(chooser, mean),
}


@pytest.mark.parametrize("seed", range(5))
def test_requests_of_several_products_vary_as_counted_events_do(seed: int) -> None:
    chooser = random.Random(seed)
    products = [[counted(chooser, mean) for _ in range(60)] for mean in (20, 90, 300)]

    series = [each_minute(values) for values in products]
    rates = [each_minute([round(value / 60, 6) for value in values]) for values in products]

    assert usual_number(series) == pytest.approx(90, rel=0.1)
    assert usual_number(rates) == usual_number(series)


@pytest.mark.parametrize("level", LEVELS.values(), ids=LEVELS)
def test_other_values_are_not_counted_events(
    level: Callable[[random.Random, float], float],
) -> None:
    chooser = random.Random(1)
    products = [[level(chooser, mean) for _ in range(60)] for mean in (20.0, 90.0, 300.0)]

    assert usual_number([each_minute(values) for values in products]) is None


def test_two_products_are_too_few_to_take_a_metric_for_requests() -> None:
    chooser = random.Random(1)
    products = [[counted(chooser, mean) for _ in range(60)] for mean in (20, 90)]

    assert usual_number([each_minute(values) for values in products]) is None
