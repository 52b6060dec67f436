"""People stop a turn: by button or by word, in any state; the results so far stay.

One bot serves all tests of this module. A question's first word names what its model does.
"""

import asyncio
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable

import pytest

from bot.demo.workspace.seeds import MEMBER, STRANGER
from bot.demo.workspace.timeline import Message
from bot.slack.listeners import replies
from tests.fakes.model_server import Call, Recorded, Round
from tests.fixtures_service import shared_stage
from tests.stage import STOP, Asked, Stage, question_of, results

__all__ = ["shared_stage"]

pytestmark = pytest.mark.asyncio(loop_scope="module")

WITHIN_S = 1.0
HELD: defaultdict[str, asyncio.Event] = defaultdict(asyncio.Event)  # never set, unless a test does
CLOCK = Call("core__get_current_time", {})


def SCRIPT(request: Recorded) -> Round:  # noqa: N802 - what the shared fixture looks for
    """Hang as the question says."""
    question = question_of(request)
    match question.split(" ")[0]:
        case "silence":
            return Round(text=("never said",), hold=HELD[question], hold_at=-1)
        case "streaming":
            return Round(
                text=("The pool is exhausted. ", "And more."), hold=HELD[question], hold_at=2
            )
        case "after-a-tool" if not results(request):
            return Round(text=("I look at the clock. ",), calls=(CLOCK,))
        case "after-a-tool":
            return Round(text=("never said",), hold=HELD[question], hold_at=-1)
        case _:
            return Round(text=("All is well.",))


Act = Callable[[Stage, Asked, Message, str], Awaitable[object]]


async def by_button(stage: Stage, asked: Asked, live: Message, user: str) -> None:
    """Press Stop."""
    await stage.press(user, live, STOP)


async def by_word(stage: Stage, asked: Asked, live: Message, user: str) -> None:
    """Write it in the thread."""
    await stage.ask("stop", user, thread=asked.thread)


async def by_slacks_own(stage: Stage, asked: Asked, live: Message, user: str) -> None:
    """Press the Stop that Slack shows while a thread is worked on."""
    workspace = stage.workspace
    channel, thread = live.channel, live.thread_ts or ""
    await workspace.wait_for(lambda: workspace.sessions.of(channel, thread).status == "processing")
    await workspace.stop(user, channel, thread)


async def stopped(stage: Stage, act: Act, asked: Asked, live: Message, user: str) -> str:
    """Stop it; the finished answer, which is there within a second."""
    began = time.monotonic()
    await act(stage, asked, live, user)
    answer = await stage.answer(asked)
    assert time.monotonic() - began < WITHIN_S
    return answer


async def left_its_place(stage: Stage, asked: Asked) -> None:
    """Wait until the turn is over for the engine too, which is after its last edit."""
    turn = asked.turn_in(stage.workspace)
    async with asyncio.timeout(5):
        while stage.query("SELECT id FROM tickets WHERE id = ?", turn):  # noqa: ASYNC110
            await asyncio.sleep(0.01)


@pytest.mark.parametrize("act", [by_button, by_word, by_slacks_own])
@pytest.mark.parametrize(
    ("what", "live_words", "kept"),
    [
        ("silence", "", "No results were gathered."),
        ("streaming", "The pool is exhausted.", "The pool is exhausted."),
        ("after-a-tool", "get_current_time", "1 result behind *Evidence*."),
    ],
)
async def test_a_stop_ends_a_turn_within_a_second_in_every_state(
    shared_stage: Stage, act: Act, what: str, live_words: str, kept: str
) -> None:
    user = shared_stage.newcomer()
    shared_stage.models.disconnected.clear()
    shared_stage.models.started.clear()
    asked = await shared_stage.ask(f"@kortex {what} {act.__name__}", user)
    live = await shared_stage.live(asked, live_words)
    await asyncio.wait_for(shared_stage.models.started.wait(), 5)

    answer = await stopped(shared_stage, act, asked, live, user)

    assert "Stopped by" in answer
    assert kept in answer
    assert "never said" not in answer
    async with asyncio.timeout(5):
        await shared_stage.models.disconnected.wait()


