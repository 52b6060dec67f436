"""What is kept of a conversation when the operator wants less kept."""

import asyncio

from bot.demo.workspace.seeds import RESPONDER
from bot.engine.library import forget_ended
from tests.fakes.model_server import Call, Recorded, Round
from tests.fixtures_service import Start, stage
from tests.stage import results

__all__ = ["stage"]

SAID = "the-disk-of-checkout-is-full"


def script(request: Recorded) -> Round:
    looks = Call("core__get_logs", {"product": "checkout", "time_range": "last 30m"})
    return Round(text=(f"{SAID} [1]",)) if results(request) else Round(calls=(looks,))


async def test_without_retention_nothing_said_or_read_is_left(stage: Start) -> None:
    privacy = {"do_not_retain_default": True, "audit_every_call": False}
    async with stage(script, {"llm": {"privacy": privacy}}) as running:
        asked = await running.ask("@kortex why is it slow? a-peculiar-question")
        answer = await running.answer(asked)
        async with asyncio.timeout(10):
            while not await forget_ended(-60.0):
                pass  # the answer is read a moment before its workflow has ended

        assert SAID in answer
        assert running.query("select count(*) from messages") == [(0,)]
        assert running.query("select count(*) from evidence") == [(0,)]
        kinds = {kind for (kind,) in running.query("select kind from audit")}
        assert "turn.ended" in kinds
        assert kinds.isdisjoint({"tool.call", "model.call"})
        assert [w for w in (SAID, "a-peculiar-question") if w in running.rows()] == []
        whisper = await running.told(
            RESPONDER, running.press(RESPONDER, running.parts(asked)[-1], "evidence:open:1")
        )
        assert whisper


async def test_by_default_an_answer_is_kept_and_every_call_is_audited(stage: Start) -> None:
    async with stage(script) as running:
        await running.answered("@kortex why is it slow?")

        assert SAID in running.rows()
        kinds = {kind for (kind,) in running.query("select kind from audit")}
        assert kinds >= {"tool.call", "model.call"}
