"""How often an answer is read: as it comes until people see it, then in even steps while it is fast."""

import math
from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.llm.pace import (
    BACKLOG_BYTES,
    BEGINNING_EVENTS,
    FIRST_CHARS,
    FIRST_EVENTS,
    MOMENTS,
    READ_EVERY_S,
    ReadPace,
)

ODD_START = 1_000.013


def reads(gap_s: float, seconds: float, *, chars: int = 20) -> Sequence[float]:
    """When a stream with an event every `gap_s` is read, by the pace alone."""
    now, seen, pace, at = ODD_START, 0, ReadPace(ODD_START), []
    while now < ODD_START + seconds:
        now = max(now + pace.wait_s(now), ODD_START + (seen + 1) * gap_s)
        events = math.floor((now - ODD_START) / gap_s + 1e-9) - seen
        seen += events
        pace.read(now, 100 * events, events, chars * events)
        at.append(now)
    return at


def test_an_answer_that_flows_is_read_ten_times_a_second() -> None:
    assert len(reads(0.005, 10.0)) <= 10 * 10 + 3
    assert len(reads(0.01, 10.0)) <= 10 * 10 + 3


def test_an_answer_that_is_no_faster_is_read_as_it_comes() -> None:
    at = reads(0.095, 10.0)

    assert at == pytest.approx([ODD_START + (n + 1) * 0.095 for n in range(len(at))])


def test_the_first_word_is_read_as_it_comes() -> None:
    assert reads(0.01, 1.0)[0] == pytest.approx(ODD_START + 0.01)


def test_the_first_words_are_read_twice_as_often_as_what_goes_on() -> None:
    at = reads(0.01, 1.0, chars=1)
    gaps = [b - a for a, b in pairwise(at)]

    assert max(gaps[: FIRST_CHARS // 10]) < READ_EVERY_S / 2 + 0.01
    assert min(gaps[-5:]) > READ_EVERY_S / 2 + 0.01


def test_the_head_of_an_answer_is_read_as_it_comes() -> None:
    at = reads(0.01, FIRST_EVENTS * 0.01, chars=0)

    assert at == pytest.approx([ODD_START + (n + 1) * 0.01 for n in range(FIRST_EVENTS)])


def test_a_short_call_of_a_tool_waits_for_half_an_interval_at_most() -> None:
    at = reads(0.01, BEGINNING_EVENTS * 0.01, chars=0)

    assert max(b - a for a, b in pairwise(at)) < READ_EVERY_S / 2 + 0.01


def test_long_arguments_and_thoughts_are_read_in_steps() -> None:
    assert len(reads(0.01, 10.0, chars=0)) <= 10 * 10 + FIRST_EVENTS + 4


def test_a_backlog_is_read_on_at_once() -> None:
    pace = ReadPace(ODD_START)
    pace.read(ODD_START + 0.01, BACKLOG_BYTES, 60, 10 * FIRST_CHARS)

    assert pace.wait_s(ODD_START + 0.01) == 0


@given(
    begins=st.floats(0, 1e6),
    steps=st.lists(st.tuples(st.floats(0, 1), st.integers(0, 99_999), st.integers(0, 999))),
)
def test_no_wait_is_longer_than_an_interval(
    begins: float, steps: Sequence[tuple[float, int, int]]
) -> None:
    pace, now = ReadPace(begins), begins
    for gap_s, size, events in steps:
        now += gap_s
        pace.read(now, size, events, events)
        assert 0 <= pace.wait_s(now) <= READ_EVERY_S + 1e-6


def test_answers_that_flow_are_read_at_few_moments_and_not_all_at_one() -> None:
    def read_at(begins: float) -> float:
        pace = ReadPace(begins)
        pace.read(begins + 0.001, 100, 9, FIRST_CHARS)
        return begins + 0.001 + pace.wait_s(begins + 0.001)

    moments = {round(read_at(5.0 + n / 1000) % READ_EVERY_S, 6) % READ_EVERY_S for n in range(500)}

    assert len(moments) == MOMENTS
