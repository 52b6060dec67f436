"""Trigger ids live three seconds and once; response URLs five times in half an hour."""

import pytest

from bot.demo.workspace.errors import SlackRefused
from bot.demo.workspace.interaction_handles import InteractionHandles


class Clock:
    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def test_a_trigger_opens_one_modal() -> None:
    handles = InteractionHandles(Clock())
    trigger = handles.trigger("U1")

    assert handles.spend_trigger(trigger) == "U1"
    with pytest.raises(SlackRefused, match="exchanged_trigger_id"):
        handles.spend_trigger(trigger)


def test_a_trigger_expires_after_three_seconds() -> None:
    clock = Clock()
    handles = InteractionHandles(clock)
    trigger = handles.trigger("U1")
    clock.now_s = 3.1

    with pytest.raises(SlackRefused, match="expired_trigger_id"):
        handles.spend_trigger(trigger)


def test_an_invented_trigger_is_invalid() -> None:
    with pytest.raises(SlackRefused, match="invalid_trigger_id"):
        InteractionHandles().spend_trigger("1.2.3")


def test_a_response_url_works_five_times() -> None:
    handles = InteractionHandles(Clock())
    key = handles.response_url("U1", "C1").rpartition("/")[2]

    assert [handles.use_response_url(key) is None for _ in range(6)] == [False] * 5 + [True]


def test_a_response_url_works_for_half_an_hour() -> None:
    clock = Clock()
    handles = InteractionHandles(clock)
    key = handles.response_url("U1", "C1").rpartition("/")[2]
    clock.now_s = 1801

    assert handles.use_response_url(key) is None
