"""A proposal from the model's call to the control plane and back, over real Socket Mode.

One bot serves all tests of this module; each has a thread and a proposal of its own.
"""

import asyncio
import json

import pytest
import pytest_asyncio

from bot.demo.workspace.seeds import GUEST, MEMBER, RESPONDER, SECOND_RESPONDER, STRANGER
from bot.demo.workspace.timeline import Message
from tests.fakes.control_plane_server import Answer, hangs_up, says, silence
from tests.fakes.model_server import Call, Recorded, Round
from tests.fixtures_service import PLANE_TOKEN, shared_stage
from tests.stage import CONFIRM, REJECT, Asked, Stage, question_of, results, shown, turn_of

__all__ = ["shared_stage"]

pytestmark = pytest.mark.asyncio(loop_scope="module")

PROPOSAL = {
    "action": "rollback-deploy",
    "product": "checkout",
    "params": {"version": "v2.3.7"},
    "rationale": "p99 rose with the deploy",
}


def SCRIPT(request: Recorded) -> Round:  # noqa: N802 - what the shared fixture looks for
    """Propose once per turn that asks for it, then say so."""
    asked = question_of(request)
    if results(request) or "propose" not in asked:
        return Round(text=("I have looked.",))
    another = {**PROPOSAL, "params": {"version": "v2.3.6"}}
    wanted = another if "another" in asked else PROPOSAL
    return Round(calls=(Call("core__propose_action", wanted),))


@pytest_asyncio.fixture(loop_scope="module")
async def stage(shared_stage: Stage) -> Stage:
    """The shared bot, with a control plane that has seen nothing and works."""
    await shared_stage.close_open()
    shared_stage.plane.received.clear()
    shared_stage.plane.post = says(200, {"rolled_back_to": "v2.3.7"})
    return shared_stage


async def proposed(stage: Stage, what: str = "a") -> tuple[Asked, Message]:
    """A thread with an open proposal."""
    asked = await stage.ask(f"@kortex propose {what} way out", stage.newcomer())
    await stage.answer(asked)
    return asked, await stage.card(asked)


def row_of(stage: Stage, card: Message) -> tuple[str, str]:
    """(state, outcome) as stored."""
    found = stage.query("SELECT state, outcome FROM proposals WHERE card_ts = ?", card.ts)
    return found[0][0], found[0][1]


@pytest.mark.parametrize("action", [CONFIRM, REJECT])
@pytest.mark.parametrize(
    ("user", "words"),
    [
        (MEMBER, "You don't have the role for this. Ask a responder."),
        (GUEST, "Guests can't confirm. Ask a responder."),
        (STRANGER, "another workspace"),
    ],
)
async def test_people_without_the_role_are_refused_privately_and_the_card_stays(
    stage: Stage, user: str, words: str, action: str
) -> None:
    asked, card = await proposed(stage)

    assert words in await stage.private_reply(user, stage.press(user, card, action))
    assert await stage.card(asked) == card
    assert row_of(stage, card) == ("pending", "")
    assert stage.effects == 0
    assert stage.workspace.modals_of(user) == ()


async def test_a_press_of_a_deactivated_account_is_refused(stage: Stage) -> None:
    asked, card = await proposed(stage)
    users = stage.workspace.roster.users
    before = users[SECOND_RESPONDER]
    stage.workspace.roster.deactivate(SECOND_RESPONDER)
    try:
        await stage.forge(SECOND_RESPONDER, card, CONFIRM)
        await stage.workspace.wait_for(lambda: "deactivated" in "".join(_whispered_calls(stage)))
    finally:
        users[SECOND_RESPONDER] = before
    assert await stage.card(asked) == card
    assert stage.effects == 0


def _whispered_calls(stage: Stage) -> list[str]:
    return [
        json.dumps(c.arguments) for c in stage.workspace.calls if c.method == "chat.postEphemeral"
    ]


async def test_a_confirmation_sends_one_request_and_the_thread_shows_the_result(
    stage: Stage,
) -> None:
    asked, card = await proposed(stage)

    await stage.press(RESPONDER, card, CONFIRM)

    await stage.note(asked, ": succeeded.")
    after = await stage.card(asked, "succeeded.")
    (post,) = stage.plane.of("POST")
    (proposal_id,) = stage.query("SELECT id FROM proposals WHERE card_ts = ?", card.ts)[0]
    assert post.raw_path == "/products/checkout/rollback"
    assert post.headers["Idempotency-Key"] == proposal_id
    assert post.headers["X-Kortex-Actor"] == RESPONDER
    assert post.headers["Authorization"] == f"Bearer {PLANE_TOKEN}"
    assert json.loads(post.body) == {
        "proposal_id": proposal_id,
        "action": "rollback-deploy",
        "product": "checkout",
        "params": {"version": "v2.3.7"},
        "confirmed_by": RESPONDER,
        "dry_run": False,
    }
    assert "v2.3.7" in shown(after)
    assert after.action_ids == ("proposal:raw",)
    assert after.ts == card.ts


async def test_the_card_opens_the_stored_json(stage: Stage) -> None:
    asked, card = await proposed(stage)
    await stage.press(RESPONDER, card, CONFIRM)
    after = await stage.card(asked, "succeeded.")

    await stage.press(MEMBER, after, "proposal:raw")

    (view,) = await stage.workspace.wait_for(lambda: stage.workspace.modals_of(MEMBER))
    stage.workspace.modals.close(str(view["id"]))
    texts = json.dumps(view)
    assert '"Arguments"' in texts
    assert '"Result"' in texts
    assert row_of(stage, card)[0] == "succeeded"


