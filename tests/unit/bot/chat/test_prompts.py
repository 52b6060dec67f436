"""The system text: static first, what changes last, and honest about what is not there."""

from datetime import UTC, datetime

import pytest

from bot.chat.prompts import PromptFacts, system_prompt


def facts(minute: int = 35, **changes: object) -> PromptFacts:
    fields: dict[str, object] = {
        "now": datetime(2026, 4, 7, 14, minute, tzinfo=UTC),
        "channel": "incident-checkout",
        "products": ("checkout", "cart"),
        "actions": ("restart: Restart it (*)",),
        "notes": ("p1 was rejected by U2: not now",),
    }
    return PromptFacts(**{**fields, **changes})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "fact",
    [
        "2026-04-07T14:35:00Z",
        "#incident-checkout",
        "checkout, cart",
        "restart: Restart it (*)",
        "p1 was rejected by U2: not now",
    ],
)
def test_what_is_always_needed_is_told(fact: str) -> None:
    assert fact in system_prompt(facts())


def test_two_turns_differ_only_behind_the_part_that_can_be_cached() -> None:
    first, second = system_prompt(facts(35)), system_prompt(facts(36))
    same = next(i for i, (a, b) in enumerate(zip(first, second, strict=True)) if a != b)

    assert first[:same].endswith("Now\n- Time: 2026-04-07T14:3")


def test_what_is_not_configured_is_said() -> None:
    text = system_prompt(facts(channel="", products=(), actions=(), notes=()))

    assert "Channel: not known." in text
    assert "not configured" in text
    assert "No actions are declared" in text


@pytest.mark.parametrize(
    ("name", "shown"),
    [("@direct", "a direct message"), ("@group", "a group message"), ("ops", "#ops")],
)
def test_what_has_no_name_is_told_in_words(name: str, shown: str) -> None:
    assert f"Channel: {shown}." in system_prompt(facts(channel=name))
