"""Decisions, and their refusals: votes, freezes, edits, over real Socket Mode."""

import asyncio
from collections.abc import Callable

import pytest
import pytest_asyncio

from bot.demo.workspace.seeds import CHECKOUT, MEMBER, RESPONDER, SECOND_RESPONDER
from bot.demo.workspace.timeline import Message
from tests.fakes.control_plane_server import says
from tests.fakes.model_server import Call, Recorded, Round
from tests.fixtures_service import shared_stage
from tests.stage import (
    CONFIRM,
    EDIT,
    REJECT,
    WAIT_S,
    Asked,
    Stage,
    question_of,
    results,
    shown,
)

__all__ = ["shared_stage"]

pytestmark = pytest.mark.asyncio(loop_scope="module")

ENDPOINT = {"url": "http://127.0.0.1:9/{product}", "timeout": "1s"}


def action(name: str, **more: object) -> dict[str, object]:
    """A declared action; its endpoint is filled in by the fixture."""
    schema = {"type": "object", "properties": {"version": {"type": "string"}}}
    return {
        "name": name,
        "description": name,
        "params_schema": schema,
        "endpoint": ENDPOINT,
        **more,
    }


SETTINGS = {
    "actions": [
        action("with-two", approvals=2),
        action("any-time"),
        action("editable", confirm_dialog=True, four_eyes=True),
        action("never", quiet_hours=["00:00-24:00"]),
    ]
}


def SCRIPT(request: Recorded) -> Round:  # noqa: N802 - what the shared fixture looks for
    """Propose the action that is named after "propose", once."""
    question = question_of(request)
    if results(request) or "propose" not in question:
        return Round(text=("I have looked.",))
    name = question.split("propose ", 1)[1].split(maxsplit=1)[0]
    wanted = {"action": name, "product": "checkout", "params": {"version": "v1"}, "rationale": "r"}
    return Round(calls=(Call("core__propose_action", wanted),))


@pytest_asyncio.fixture(loop_scope="module")
async def stage(shared_stage: Stage) -> Stage:
    """The shared bot; its control plane cannot be reached, which is an outcome like another."""
    await shared_stage.close_open()
    shared_stage.plane.received.clear()
    shared_stage.plane.post = says(200, {})
    return shared_stage


async def proposed(stage: Stage, name: str) -> tuple[Asked, Message]:
    """A thread with an open proposal of that action."""
    asked = await stage.ask(f"@kortex propose {name}", stage.newcomer())
    await stage.answer(asked)
    return asked, await stage.card(asked)


def archive(stage: Stage) -> None:
    stage.workspace.archive(CHECKOUT)


def unarchive(stage: Stage) -> None:
    stage.workspace.archive(CHECKOUT, archived=False)


def remove(stage: Stage) -> None:
    stage.workspace.remove_bot(CHECKOUT)


def invite(stage: Stage) -> None:
    stage.workspace.invite_bot(CHECKOUT)


@pytest.mark.parametrize(
    ("away", "back"), [(archive, unarchive), (remove, invite)], ids=["archived", "removed"]
)
async def test_a_stale_card_is_corrected_once_its_channel_is_back(
    stage: Stage, away: Callable[[Stage], None], back: Callable[[Stage], None]
) -> None:
    asked, card = await proposed(stage, "any-time")
    away(stage)
    # Expired in between, after so many failed tries that the next one is ten minutes away.
    await stage.change(
        "UPDATE proposals SET state = 'expired', card_wanted = card_wanted + 1, card_tries = 70,"
        " card_due_at = datetime('now', '+10 minutes') WHERE card_ts = ?",
        card.ts,
    )
    assert card.action(CONFIRM)

    back(stage)

    corrected = await stage.card(asked, "xpired")
    assert (corrected.ts, corrected.action(CONFIRM)) == (card.ts, None)


def state_of(stage: Stage, card: Message) -> str:
    """As stored."""
    return str(stage.query("SELECT state FROM proposals WHERE card_ts = ?", card.ts)[0][0])


async def test_two_people_must_confirm_and_the_card_names_them(stage: Stage) -> None:
    asked, card = await proposed(stage, "with-two")
    assert "0 of 2" in shown(card)
    await stage.press(RESPONDER, card, CONFIRM)
    after = await stage.card(asked, "1 of 2")
    assert f"<@{RESPONDER}>" in shown(after)
    assert set(after.action_ids) >= {CONFIRM, REJECT}
    told = await stage.private_reply(RESPONDER, stage.press(RESPONDER, after, CONFIRM))
    assert "Another approver must confirm it too" in told
    assert state_of(stage, card) == "pending"

    await stage.press(SECOND_RESPONDER, after, CONFIRM)

    done = await stage.card(asked, "; failed.")
    assert f"<@{RESPONDER}>" in shown(done)
    assert f"<@{SECOND_RESPONDER}>" in shown(done)