async def test_a_rejection_with_a_reason_reaches_the_card_and_the_model(stage: Stage) -> None:
    asked, card = await proposed(stage)
    await stage.press(RESPONDER, card, REJECT)
    view = await stage.workspace.wait_for(lambda: stage.workspace.modals_of(RESPONDER))

    await stage.workspace.submit(
        RESPONDER, str(view[-1]["id"]), {"text": "the schema migration cannot go back"}
    )

    after = await stage.card(asked, "Rejected")
    assert "the schema migration cannot go back" in shown(after)
    ((row,),) = stage.query("SELECT body FROM audit WHERE kind = 'proposal.rejected'")
    assert json.loads(row)["reason"] == "the schema migration cannot go back"
    await stage.answered("and now?", thread=asked.thread)
    told = str(turn_of(stage.models.requests[-1])[0]["content"])
    name = stage.workspace.roster.users[RESPONDER].name
    assert f"rejected by {name} at " in told
    assert RESPONDER not in told
    assert "nothing was run. Do not propose it again unless something was deployed since. " in told
    assert "Told: the schema migration cannot go back" in told
    assert stage.effects == 0


async def test_a_rejection_form_is_authorised_again_when_it_is_sent(stage: Stage) -> None:
    asked, card = await proposed(stage)
    await stage.press(RESPONDER, card, REJECT)
    view = await stage.workspace.wait_for(lambda: stage.workspace.modals_of(RESPONDER))
    await stage.press(SECOND_RESPONDER, card, CONFIRM)
    await stage.card(asked, "succeeded.")

    sent = stage.workspace.submit(RESPONDER, str(view[-1]["id"]), {"text": "too late"})
    assert "Already confirmed by jonas" in await stage.private_reply(RESPONDER, sent)
    assert row_of(stage, card)[0] == "succeeded"


async def test_an_expired_proposal_is_never_run_and_its_card_says_so(stage: Stage) -> None:
    asked, card = await proposed(stage)
    await stage.change("UPDATE proposals SET expires_at = 1 WHERE card_ts = ?", card.ts)

    told = await stage.private_reply(RESPONDER, stage.press(RESPONDER, card, CONFIRM))

    after = await stage.card(asked, "Expired")
    assert "nothing was run. Ask for a new proposal." in told
    assert after.action_ids == ("proposal:raw",)
    assert row_of(stage, card)[0] == "expired"
    assert stage.effects == 0


@pytest.mark.parametrize("action", [CONFIRM, REJECT])
async def test_a_click_from_an_outdated_client_changes_nothing(stage: Stage, action: str) -> None:
    asked, card = await proposed(stage)
    await stage.press(RESPONDER, card, CONFIRM)
    after = await stage.card(asked, "succeeded.")

    press = stage.press(SECOND_RESPONDER, card, action, stale=True)
    assert "Already confirmed by mira" in await stage.private_reply(SECOND_RESPONDER, press)
    assert await stage.card(asked) == after
    assert stage.effects == 1


async def test_two_confirmations_at_once_dispatch_once(stage: Stage) -> None:
    asked, card = await proposed(stage)
    async with asyncio.TaskGroup() as presses:
        for user in (RESPONDER, SECOND_RESPONDER) * 3:
            presses.create_task(stage.forge(user, card, CONFIRM))

    await stage.note(asked, ": succeeded.")
    await stage.card(asked, "succeeded.")
    assert stage.effects == 1


@pytest.mark.parametrize(
    ("answer", "title", "note", "state"),
    [
        (says(422, {"reason": "freeze"}), "Failed:", "failed.", "failed"),
        (says(401, text="who are you"), "Failed:", "failed.", "failed"),
        (says(503, {"error": "busy"}), "Outcome unknown", "it may have taken effect", "unknown"),
        (says(302, text="", Location="/x"), "Outcome unknown", "it may have taken", "unknown"),
        (silence, "Outcome unknown", "it may have taken effect", "unknown"),
        (hangs_up, "Outcome unknown", "it may have taken effect", "unknown"),
    ],
    ids=["422", "401", "503", "302", "silence", "hangs up"],
)
async def test_a_control_plane_failure_is_reported_exactly(
    stage: Stage, answer: Answer, title: str, note: str, state: str
) -> None:
    asked, card = await proposed(stage)
    stage.plane.post = answer

    await stage.press(RESPONDER, card, CONFIRM)

    await stage.note(asked, note)
    after = await stage.card(asked, title)
    assert after.action_ids == ("proposal:raw",)
    assert row_of(stage, card)[0] == state
    assert stage.effects == 1
    assert "succeeded" not in shown(after)


@pytest.mark.parametrize(
    "value", ["p_000000000000000000000000", "' OR 1=1 --", "x" * 2000, "../../p", "turn:T:C:1"]
)
async def test_a_button_with_a_foreign_value_decides_nothing(stage: Stage, value: str) -> None:
    _, card = await proposed(stage)

    told = await stage.private_reply(RESPONDER, stage.forge(RESPONDER, card, CONFIRM, value))
    assert "This proposal is not open any more" in told
    assert row_of(stage, card) == ("pending", "")
    assert stage.effects == 0


async def test_a_card_cannot_confirm_another_proposal(stage: Stage) -> None:
    _, first = await proposed(stage)
    _, second = await proposed(stage, "another")
    other = str((second.action(CONFIRM) or {})["value"])

    told = await stage.private_reply(RESPONDER, stage.forge(RESPONDER, first, CONFIRM, other))
    assert "This proposal is not open any more" in told
    assert [row_of(stage, card)[0] for card in (first, second)] == ["pending", "pending"]
    assert stage.effects == 0
