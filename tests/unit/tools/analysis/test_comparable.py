"""From when on a young series can be compared: what is promised holds."""

from hypothesis import given
from hypothesis import strategies as st

from tools.analysis.comparable import comparable_from
from tools.analysis.shift import shift


@given(
    st.integers(1_700_000_000, 1_700_010_000),
    st.sampled_from([60.0, 120.0, 300.0]),
    st.integers(1, 40),
)
def test_a_range_from_then_on_is_compared_and_one_well_before_is_not(
    first: int, step_s: float, samples: int
) -> None:
    grown = [(first + n * step_s, 1.0) for n in range(60)]

    begin = comparable_from(grown[:samples], step_s)
    end = grown[-1][0]

    # As triage asks, a minute early, and as a sweep compares, half a second.
    assert shift(grown, begin - 60.5, end + 1, "cpu", None, step_s) is not None
    assert shift(grown, begin - 3 * step_s, end + 1, "cpu", None, step_s) is None