async def test_a_cut_answer_is_marked_in_the_next_question(shared_stage: Stage) -> None:
    user = shared_stage.newcomer()
    asked = await shared_stage.ask("@kortex streaming for history", user)
    live = await shared_stage.live(asked, "The pool is exhausted.")
    await stopped(shared_stage, by_button, asked, live, user)

    await shared_stage.answered("and now?", user, thread=asked.thread)

    said = [m["content"] for m in shared_stage.models.requests[-1].body["messages"]]
    assert "The pool is exhausted. \n(cut off here)" in said


async def test_a_colleague_may_stop_a_turn(shared_stage: Stage) -> None:
    asked = await shared_stage.ask("@kortex streaming for a colleague", shared_stage.newcomer())
    live = await shared_stage.live(asked, "The pool is exhausted.")

    assert f"Stopped by <@{MEMBER}>." in await stopped(shared_stage, by_button, asked, live, MEMBER)


async def test_an_external_person_may_not_stop_a_turn(shared_stage: Stage) -> None:
    asked = await shared_stage.ask("@kortex streaming for a stranger", shared_stage.newcomer())
    live = await shared_stage.live(asked, "The pool is exhausted.")

    told = await shared_stage.private_reply(STRANGER, shared_stage.press(STRANGER, live, STOP))

    assert replies.EXTERNAL.split(".")[0] in told
    assert shared_stage.finished(asked) == ""
    await stopped(shared_stage, by_button, asked, live, MEMBER)


async def test_an_external_person_may_not_stop_a_turn_by_slacks_own_button(
    shared_stage: Stage,
) -> None:
    asked = await shared_stage.ask("@kortex streaming for one outside", shared_stage.newcomer())
    live = await shared_stage.live(asked, "The pool is exhausted.")

    await by_slacks_own(shared_stage, asked, live, STRANGER)
    await shared_stage.workspace.settled()

    assert shared_stage.finished(asked) == ""
    await stopped(shared_stage, by_button, asked, live, MEMBER)


async def test_a_second_stop_at_the_same_time_changes_nothing(shared_stage: Stage) -> None:
    user = shared_stage.newcomer()
    asked = await shared_stage.ask("@kortex streaming twice", user)
    live = await shared_stage.live(asked, "The pool is exhausted.")

    async with asyncio.TaskGroup() as both:
        both.create_task(by_button(shared_stage, asked, live, user))
        both.create_task(by_word(shared_stage, asked, live, MEMBER))

    assert (await shared_stage.answer(asked)).count("Stopped by") == 1
    assert len(shared_stage.parts(asked)) == 1


async def test_a_stop_after_the_end_says_that_nothing_runs(shared_stage: Stage) -> None:
    user = shared_stage.newcomer()
    asked = await shared_stage.ask("@kortex streaming to its end", user)
    live = await shared_stage.live(asked, "The pool is exhausted.")
    HELD["streaming to its end"].set()
    answer = await shared_stage.answer(asked)
    await left_its_place(shared_stage, asked)

    pressed = shared_stage.press(user, live, STOP, stale=True)

    assert replies.NOTHING_RUNS in await shared_stage.private_reply(user, pressed)
    said = shared_stage.ask("@kortex stop", user, thread=asked.thread)
    assert replies.NOTHING_RUNS in await shared_stage.private_reply(user, said)
    assert shared_stage.finished(asked) == answer
    assert "Stopped" not in answer


async def test_a_stop_ends_the_running_turn_and_the_waiting_one_continues(
    shared_stage: Stage,
) -> None:
    user = shared_stage.newcomer()
    first = await shared_stage.ask("@kortex streaming before another", user)
    live = await shared_stage.live(first, "The pool is exhausted.")
    second = await shared_stage.ask("@kortex is all well?", user, thread=first.thread)

    answer = await stopped(shared_stage, by_word, first, live, user)

    assert "Stopped by" in answer
    assert "All is well." in await shared_stage.answer(second)
