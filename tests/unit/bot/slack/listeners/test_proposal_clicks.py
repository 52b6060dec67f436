"""Confirm and Reject: who may, on which card, and what a refused click leaves behind."""

import json

import pytest

from bot.actions.judge import FOUR_EYES
from bot.domain.audit import AuditKind
from bot.domain.ids import ChannelId, MessageTs, Place, TeamId, UserId
from bot.domain.proposal import ProposalState
from bot.ports.failures import StorageUnavailable, SurfaceFailed
from bot.slack.listeners import replies
from bot.slack.listeners.ports import IngressSettings
from tests.fakes.role_table import NOT_YOU
from tests.slack_ingress import IDENTITY, NOW, Ingress, Payload, pressed, proposal, submitted

CONFIRM, REJECT = "proposal:confirm", "proposal:reject"


@pytest.fixture
def ingress() -> Ingress:
    ingress = Ingress()
    ingress.proposals.rows[proposal().id] = proposal()
    return ingress


def opened_metadata(ingress: Ingress) -> str:
    ((_, arguments),) = [call for call in ingress.api.calls if call[0] == "views.open"]
    view = arguments["view"]
    assert isinstance(view, dict)
    return str(view["private_metadata"])


async def test_a_confirm_by_a_holder_of_the_role_starts_the_decision(ingress: Ingress) -> None:
    response = await ingress.send(pressed(CONFIRM, "p-1"))
    ((proposal_id, decision),) = ingress.workflows.decisions
    assert response.status == 200
    assert (proposal_id, decision.to, decision.by) == ("p-1", ProposalState.CONFIRMED, "U1")
    assert decision.key == "p-1:confirmed:U1:300.3"
    assert ingress.private_texts == []


async def test_the_proposals_own_roles_are_checked(ingress: Ingress) -> None:
    await ingress.send(pressed(CONFIRM, "p-1"))
    assert [roles for _, roles in ingress.roles.asked] == [("responder",)]


async def test_a_redelivered_click_has_one_key(ingress: Ingress) -> None:
    await ingress.send(pressed(CONFIRM, "p-1"))
    await ingress.send(pressed(CONFIRM, "p-1"), retry=1)
    assert len({decision.key for _, decision in ingress.workflows.decisions}) == 1


async def test_a_guest_does_not_open_the_raw_json_of_a_card(ingress: Ingress) -> None:
    ingress.roles.outsiders["U1"] = "Guests can't open this."
    await ingress.send(pressed("proposal:raw", "p-1"))
    ((method, arguments),) = ingress.api.calls
    assert method == "views.open"
    assert "Guests can't open this." in str(arguments["view"])
    assert "Arguments" not in str(arguments["view"])


async def test_a_member_opens_the_raw_json_of_a_card(ingress: Ingress) -> None:
    await ingress.send(pressed("proposal:raw", "p-1"))
    ((_, arguments),) = ingress.api.calls
    assert "Arguments" in str(arguments["view"])


@pytest.mark.parametrize("action", [CONFIRM, REJECT])
async def test_a_click_without_the_role_is_refused_privately_and_audited(
    ingress: Ingress, action: str
) -> None:
    click = pressed(action, "p-1", user={"id": "U9", "team_id": "T1"})
    response = await ingress.send(click)
    (text,) = ingress.private_texts
    (refused,) = ingress.memory.audit_log
    assert response.status == 200
    assert text == NOT_YOU
    assert (refused.kind, refused.actor, refused.body["why"]) == (
        AuditKind.CLICK_REFUSED,
        "U9",
        "role",
    )
    assert ingress.workflows.decisions == []
    assert ingress.forms == []


async def test_a_role_lost_after_the_card_does_not_count(ingress: Ingress) -> None:
    ingress.roles.holders["responder"].clear()
    await ingress.send(pressed(CONFIRM, "p-1"))
    assert ingress.workflows.decisions == []


async def test_roles_added_to_the_action_after_the_card_are_required_too(ingress: Ingress) -> None:
    ingress.declared_roles = ("lead",)
    await ingress.send(pressed(CONFIRM, "p-1", user={"id": "U2", "team_id": "T1"}))
    refused = list(ingress.workflows.decisions)
    await ingress.send(pressed(CONFIRM, "p-1"))
    assert refused == []
    assert [decision.by for _, decision in ingress.workflows.decisions] == ["U1"]


async def test_roles_of_the_card_are_required_after_the_action_dropped_them(
    ingress: Ingress,
) -> None:
    ingress.proposals.rows[proposal().id] = proposal(action_roles=("lead",))
    await ingress.send(pressed(CONFIRM, "p-1", user={"id": "U2", "team_id": "T1"}))
    assert ingress.workflows.decisions == []


async def test_the_clickers_own_workspace_is_judged(ingress: Ingress) -> None:
    await ingress.send(pressed(CONFIRM, "p-1", user={"id": "U1", "team_id": "T9"}))
    assert [person.team for person, _ in ingress.roles.asked] == ["T9"]


