"""The system text: static first, what changes last, and honest about what is not there."""

from datetime import UTC, datetime

import pytest

from bot.chat.prompts import PromptFacts, situation, system_prompt


def facts(**changes: object) -> PromptFacts:
    fields: dict[str, object] = {
        "channel": "incident-checkout",
        "products": ("checkout", "cart"),
        "actions": ("restart: Restart it (*)",),
    }
    return PromptFacts(**{**fields, **changes})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "fact", ["#incident-checkout", "checkout, cart", "restart: Restart it (*)"]
)
def test_what_is_always_needed_is_told(fact: str) -> None:
    assert fact in system_prompt(facts())


def test_what_belongs_to_the_moment_is_told_with_the_question() -> None:
    now = datetime(2026, 4, 7, 14, 35, tzinfo=UTC)
    told = situation(now, ["p1 was rejected by U2: not now"])

    assert told == "Now\n- Time: 2026-04-07T14:35:00Z.\n- p1 was rejected by U2: not now"


def test_what_is_not_configured_is_said() -> None:
    text = system_prompt(facts(channel="", products=(), actions=()))

    assert "Channel: not known." in text
    assert "not configured" in text
    assert "No actions are declared" in text


@pytest.mark.parametrize(
    ("name", "shown"),
    [("@direct", "a direct message"), ("@group", "a group message"), ("ops", "#ops")],
)
def test_what_has_no_name_is_told_in_words(name: str, shown: str) -> None:
    assert f"Channel: {shown}." in system_prompt(facts(channel=name))
