"""From when on a young series can be compared: what is promised holds."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tools.analysis.comparable import comparable_from, filled_from
from tools.analysis.shift import shift
from tools.signals import Reading, Signal


@given(
    st.integers(1_700_000_000, 1_700_010_000),
    st.sampled_from([60.0, 120.0, 300.0]),
    st.integers(1, 40),
)
def test_a_range_after_that_time_is_compared_and_an_earlier_one_is_not(
    first: int, step_s: float, samples: int
) -> None:
    grown = [(first + n * step_s, 1.0) for n in range(60)]

    begin = comparable_from(grown[:samples], step_s)
    end = grown[-1][0]

    # As triage asks, a minute early, and as a sweep compares, half a second.
    assert shift(grown, begin - 60.5, end + 1, "cpu", None, step_s) is not None
    assert shift(grown, begin - 3 * step_s, end + 1, "cpu", None, step_s) is None


def rate(spacing_s: float | None = 15.0, reading: Reading = "rate") -> Signal:
    return Signal("requests", "traffic", reading, "requests_total", spacing_s=spacing_s)


@pytest.mark.parametrize(
    ("signal", "left_out"),
    [(rate(), 1), (rate(60.0), 3), (rate(None), 3), (rate(reading="gauge"), 0)],
    ids=["every 15 s", "every minute", "not known", "as it is"],
)
def test_the_first_rates_come_from_a_partly_filled_window(signal: Signal, left_out: int) -> None:
    points = [(600.0 + 60 * n, 1.0) for n in range(10)]

    assert filled_from(points, signal, 0.0, 60.0) == points[left_out][0]


@pytest.mark.parametrize("read_from", [600.0, 550.0])
def test_a_series_that_may_start_before_the_read_range_is_used_whole(read_from: float) -> None:
    points = [(600.0 + 60 * n, 1.0) for n in range(10)]

    assert filled_from(points, rate(), read_from, 60.0) == 600.0