async def test_four_eyes_refuses_the_asker_and_accepts_another(ingress: Ingress) -> None:
    ingress.proposals.rows[proposal().id] = proposal(four_eyes=True)
    await ingress.send(pressed(CONFIRM, "p-1"))
    refused = list(ingress.workflows.decisions)
    await ingress.send(pressed(CONFIRM, "p-1", user={"id": "U2", "team_id": "T1"}))
    assert refused == []
    assert [decision.by for _, decision in ingress.workflows.decisions] == ["U2"]
    assert ingress.private_texts == [FOUR_EYES]


async def test_four_eyes_lets_the_asker_reject(ingress: Ingress) -> None:
    ingress.proposals.rows[proposal().id] = proposal(four_eyes=True)
    await ingress.send(pressed(REJECT, "p-1"))
    assert len(ingress.forms) == 1


ELSEWHERE = Place(TeamId("T1"), ChannelId("C9"), MessageTs("100.1"))
OTHER_TEAM = Place(TeamId("T9"), ChannelId("C1"), MessageTs("100.1"))


@pytest.mark.parametrize(
    "changes",
    [
        {"place": ELSEWHERE},
        {"place": OTHER_TEAM},
        {"card_ts": MessageTs("200.9")},
        {"card_ts": None, "place": Place(TeamId("T1"), ChannelId("C1"), MessageTs("100.9"))},
    ],
)
async def test_a_button_on_another_card_gets_the_neutral_answer(
    ingress: Ingress, changes: dict[str, object]
) -> None:
    ingress.proposals.rows[proposal().id] = proposal(**changes)
    await ingress.send(pressed(CONFIRM, "p-1"))
    assert ingress.private_texts == [replies.STALE_CARD]
    assert ingress.workflows.decisions == []
    assert ingress.memory.kinds() == [AuditKind.CLICK_REFUSED]


async def test_a_press_before_the_cards_message_is_stored_counts(ingress: Ingress) -> None:
    ingress.proposals.rows[proposal().id] = proposal(card_ts=None)

    await ingress.send(pressed(CONFIRM, "p-1"))

    ((proposal_id, decision),) = ingress.workflows.decisions
    assert (proposal_id, decision.to) == ("p-1", ProposalState.CONFIRMED)
    assert ingress.pressed == [("p-1", "200.2")]
    assert ingress.private_texts == []


async def test_a_press_repaints_only_a_settled_card(
    ingress: Ingress,
) -> None:
    await ingress.send(pressed(CONFIRM, "p-1"))
    assert ingress.pressed == []

    ingress.proposals.rows[proposal().id] = proposal(state=ProposalState.REJECTED)
    await ingress.send(pressed(CONFIRM, "p-1"))
    assert ingress.pressed == [("p-1", "200.2")]


@pytest.mark.parametrize(
    "value", ["", "p-2", "' OR 1=1 --", "p-1 ", "x" * 2_000, "p-1\n", "\N{ARABIC-INDIC DIGIT ONE}"]
)
async def test_an_invented_id_gets_the_same_neutral_answer(ingress: Ingress, value: str) -> None:
    await ingress.send(pressed(CONFIRM, value))
    assert ingress.private_texts == [replies.STALE_CARD]
    assert ingress.workflows.decisions == []


@pytest.mark.parametrize(
    ("state", "said"),
    [
        (ProposalState.CONFIRMED, "Already confirmed by Ana at 14:35 UTC, about to run."),
        (ProposalState.SUCCEEDED, "Already confirmed by Ana at 14:35 UTC; succeeded."),
        (ProposalState.REJECTED, "Already rejected by Ana at 14:35 UTC, nothing was run."),
        (ProposalState.EXPIRED, "Already expired"),
        (ProposalState.SUPERSEDED, "Already edited by Ana at 14:35 UTC and superseded by a newer"),
    ],
)
async def test_a_decided_proposal_reports_decider_decision_and_time(
    ingress: Ingress, state: ProposalState, said: str
) -> None:
    ingress.api.answers["users.info"] = {"user": {"profile": {"display_name": "Ana"}}}
    ingress.proposals.rows[proposal().id] = proposal(
        state=state, decided_by=UserId("U2"), decided_at=NOW
    )
    await ingress.send(pressed(CONFIRM, "p-1"))
    (text,) = ingress.private_texts
    assert text.startswith(said)
    assert ingress.workflows.decisions == []


async def test_a_failing_store_says_that_nothing_started(ingress: Ingress) -> None:
    ingress.workflows.failures.append(StorageUnavailable("full"))
    response = await ingress.send(pressed(CONFIRM, "p-1"))
    assert response.status == 200
    assert ingress.private_texts == [replies.CLICK_NOT_STORED]


