"""A turn as messages: golden blocks, Slack's limits, and the fold of events."""

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.demo.workspace.block_rules import check_blocks
from bot.domain.turn_events import (
    Evidence,
    RoundReplaced,
    RoundStarted,
    TextDelta,
    TurnEnd,
    TurnEvent,
)
from bot.slack.text.blocks import Part
from bot.slack.text.limits import MARKDOWN_CHARS, MAX_BLOCKS, MESSAGE_CHARS, UPDATE_TEXT_BYTES
from bot.slack.views.render import CURSOR, STOP_ACTION, render
from tests.golden.slack_views import LONG, TURN, as_json, finished, golden, outcome, started, view

BLOCKS = Path(__file__).parents[4] / "golden" / "blocks"
VIEWS = golden()


def all_text(part: Part) -> list[str]:
    """Every text of a message's blocks."""
    found: list[str] = []

    def walk(value: object, key: str = "") -> None:
        match value:
            case dict():
                for name, each in value.items():
                    walk(each, name)
            case list() | tuple():
                for each in value:
                    walk(each, key)
            case str() if key == "text":
                found.append(value)

    walk(part.blocks)
    return found


@pytest.mark.parametrize("name", sorted(VIEWS))
def test_a_message_equals_its_golden_file(name: str) -> None:
    assert as_json(VIEWS[name]) == (BLOCKS / f"{name}.json").read_text(encoding="utf-8")


def test_every_golden_file_is_rendered() -> None:
    assert {path.stem for path in BLOCKS.glob("*.json")} == set(VIEWS)


MESSAGES = [(name, index) for name in sorted(VIEWS) for index in range(len(VIEWS[name]))]


@pytest.mark.parametrize(("name", "index"), MESSAGES)
def test_a_message_is_within_slack_s_limits(name: str, index: int) -> None:
    part = VIEWS[name][index]
    markdown = [str(block["text"]) for block in part.blocks if block["type"] == "markdown"]

    assert part.text
    assert len(part.text.encode()) <= UPDATE_TEXT_BYTES
    assert len(part.blocks) <= MAX_BLOCKS
    assert sum(map(len, markdown)) <= MARKDOWN_CHARS
    assert sum(map(len, all_text(part))) <= MESSAGE_CHARS


@pytest.mark.parametrize("count", [9, 74, 100, 101, 400])
def test_many_results_and_a_full_text_still_fit_one_message(count: int) -> None:
    outcomes = tuple(outcome(str(n), summary="<&>" * 200) for n in range(count))
    evidence = tuple(Evidence.of(n, made) for n, made in enumerate(outcomes, 1))
    remarks = ("<&>" * 500,) * 50
    final = finished(text="y" * 3_700, outcomes=outcomes, evidence=evidence, notices=remarks)

    (part,) = render(view([final]))

    assert sum(map(len, all_text(part))) <= MESSAGE_CHARS
    assert len(part.blocks) <= MAX_BLOCKS
    check_blocks(part.blocks, "message")


@pytest.mark.parametrize("events", [[], [TextDelta("so far")], [TextDelta(LONG)], [started("a")]])
def test_only_the_last_live_message_has_stop_with_the_turn_s_id(events: list[TurnEvent]) -> None:
    *earlier, last = render(view(events))

    assert STOP_ACTION not in str(earlier)
    assert last.blocks[-1]["elements"] == [
        {
            "type": "button",
            "text": {"type": "plain_text", "text": "Stop"},
            "action_id": STOP_ACTION,
            "value": TURN,
        }
    ]


def test_a_finished_answer_has_neither_stop_nor_cursor() -> None:
    parts = render(view([TextDelta("so far"), finished()]))

    assert STOP_ACTION not in str(parts)
    assert CURSOR not in str(parts)


def test_a_replaced_round_removes_only_its_own_text() -> None:
    events: list[TurnEvent] = [
        RoundStarted(1, "a", "m"),
        TextDelta("Kept."),
        RoundStarted(2, "a", "m"),
        TextDelta("void"),
        RoundReplaced(2),
        RoundStarted(2, "b", "m"),
        TextDelta("New."),
    ]

    assert view(events).text == "Kept.\n\nNew."


def test_streamed_text_is_kept_when_the_end_has_no_text() -> None:
    (part,) = render(view([TextDelta("found so far"), finished(text="")]))

    assert part.blocks[0]["text"] == "found so far"


@pytest.mark.parametrize(
    ("end", "failure"),
    [
        (TurnEnd.FAILED, "🔴 This answer could not be finished."),
        (TurnEnd.BUDGET, "⚠ A limit on model use is reached."),
        (TurnEnd.DEPTH_EXCEEDED, "⚠ No conclusion within"),
    ],
)
@pytest.mark.parametrize("text", ["The pool is full. And more.", f"The pool is full.\n\n{LONG}"])
def test_a_notification_says_first_that_the_answer_is_unfinished(
    text: str, end: TurnEnd, failure: str
) -> None:
    *_, last = render(view([TextDelta(text), finished(text=text, end=end)]))

    assert last.text.startswith(failure)
    assert len(last.text.encode()) <= UPDATE_TEXT_BYTES


@given(st.lists(st.text(max_size=40), max_size=30))
def test_full_messages_do_not_change_as_the_text_grows(pieces: list[str]) -> None:
    grown = view([TextDelta(LONG)])
    before = render(grown)
    for piece in pieces:
        grown.apply(TextDelta(piece))

    assert render(grown)[: len(before) - 1] == before[:-1]


def test_only_the_first_message_separates_its_first_sentence() -> None:
    first, *others = render(view([finished(text=f"**It is the pool [E1].** And more.\n\n{LONG}")]))

    assert first.text.startswith("It is the pool.\nAnd more.")
    assert "**It is the pool [E1].**" in str(first.blocks[0]["text"])
    assert [each.text for each in others[:-1]] == [b.blocks[0]["text"] for b in others[:-1]]


def test_model_text_cannot_notify_anyone_in_any_place() -> None:
    hostile = "<!channel> @here <@U1> `x` <https://evil.example|Grafana>"
    made = outcome("a", summary=hostile, name=f"core__{hostile}")
    final = finished(
        text=hostile,
        outcomes=(made,),
        evidence=(Evidence.of(1, made),),
        notices=(hostile,),
        model=hostile,
    )

    sent = as_json(render(view([final])))

    assert "<" not in sent
    assert "@here" not in sent


@pytest.mark.parametrize(("show_cost", "shown"), [(True, True), (False, False)])
def test_the_footer_shows_the_cost_unless_it_is_disabled(show_cost: bool, shown: bool) -> None:
    final = replace(finished(), provider="p", model="m", cost_usd_micros=12_300)

    shown_parts = render(replace(view([final]), show_cost=show_cost))

    assert ("$0.0123" in str(shown_parts)) == shown
