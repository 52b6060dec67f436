"""Who decides, and when nobody may: votes, over real Socket Mode."""

import asyncio
from collections.abc import Iterator

import pytest

from bot.workspace.messages import Message
from bot.workspace.seeds import RESPONDER, SECOND_RESPONDER
from tests.fakes.control_plane_server import says
from tests.fakes.model_server import Call, Recorded, Round
from tests.fixtures_service import shared_stage
from tests.stage import CONFIRM, REJECT, Asked, Stage, results, shown

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


SETTINGS = {"actions": [action("with-two", approvals=2)]}


def SCRIPT(request: Recorded) -> Round:  # noqa: N802 - what the shared fixture looks for
    """Propose the action that is named after "propose", once."""
    question = str(request.body["messages"][-1]["content"])
    if results(request) or "propose" not in question:
        return Round(text=("I have looked.",))
    name = question.split("propose ", 1)[1].split(maxsplit=1)[0]
    wanted = {"action": name, "product": "checkout", "params": {"version": "v1"}, "rationale": "r"}
    return Round(calls=(Call("core__propose_action", wanted),))


@pytest.fixture
def stage(shared_stage: Stage) -> Iterator[Stage]:
    """The shared bot; its control plane cannot be reached, which is an outcome like another."""
    shared_stage.plane.received.clear()
    shared_stage.plane.post = says(200, {})
    return shared_stage


async def proposed(stage: Stage, name: str) -> tuple[Asked, Message]:
    """A thread with an open proposal of that action."""
    asked = await stage.ask(f"@kortex propose {name}", stage.newcomer())
    await stage.answer(asked)
    return asked, await stage.card(asked)


def state_of(stage: Stage, card: Message) -> str:
    """As stored."""
    return str(stage.query("SELECT state FROM proposals WHERE card_ts = ?", card.ts)[0][0])


async def test_two_people_have_to_confirm_and_the_card_tells_who_did(stage: Stage) -> None:
    asked, card = await proposed(stage, "with-two")
    assert "0 of 2" in shown(card)
    await stage.press(RESPONDER, card, CONFIRM)
    after = await stage.card(asked, "1 of 2")
    assert f"<@{RESPONDER}>" in shown(after)
    assert set(after.action_ids) >= {CONFIRM, REJECT}
    told = await stage.told(RESPONDER, stage.press(RESPONDER, after, CONFIRM))
    assert "Someone else has to confirm it too" in told
    assert state_of(stage, card) == "pending"

    await stage.press(SECOND_RESPONDER, after, CONFIRM)

    done = await stage.card(asked, "It failed.")
    assert f"<@{RESPONDER}>" in shown(done)
    assert f"<@{SECOND_RESPONDER}>" in shown(done)


async def test_twenty_presses_of_one_person_are_one_vote(stage: Stage) -> None:
    asked, card = await proposed(stage, "with-two")
    async with asyncio.TaskGroup() as presses:
        for _ in range(20):
            presses.create_task(stage.forge(RESPONDER, card, CONFIRM))
    await stage.card(asked, "1 of 2")
    assert state_of(stage, card) == "pending"
