"""The two buttons below an answer: counted at once, asked why, and safe against any payload."""

from collections.abc import AsyncIterator

import pytest

from bot.domain.feedback import Vote
from bot.domain.session import TurnState
from bot.ports.failures import StorageUnavailable, SurfaceFailed
from bot.slack.listeners import replies
from tests.slack_ingress import NOW, Ingress, Payload, pressed

TURN = "turn:T1:C1:100.1"
ACTION = "answer:feedback"


@pytest.fixture
async def ingress() -> AsyncIterator[Ingress]:
    ingress = Ingress()
    ask = await ingress.session_at("100.1")
    await ingress.sessions.finish_turn(ask.turn_id, TurnState.ANSWERED, [], [], NOW)
    yield ingress
    await ingress.background.drain(1.0)


def votes(ingress: Ingress) -> list[tuple[str, Vote, str]]:
    return [(row.by, row.vote, row.reason) for row in ingress.feedback.rows.values()]


def explained(ingress: Ingress, reason: str, **fields: Payload) -> Payload:
    """The form that a press opened, sent."""
    view = next(a["view"] for m, a in ingress.api.calls if m == "views.open")
    assert isinstance(view, dict)
    state: Payload = {"values": {"reason": {"text": {"type": "plain_text_input", "value": reason}}}}
    return {
        "type": "view_submission",
        "api_app_id": "A1",
        "team": {"id": "T1"},
        "user": {"id": "U1", "team_id": "T1"},
        "view": {**view, "id": "V1", "state": state},
        **fields,
    }


async def test_a_thumb_up_is_counted_and_thanked_once(ingress: Ingress) -> None:
    for _ in range(3):
        await ingress.send(pressed(ACTION, f"up|{TURN}"))

    assert votes(ingress) == [("U1", Vote.UP, "")]
    assert ingress.whispers.texts == [replies.THANKS]
    assert ingress.forms == []


async def test_a_thumb_down_counts_before_the_form_is_sent_and_the_reason_is_redacted(
    ingress: Ingress,
) -> None:
    await ingress.send(pressed(ACTION, f"down|{TURN}"))
    assert votes(ingress) == [("U1", Vote.DOWN, "")]

    await ingress.send(explained(ingress, "  wrong service, SECRET-hunter2 " + "x" * 600))
    ((_, _, reason),) = votes(ingress)
    assert reason.startswith("wrong service, [redacted] x")
    assert len(reason) <= 500


async def test_the_other_button_changes_the_vote_and_an_open_form_says_so(
    ingress: Ingress,
) -> None:
    await ingress.send(pressed(ACTION, f"down|{TURN}"))
    await ingress.send(pressed(ACTION, f"up|{TURN}"))
    response = await ingress.send(explained(ingress, "wrong"))

    assert votes(ingress) == [("U1", Vote.UP, "")]
    assert replies.VOTE_CHANGED in str(response.body)


@pytest.mark.parametrize(
    "value",
    ["", "up", f"sideways|{TURN}", "up|turn:T1:C9:100.1", "up|turn:T1:C1:9.9", f"up|{TURN}|x"],
)
async def test_a_button_of_another_place_or_of_no_answer_counts_nothing(
    ingress: Ingress, value: str
) -> None:
    await ingress.send(pressed(ACTION, value))
    assert votes(ingress) == []
    assert ingress.whispers.texts == [replies.ANSWER_GONE]


async def test_a_form_with_another_channels_answer_is_dropped(
    ingress: Ingress,
) -> None:
    await ingress.send(pressed(ACTION, f"down|{TURN}"))
    sent = explained(ingress, "wrong")
    sent["view"]["private_metadata"] = sent["view"]["private_metadata"].replace(  # type: ignore[index, call-overload, union-attr]
        TURN, "turn:T1:C9:100.1"
    )
    await ingress.send(sent)
    assert votes(ingress) == [("U1", Vote.DOWN, "")]


async def test_external_people_do_not_vote(ingress: Ingress) -> None:
    await ingress.send(pressed(ACTION, f"up|{TURN}", user={"id": "U8", "team_id": "T9"}))
    assert votes(ingress) == []
    assert ingress.whispers.texts == [replies.EXTERNAL]


async def test_a_form_that_does_not_open_is_reported_and_the_vote_counts(ingress: Ingress) -> None:
    ingress.api.answers["views.open"] = SurfaceFailed("no", retryable=False)
    await ingress.send(pressed(ACTION, f"down|{TURN}"))
    assert votes(ingress) == [("U1", Vote.DOWN, "")]
    assert ingress.whispers.texts == [replies.REASON_NOT_ASKED]


async def test_without_retention_no_reason_is_requested(ingress: Ingress) -> None:
    ingress.feedback.keeps_reasons = False
    await ingress.send(pressed(ACTION, f"down|{TURN}"))
    assert ingress.forms == []
    assert ingress.whispers.texts == [replies.THANKS]


class Away:
    """No database."""

    keeps_reasons = True

    async def vote(self, *_: object) -> bool:
        raise StorageUnavailable("full")

    async def explain(self, *_: object) -> bool:
        raise StorageUnavailable("full")


async def test_a_database_outage_is_reported_at_the_button_and_in_the_form(
    ingress: Ingress,
) -> None:
    await ingress.send(pressed(ACTION, f"down|{TURN}"))
    form = explained(ingress, "wrong")
    object.__setattr__(ingress.ports, "feedback", Away())

    await ingress.send(pressed(ACTION, f"up|{TURN}"))
    response = await ingress.send(form)

    assert ingress.whispers.texts == [replies.VOTE_NOT_STORED]
    assert replies.REASON_NOT_STORED in str(response.body)
