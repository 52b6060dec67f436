"""Slack's rates over a sliding minute, with a clock that the test moves."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.demo.workspace.errors import RateLimited
from tests.slack_request_gate import RateLimits, SlackRequestGate


class Clock:
    def __init__(self) -> None:
        self.now_s = 1000.0

    def __call__(self) -> float:
        return self.now_s


def spend(limiter: SlackRequestGate, method: str, times: int, tier: int | None = 3) -> None:
    for _ in range(times):
        limiter.take(method, tier, "C1")


def test_edits_are_fifty_a_minute_over_the_whole_workspace() -> None:
    clock = Clock()
    limiter = SlackRequestGate(RateLimits(), clock)
    spend(limiter, "chat.update", 50)
    clock.now_s += 45

    with pytest.raises(RateLimited) as limited:
        limiter.take("chat.update", 3, "C2")

    assert limited.value.retry_after_s == 15


def test_waiting_for_retry_after_is_enough() -> None:
    clock = Clock()
    limiter = SlackRequestGate(RateLimits(), clock)
    spend(limiter, "chat.update", 50)
    clock.now_s += 60

    limiter.take("chat.update", 3, "C1")

    assert limiter.counters.requests["chat.update"] == 51
    assert limiter.counters.limited["chat.update"] == 0


def test_posts_are_one_a_second_per_channel_after_a_burst() -> None:
    clock = Clock()
    limiter = SlackRequestGate(RateLimits(post_burst=3), clock)
    spend(limiter, "chat.postMessage", 3, tier=None)
    limiter.take("chat.postMessage", None, "C2")

    with pytest.raises(RateLimited) as limited:
        limiter.take("chat.postMessage", None, "C1")
    clock.now_s += 1
    limiter.take("chat.postMessage", None, "C1")

    assert limited.value.retry_after_s == 1
    assert limiter.counters.limited["chat.postMessage"] == 1


def test_methods_do_not_share_an_allowance() -> None:
    limiter = SlackRequestGate(RateLimits(), Clock())
    spend(limiter, "chat.update", 50)
    spend(limiter, "conversations.replies", 50)


def test_an_unlimited_method_is_still_counted() -> None:
    limiter = SlackRequestGate(None, Clock())
    spend(limiter, "chat.update", 500)
    assert limiter.counters.requests["chat.update"] == 500


@given(st.lists(st.floats(min_value=0, max_value=10), max_size=200))
def test_no_minute_ever_exceeds_the_limit(gaps: list[float]) -> None:
    clock = Clock()
    limiter = SlackRequestGate(RateLimits(per_minute={"chat.update": 10}), clock)
    taken: list[float] = []
    for gap in gaps:
        clock.now_s += gap
        try:
            limiter.take("chat.update", 3, "C1")
        except RateLimited:
            continue
        taken.append(clock.now_s)

    assert all(later - taken[n] >= 60 for n, later in enumerate(taken[10:]))
