"""The stored data of a conversation when the operator limits it."""

import asyncio
from pathlib import Path

import pytest

from bot.demo.workspace.seeds import RESPONDER
from bot.engine.dbos_setup import forget_ended
from bot.store.retention import DAY_S
from tests.fakes.model_server import Call, Recorded, Round
from tests.fixtures_service import Start, on_stage, stage
from tests.stage import results

__all__ = ["stage"]

SAID = "the-disk-of-checkout-is-full"


def script(request: Recorded) -> Round:
    looks = Call("core__get_logs", {"product": "checkout", "time_range": "last 30m"})
    return Round(text=(f"{SAID} [1]",)) if results(request) else Round(calls=(looks,))


async def test_without_retention_no_content_is_left(stage: Start) -> None:
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
        whisper = await running.private_reply(
            RESPONDER, running.press(RESPONDER, running.parts(asked)[-1], "evidence:all")
        )
        assert whisper


async def test_by_default_an_answer_is_kept_and_every_call_is_audited(stage: Start) -> None:
    async with stage(script) as running:
        await running.answered("@kortex why is it slow?")

        assert SAID in running.rows()
        kinds = {kind for (kind,) in running.query("select kind from audit")}
        assert kinds >= {"tool.call", "model.call"}


OLDER_BY_A_WEEK = "update workflow_status set created_at = created_at - 8 * 86400000"


@pytest.mark.may_block_the_loop
async def test_technical_records_are_deleted_after_a_week_even_when_messages_are_kept(
    tmp_path: Path,
) -> None:
    async with on_stage(tmp_path, script) as before:
        await before.answered("@kortex why is it slow?")
        before.query(OLDER_BY_A_WEEK)
    async with on_stage(tmp_path, script) as running:  # what the clock does, a start does first
        asked = await running.ask("@kortex and now?")
        await running.answer(asked)

        ended = running.query("select workflow_uuid from workflow_status")
        assert ended == [(asked.turn_in(running.workspace),)]
        assert running.query("select count(*) from messages where body like ?", f"%{SAID}%") == [
            (2,)
        ]
        assert running.query("select count(*) from evidence") == [(2,)]


async def test_records_of_running_work_are_kept_at_any_age(stage: Start) -> None:
    goes_on = asyncio.Event()
    async with stage(lambda _request: Round(text=(SAID, "!"), hold=goes_on, hold_at=1)) as running:
        asked = await running.ask("@kortex why is it slow?")
        await running.models.started.wait()
        running.query(OLDER_BY_A_WEEK)

        assert await forget_ended(DAY_S) == 0

        goes_on.set()
        assert SAID in await running.answer(asked)


async def test_a_backlog_is_deleted_in_batches(stage: Start) -> None:
    copies = (
        "insert into workflow_status (workflow_uuid, status, name, created_at, updated_at, priority) "
        "with recursive n(i) as (select 1 union all select i + 1 from n where i < 250) "
        "select 'old:' || i, 'SUCCESS', 'turn', i, i, 0 from n"
    )
    async with stage(script) as running:
        running.query(copies)

        forgotten = [await forget_ended(DAY_S, within_s=0.0) for _ in range(3)]

        assert forgotten == [200, 50, 0]
