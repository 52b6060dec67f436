"""Guests, people of another company, and the channels that they share with us."""

from dataclasses import replace

import pytest

from bot.demo.workspace.seeds import DIRECT, GUEST, MEMBER, PAYMENTS, RESPONDER
from bot.demo.workspace.state import Setup
from bot.slack.views.modals import REFUSED
from bot.slack.views.sources import OVERVIEW_ACTION
from tests.fakes.model_server import Call, Round
from tests.fixtures_service import Start, stage
from tests.slack_request_gate import SlackRequestGate
from tests.stage import Stage, rounds

__all__ = ["stage"]

SHARED = "shared with another company"
LOOKS = rounds(
    Round(calls=(Call("core__get_current_time", {}),)), Round(text=("It is late [E1].",))
)
REFUSING = {"slack": {"external_channels": "refuse"}}


async def test_an_answer_in_a_shared_channel_names_its_readers_once(stage: Start) -> None:
    async with stage(LOOKS) as running:
        shared = await running.answered("@kortex how late is it?", channel=PAYMENTS)
        own = await running.answered("@kortex how late is it?", user=MEMBER)

    assert "It is late" in shared
    assert shared.count("its people can read this answer") == 1
    assert SHARED not in own


async def test_refused_shared_channels_ask_no_model(stage: Start) -> None:
    async with stage(LOOKS, REFUSING) as running:
        answer = await running.answered("@kortex how late is it?", channel=PAYMENTS)
        asked = len(running.models.requests)
        direct = await running.answered("how late is it?", channel=DIRECT)

    assert "I do not answer here: this channel is shared with another company" in answer
    assert "external_channels" in answer
    assert asked == 0
    assert "It is late" in direct


async def test_a_channel_without_sharing_information_counts_as_shared(stage: Start) -> None:
    unreadable = Setup(
        request_gate=SlackRequestGate(refused={"conversations.info": "internal_error"})
    )
    async with stage(LOOKS, REFUSING, setup=unreadable) as running:
        refused = await running.answered("@kortex how late is it?")
    assert "may be shared with another company, which I could not check" in refused


async def opened(running: Stage, user: str) -> str:
    """What pressing *Evidence* shows to that person, and then the first result."""
    asked = await running.ask("@kortex how late is it?", user=RESPONDER)
    await running.answer(asked)
    [part] = running.parts(asked)
    await running.press(user, part, OVERVIEW_ACTION)
    (view,) = await running.workspace.wait_for(lambda: running.workspace.modals_of(user))
    if view["callback_id"] != REFUSED:
        running.workspace.modals.close(str(view["id"]))
        view = await running.open_result(user, part)
    return str(view["blocks"])


@pytest.mark.parametrize("one_channel", [False, True])
async def test_a_guest_cannot_open_a_result_and_a_member_can(
    stage: Start, one_channel: bool
) -> None:
    async with stage(LOOKS) as running:
        people = running.workspace.roster.users
        people[GUEST] = replace(people[GUEST], is_ultra_restricted=one_channel)
        told = await opened(running, GUEST)
        seen = await opened(running, MEMBER)

    assert "Guests and people of other companies can't open this" in told
    assert "now" not in told
    assert "now" in seen


async def test_a_person_who_cannot_be_looked_up_cannot_open_a_result(stage: Start) -> None:
    broken = Setup(request_gate=SlackRequestGate(refused={"users.info": "internal_error"}))
    async with stage(LOOKS, setup=broken) as running:
        told = await opened(running, MEMBER)

    assert "I could not check your account with Slack" in told
