"""More questions than may be answered at once: the rest see that they wait, and all are answered."""

import asyncio
from collections import defaultdict

from bot.demo.workspace.seeds import MEMBER, RESPONDER
from bot.slack.views.render import IN_LINE, WAITING
from tests.fakes.model_server import Recorded, Round
from tests.fixtures_service import Start, stage
from tests.stage import STOP, question_of

__all__ = ["stage"]


async def test_a_question_over_the_limit_waits_visibly_and_is_answered(
    stage: Start,
) -> None:
    held: defaultdict[str, asyncio.Event] = defaultdict(asyncio.Event)

    def script(request: Recorded) -> Round:
        question = question_of(request)
        return Round(text=(f"Answer to {question}.",), hold=held[question], hold_at=-1)

    async with stage(script, {"turns": {"max_live": 1}}) as running:
        first = await running.ask("@kortex first")
        await running.live(first, "Thinking")
        second = await running.ask("@kortex second", MEMBER)
        waiting = await running.live(second, WAITING)
        third = await running.ask("@kortex third", RESPONDER)
        unwanted = await running.live(third, WAITING)

        fourth = await running.ask("@kortex fourth", RESPONDER)
        await running.live(fourth, WAITING)

        await running.press(RESPONDER, unwanted, STOP)
        assert "Stopped" in await running.answer(third)
        await running.ask("stop", RESPONDER, thread=fourth.thread)
        assert "Stopped" in await running.answer(fourth)
        assert running.finished(second) == ""

        held["first"].set()
        held["second"].set()
        assert "Answer to first" in await running.answer(first)
        assert "Answer to second" in await running.answer(second)
        assert [part.ts for part in running.parts(second)] == [waiting.ts]


async def test_a_queued_question_in_a_thread_gets_a_notice_and_an_answer(
    stage: Start,
) -> None:
    held: defaultdict[str, asyncio.Event] = defaultdict(asyncio.Event)

    def script(request: Recorded) -> Round:
        question = question_of(request)
        return Round(text=(f"Answer to {question}.",), hold=held[question], hold_at=-1)

    async with stage(script) as running:
        first = await running.ask("@kortex first")
        await running.live(first, "Thinking")
        second = await running.ask("and second", thread=first.thread)
        waiting = await running.live(second, IN_LINE)
        held["first"].set()
        held["and second"].set()

        assert "Answer to first" in await running.answer(first)
        assert "Answer to and second" in await running.answer(second)
        assert [part.ts for part in running.parts(second)] == [waiting.ts]
