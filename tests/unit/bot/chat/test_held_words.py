"""What a model says is shown once it rests on something, and never taken back for want of it."""

import pytest

from bot.chat.evidence_need import HeldWords
from bot.domain.turn_events import Notice, RoundStarted, TextDelta, TurnEvent

BEGINS = RoundStarted(1, "openai", "m")


def shown(*events: TurnEvent, may_cite: bool = True) -> list[TurnEvent]:
    """What people see of these before the round has ended."""
    told: list[TurnEvent] = []
    held = HeldWords(told.append, may_cite=may_cite)
    for event in events:
        held(event)
    return told


def test_words_without_evidence_wait_for_the_end() -> None:
    events: list[TurnEvent] = [
        BEGINS,
        TextDelta("It is "),
        Notice("slow"),
        TextDelta("[E1] the database."),
    ]
    assert shown(*events, may_cite=False) == [BEGINS, Notice("slow")]


@pytest.mark.parametrize("pieces", [("p99 rose [E1]", " since"), ("p99 rose ", "[", "E", "1", "]")])
def test_words_with_evidence_are_shown_from_the_first_citation(pieces: tuple[str, ...]) -> None:
    told = shown(BEGINS, *map(TextDelta, pieces), TextDelta(" 01:11."))
    said = "".join(event.text for event in told if isinstance(event, TextDelta))
    assert said == "".join(pieces) + " 01:11."


def test_triage_is_not_held_back() -> None:
    events: list[TurnEvent] = [
        RoundStarted(2, "triage", ""),
        TextDelta("Most "),
        TextDelta("likely"),
    ]
    assert shown(*events) == events


def test_held_words_are_reported_once_or_dropped() -> None:
    told: list[TurnEvent] = []
    held = HeldWords(told.append, may_cite=False)
    held(TextDelta("a"))
    held(TextDelta("b"))
    held.release()
    held.release()
    held(TextDelta("c"))
    other = HeldWords(told.append, may_cite=False)
    other(TextDelta("never"))
    other.drop()
    other.release()

    assert told == [TextDelta("ab"), TextDelta("c")]
