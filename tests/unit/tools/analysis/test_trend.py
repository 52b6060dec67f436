"""Series that grow for hours."""

from collections.abc import Callable

import pytest

from tools.analysis.trend import trend
from tools.signals import Role, Worse

END = 40 * 3600.0
NOISE = (0.0, 0.4, -0.3, 0.1, -0.2)


def series(value: Callable[[float], float], hours: float = 40.0) -> list[tuple[float, float]]:
    """A sample each ten minutes; `value` takes the hours until the end."""
    number = int(hours * 6)
    return [(END - 600.0 * n, value(n / 6)) for n in range(number, -1, -1)]


def grown(ago: float) -> float:
    return max(0.0, 6 - ago) / 6


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e9])
def test_a_leak_and_a_growing_queue_are_found_in_any_unit(scale: float) -> None:
    leak = trend(
        series(lambda ago: scale * (100 + 120 * grown(ago) + NOISE[int(ago * 6) % 5])),
        END, "other", None, "either", None,
    )  # fmt: skip
    queue = trend(
        series(lambda ago: scale * (10 + 90_000 * grown(ago))), END, "other", None, "up", None
    )

    assert leak is None  # twice as much of an unknown series may be load
    assert queue is not None
    assert queue.now > 30 * queue.first


def test_a_leak_of_memory_is_reported_with_the_time_until_it_is_full() -> None:
    found = trend(
        series(lambda ago: 40 + 48 * grown(ago) + NOISE[int(ago * 6) % 5]),
        END, "memory", "percent", "up", None,
    )  # fmt: skip

    assert found is not None
    assert found.full_in_s == pytest.approx(1.5 * 3600, rel=0.2)


@pytest.mark.parametrize(
    ("value", "role", "unit", "worse"),
    [
        (lambda ago: min(1.0, 0.4 + 0.62 * grown(ago)) - 0.1 * (ago == 0), "saturation", "ratio", "up"),
        (lambda ago: 100.0 if ago == 0.5 else 40 + 48 * grown(ago), "memory", "percent", "up"),
        (lambda ago: 0.0 if ago == 0.5 else 6e9 - 4e9 * grown(ago), "disk", "bytes", "down"),
    ],
)  # fmt: skip
def test_what_was_full_already_has_no_time_until_it_is_full(
    value: Callable[[float], float], role: Role, unit: str, worse: Worse
) -> None:
    found = trend(series(value), END, role, unit, worse, None)

    assert found is not None
    assert found.full_in_s is None


def test_free_space_that_shrinks_is_reported_with_the_time_until_it_is_gone() -> None:
    found = trend(series(lambda ago: 6e9 - 4e9 * grown(ago)), END, "disk", "bytes", "down", None)

    assert found is not None
    assert found.full_in_s == pytest.approx(3 * 3600, rel=0.2)


@pytest.mark.parametrize(
    ("value", "role"),
    [
        (lambda ago: 10 + 50 * grown(ago % 24), "queue"),
        (lambda ago: 10 + 50 * (1 - grown(ago)), "queue"),
        (lambda ago: 10 + 50 * (ago < 1), "queue"),
        (lambda ago: 10 + 2 * NOISE[int(ago * 6) % 5], "memory"),
        (lambda _: 10.0, "memory"),
    ],
    ids=["the same growth yesterday", "it shrinks", "one step", "noise", "constant"],
)
def test_no_growth_is_invented(value: Callable[[float], float], role: Role) -> None:
    assert trend(series(value), END, role, None, "up", None) is None


@pytest.mark.parametrize("hours", [0.0, 0.5, 2.0])
def test_short_data_show_no_trend(hours: float) -> None:
    points = series(lambda ago: 10 - ago, hours)[1:]

    assert trend(points, END, "queue", None, "up", None) is None
