"""Message ids are unique and increase, for any clock."""

from hypothesis import given
from hypothesis import strategies as st

from bot.demo.workspace.identity import Timestamps


@given(st.lists(st.floats(min_value=1.6e9, max_value=1.9e9), min_size=1))
def test_ids_increase_even_when_the_clock_goes_back(readings: list[float]) -> None:
    clock = iter(readings)
    timestamps = Timestamps(lambda: next(clock))
    made = [timestamps.next() for _ in readings]

    assert made == sorted(set(made))