async def test_twenty_presses_of_one_person_count_as_one_vote(stage: Stage) -> None:
    asked, card = await proposed(stage, "with-two")
    async with asyncio.TaskGroup() as presses:
        for _ in range(20):
            presses.create_task(stage.forge(RESPONDER, card, CONFIRM))
    await stage.card(asked, "1 of 2")
    assert state_of(stage, card) == "pending"


async def command(stage: Stage, text: str, user: str = RESPONDER) -> str:
    """What `/kortex` answers that person."""
    ack = await stage.workspace.command(user, CHECKOUT, text)
    assert ack.ok
    return str(stage.whispers(user)[-1])


async def test_a_freeze_refuses_confirmation_until_it_is_lifted(stage: Stage) -> None:
    asked, card = await proposed(stage, "any-time")
    assert "Frozen: no action runs" in await command(stage, "freeze on the sale is on")
    told = await stage.private_reply(SECOND_RESPONDER, stage.press(SECOND_RESPONDER, card, CONFIRM))
    assert "every action is frozen" in told
    assert "the sale is on" in told
    assert state_of(stage, card) == "pending"
    assert f"by <@{RESPONDER}>: the sale is on" in await command(stage, "freeze")

    assert "Freeze ended" in await command(stage, "freeze off")

    await stage.press(SECOND_RESPONDER, card, CONFIRM)
    await stage.card(asked, "; failed.")
    changes = stage.query("SELECT actor, body FROM audit WHERE kind = 'freeze.changed'")
    assert [(actor, '"frozen":true' in body) for actor, body in changes] == [
        (RESPONDER, True),
        (RESPONDER, False),
    ]


async def test_only_admins_freeze(stage: Stage) -> None:
    assert "Only admins can freeze actions: @responder" in await command(stage, "freeze on", MEMBER)
    assert "Actions are not frozen." in await command(stage, "freeze")


async def test_quiet_hours_refuse_proposals_and_give_the_model_the_reason(stage: Stage) -> None:
    asked = await stage.ask("@kortex propose never", stage.newcomer())
    await stage.answer(asked)
    assert stage.cards(asked) == []
    told = str(stage.models.bodies[-1]["messages"])
    assert "never has quiet hours until" in told


async def edited(stage: Stage, card: Message, version: str, user: str = RESPONDER) -> str:
    """Open the form of a card; its answer is changed; what the form says about it."""
    await stage.press(user, card, EDIT)
    view = await stage.workspace.wait_for(lambda: stage.workspace.modals_of(user))
    ack = await stage.workspace.submit(user, str(view[-1]["id"]), {"field:0": version})
    return str(ack.body)


async def test_an_edited_proposal_supersedes_the_old_one(stage: Stage) -> None:
    asked, card = await proposed(stage, "editable")
    assert (card.action(CONFIRM) or {})["confirm"]

    await edited(stage, card, "v2")

    new = await stage.card(asked, "Edited and proposed again by")
    assert "v2" in shown(new)
    assert f"<@{RESPONDER}>" in shown(new)
    old = await stage.workspace.wait_for(
        lambda: next((c for c in stage.cards(asked) if "uperseded by a newer" in shown(c)), None)
    )
    assert (old.ts, old.action_ids, state_of(stage, old)) == (
        card.ts,
        ("proposal:raw",),
        "superseded",
    )
    async with asyncio.timeout(WAIT_S):
        while not stage.query("SELECT 1 FROM proposals WHERE card_ts = ?", new.ts):  # noqa: ASYNC110 - rows wake no one
            await asyncio.sleep(0.01)  # the card is posted first, then remembered
    assert state_of(stage, new) == "pending"
    told = await stage.private_reply(RESPONDER, stage.press(RESPONDER, new, CONFIRM))
    assert "someone else has to confirm it" in told
    await stage.press(SECOND_RESPONDER, new, CONFIRM)
    await stage.card(asked, "; failed.")


async def test_an_invalid_edit_is_reported_in_the_form(stage: Stage) -> None:
    _, card = await proposed(stage, "editable")
    assert "nothing was changed" in await edited(stage, card, "v1")
    assert state_of(stage, card) == "pending"


async def test_only_approvers_may_edit(stage: Stage) -> None:
    _, card = await proposed(stage, "editable")
    assert "You don't have the role for this" in await stage.private_reply(
        MEMBER, stage.press(MEMBER, card, EDIT)
    )
    assert stage.workspace.modals_of(MEMBER) == ()
