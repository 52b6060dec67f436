"""Slack fails while an answer is written: the turn still ends, and its text arrives or is kept.

One bot serves these tests; its model stops in mid-sentence until the test lets it go on.
"""

import asyncio
from collections import defaultdict, deque
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest
import pytest_asyncio

from bot.demo.workspace.errors import RateLimited, SlackRefused
from bot.demo.workspace.seeds import CHECKOUT
from bot.demo.workspace.timeline import Message
from tests.fakes.model_server import Recorded, Round
from tests.fixtures_service import shared_stage
from tests.slack_request_gate import SlackRequestGate
from tests.stage import Asked, Stage, question_of

__all__ = ["shared_stage"]

pytestmark = pytest.mark.asyncio(loop_scope="module")

HELD: defaultdict[str, asyncio.Event] = defaultdict(asyncio.Event)
WHOLE = "The pool is exhausted since v2.4.0."


def SCRIPT(request: Recorded) -> Round:  # noqa: N802 - what the shared fixture looks for
    """Two pieces; the second when the test of that question says so."""
    question = question_of(request)
    return Round(text=("The pool is exhausted ", "since v2.4.0."), hold=HELD[question], hold_at=2)


class Faulty(SlackRequestGate):
    """Slack's front request_gate with faults: `faults[method]` are raised in order, one a request."""

    def __init__(self) -> None:
        super().__init__()
        self.faults: defaultdict[str, deque[Exception]] = defaultdict(deque)

    def take(self, method: str, tier: int | None, channel: str) -> None:
        super().take(method, tier, channel)
        if self.faults[method]:
            raise self.faults[method].popleft()


@pytest_asyncio.fixture(loop_scope="module")
async def slack(shared_stage: Stage) -> AsyncIterator[Faulty]:
    """The workspace's front request_gate; the channel is as it was afterwards."""
    before = shared_stage.workspace.roster.channels[CHECKOUT]
    request_gate = Faulty()
    shared_stage.workspace.request_gate = request_gate
    yield request_gate
    shared_stage.workspace.roster.channels[CHECKOUT] = before


async def writing(stage: Stage, about: str, user: str = "") -> tuple[Asked, Message]:
    """An answer in mid-sentence."""
    asked = await stage.ask(f"@kortex {about}", user or stage.newcomer())
    return asked, await stage.live(asked, "The pool is")


def kept(stage: Stage, asked: Asked) -> list[tuple[str, ...]]:
    """(state, answer) of the turn's record."""
    return stage.query(
        "SELECT t.state, m.body FROM turns t JOIN messages m ON m.turn_id = t.id"
        " WHERE t.id = ? ORDER BY m.n DESC LIMIT 1",
        asked.turn_in(stage.workspace),
    )


async def over(stage: Stage, asked: Asked) -> None:
    """Wait until the turn is over for the engine."""
    turn = asked.turn_in(stage.workspace)
    async with asyncio.timeout(10):
        while stage.query("SELECT id FROM tickets WHERE id = ?", turn):  # noqa: ASYNC110
            await asyncio.sleep(0.01)


@pytest.mark.parametrize(
    "faults",
    [
        [RateLimited(1)],
        [SlackRefused("internal_error"), SlackRefused("service_unavailable")],
        [OSError("an HTML page with HTTP 500")] * 2,
        [SlackRefused("invalid_blocks")],
        [SlackRefused("msg_blocks_too_long")],
        [SlackRefused("msg_too_long")],
        [SlackRefused("edit_window_closed")],
        [SlackRefused("cant_update_message")],
    ],
    ids=lambda faults: "-".join(str(fault).replace(" ", "_") or "429" for fault in faults),
)
async def test_the_final_text_arrives_once_after_any_fault(
    shared_stage: Stage, slack: Faulty, faults: list[Exception], request: pytest.FixtureRequest
) -> None:
    asked, _ = await writing(shared_stage, request.node.name)
    slack.faults["chat.update"].extend(faults)
    HELD[request.node.name].set()

    await shared_stage.live(asked, WHOLE)
    await shared_stage.answer(asked)
    assert len(shared_stage.parts(asked)) == 1


async def test_a_placeholder_that_slack_refuses_at_first_is_posted_once(
    shared_stage: Stage, slack: Faulty
) -> None:
    slack.faults["chat.postMessage"].extend([RateLimited(1), SlackRefused("internal_error")])
    asked, _ = await writing(shared_stage, "late")
    HELD["late"].set()

    assert WHOLE in await shared_stage.answer(asked)
    assert len(shared_stage.parts(asked)) == 1


async def test_a_deleted_answer_ends_silently_with_its_record_and_the_thread_continues(
    shared_stage: Stage, slack: Faulty
) -> None:
    user = shared_stage.newcomer()
    asked, live = await writing(shared_stage, "deleted", user)
    await shared_stage.workspace.delete(live.user, CHECKOUT, live.ts)
    HELD["deleted"].set()

    await over(shared_stage, asked)

    assert shared_stage.parts(asked) == []
    ((state, content),) = kept(shared_stage, asked)
    assert (state, WHOLE in content) == ("answered", True)
    HELD["again"].set()
    assert WHOLE in await shared_stage.answered("again", user, thread=asked.thread)


@pytest.mark.parametrize("gone", ["archived", "bot-removed"])
async def test_a_deleted_channel_ends_the_turn_silently_with_its_record(
    shared_stage: Stage, slack: Faulty, gone: str
) -> None:
    asked, _ = await writing(shared_stage, gone)
    workspace = shared_stage.workspace
    {"archived": workspace.archive, "bot-removed": workspace.remove_bot}[gone](CHECKOUT)
    HELD[gone].set()

    await over(shared_stage, asked)

    ((state, content),) = kept(shared_stage, asked)
    assert (state, WHOLE in content) == ("answered", True)


async def test_a_renamed_channel_does_not_affect_the_running_answer(
    shared_stage: Stage, slack: Faulty
) -> None:
    user = shared_stage.newcomer()
    asked, _ = await writing(shared_stage, "renamed", user)
    channels = shared_stage.workspace.roster.channels
    channels[CHECKOUT] = replace(channels[CHECKOUT], name="incident-other")
    HELD["renamed"].set()

    assert WHOLE in await shared_stage.answer(asked)
    HELD["and now?"].set()
    assert WHOLE in await shared_stage.answered("and now?", user, thread=asked.thread)