async def test_a_click_that_cannot_be_finished_in_time_says_so() -> None:
    ingress = Ingress(IngressSettings(IDENTITY, handling_timeout_s=0.01))
    ingress.proposals.rows[proposal().id] = proposal()
    ingress.workflows.gate.clear()
    await ingress.send(pressed(CONFIRM, "p-1"))
    assert ingress.private_texts == [replies.CLICK_TOO_SLOW]


@pytest.mark.parametrize("foreign", [{"team": {"id": "T9"}}, {"api_app_id": "A9"}])
async def test_a_click_for_another_installation_does_nothing(
    ingress: Ingress, foreign: Payload
) -> None:
    await ingress.send(pressed(CONFIRM, "p-1", **foreign))
    assert ingress.workflows.decisions == []
    assert ingress.private_texts == []
    assert ingress.memory.kinds() == [AuditKind.INGRESS_DENIED]


async def test_reject_asks_for_a_reason_and_starts_nothing_yet(ingress: Ingress) -> None:
    await ingress.send(pressed(REJECT, "p-1"))
    assert len(ingress.forms) == 1
    assert ingress.workflows.decisions == []


@pytest.mark.parametrize(
    ("typed", "kept"),
    [
        ("  not the cause ", "not the cause"),
        ("SECRET-abc123 leaked", "[redacted] leaked"),
        (None, ""),
        ("x" * 900, "x" * 500),
    ],
)
async def test_a_sent_form_starts_the_rejection_with_its_reason(
    ingress: Ingress, typed: str | None, kept: str
) -> None:
    await ingress.send(pressed(REJECT, "p-1"))
    await ingress.send(submitted(opened_metadata(ingress), typed))
    ((proposal_id, decision),) = ingress.workflows.decisions
    assert (proposal_id, decision.to, decision.reason) == ("p-1", ProposalState.REJECTED, kept)
    assert decision.key == "p-1:rejected:U1:300.3"


async def test_the_role_is_checked_again_when_the_form_is_sent(ingress: Ingress) -> None:
    await ingress.send(pressed(REJECT, "p-1"))
    ingress.roles.holders["responder"].clear()
    await ingress.send(submitted(opened_metadata(ingress), "no"))
    assert ingress.workflows.decisions == []
    assert ingress.private_texts == [NOT_YOU]
    assert ingress.memory.kinds() == [AuditKind.CLICK_REFUSED]


async def test_a_form_that_could_not_be_stored_stays_open_with_its_text(ingress: Ingress) -> None:
    await ingress.send(pressed(REJECT, "p-1"))
    ingress.workflows.failures.append(StorageUnavailable("locked"))
    response = await ingress.send(submitted(opened_metadata(ingress), "no"))
    assert json.loads(response.body) == {
        "response_action": "errors",
        "errors": {"reason": replies.CLICK_NOT_STORED},
    }


async def test_a_form_of_unknown_origin_does_nothing(ingress: Ingress) -> None:
    response = await ingress.send(submitted("{}", "no"))
    assert response.status == 200
    assert ingress.workflows.decisions == []


async def test_a_form_that_does_not_open_is_reported(ingress: Ingress) -> None:
    ingress.api.answers["views.open"] = SurfaceFailed("expired_trigger_id", retryable=False)
    await ingress.send(pressed(REJECT, "p-1"))
    assert ingress.private_texts == [replies.FORM_NOT_OPENED]


async def test_a_freeze_refuses_confirm_and_lets_reject(ingress: Ingress) -> None:
    ingress.freezes.reason = "every action is frozen"
    await ingress.send(pressed(CONFIRM, "p-1"))
    assert ingress.workflows.decisions == []
    assert "every action is frozen" in ingress.private_texts[0]
    assert [event.body["why"] for event in ingress.memory.audit_log] == ["frozen"]
    await ingress.send(pressed(REJECT, "p-1"))
    assert len(ingress.forms) == 1


async def test_an_unreadable_freeze_refuses_confirm(ingress: Ingress) -> None:
    ingress.freezes.broken = True
    await ingress.send(pressed(CONFIRM, "p-1"))
    assert ingress.workflows.decisions == []
    assert ingress.private_texts == [replies.CLICK_NOT_STORED]


async def test_a_refusal_opens_as_a_modal_for_the_person_who_pressed(ingress: Ingress) -> None:
    await ingress.send(pressed(CONFIRM, "p-1", user={"id": "U9", "team_id": "T1"}))

    assert ingress.private_texts == [NOT_YOU]
    assert ingress.whispers.said == []


async def test_a_refusal_that_cannot_be_opened_is_sent_as_an_ephemeral_message(
    ingress: Ingress,
) -> None:
    ingress.api.answers["views.open"] = SurfaceFailed("expired_trigger_id", retryable=False)

    await ingress.send(pressed(CONFIRM, "p-1", user={"id": "U9", "team_id": "T1"}))

    ((place, user, text),) = ingress.whispers.said
    assert (place.thread_ts, user, text) == ("100.1", "U9", NOT_YOU)
