"""Trigger ids live three seconds and once."""

import pytest

from bot.demo.workspace.errors import SlackRefused
from bot.demo.workspace.modals import Triggers


class Clock:
    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def test_a_trigger_opens_one_modal() -> None:
    triggers = Triggers(Clock())
    trigger = triggers.issue("U1")

    assert triggers.spend(trigger) == "U1"
    with pytest.raises(SlackRefused, match="exchanged_trigger_id"):
        triggers.spend(trigger)


def test_a_trigger_expires_after_three_seconds() -> None:
    clock = Clock()
    triggers = Triggers(clock)
    trigger = triggers.issue("U1")
    clock.now_s = 3.1

    with pytest.raises(SlackRefused, match="expired_trigger_id"):
        triggers.spend(trigger)


def test_an_invented_trigger_is_invalid() -> None:
    with pytest.raises(SlackRefused, match="invalid_trigger_id"):
        Triggers().spend("1.2.3")
