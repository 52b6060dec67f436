"""A series in few points: none made up, the peak and the onset among them."""

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from tools.analysis.course import course

BEGIN = datetime(2026, 11, 21, tzinfo=UTC)


def moments(*seconds: float) -> list[datetime]:
    return [BEGIN + timedelta(seconds=each) for each in seconds]


def test_ten_thousand_points_keep_their_peak_and_the_onset() -> None:
    points = [(at, 1.0 + n % 7) for n, at in enumerate(moments(*range(10_000)))]
    points[4_321] = points[4_321][0], 900.0
    onset = points[4_310][0]

    found = course(points, 20, [onset])

    assert len(found) == 20
    assert onset in dict(found)
    assert course(points, 20)[8] == points[4_321]


def test_a_short_series_is_unchanged() -> None:
    points = list(zip(moments(0, 60, 120), [1.0, 2.0, 3.0], strict=True))

    assert course(points, 3) == points
    assert course([], 3) == []


@given(
    st.lists(
        st.tuples(
            st.integers(0, 10**6), st.floats(allow_nan=False, allow_infinity=False, width=32)
        ),
        max_size=200,
    ),
    st.integers(1, 20),
)
def test_no_point_is_invented_and_times_increase(raw: list[tuple[int, float]], most: int) -> None:
    points = [(BEGIN + timedelta(seconds=at), value) for at, value in raw]

    found = course(points, most)

    assert len(found) <= most
    assert set(found) <= set(points)
    assert [at for at, _ in found] == sorted({at for at, _ in found})
