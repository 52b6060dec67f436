"""A turn that no process can carry on is ended where people wait for it, and the thread goes on."""

import time

from bot.chat.turn_result import LOST
from bot.demo.workspace.seeds import RESPONDER
from tests.fakes.model_server import Recorded, Round
from tests.fixtures_service import Start, stage

__all__ = ["stage"]


def fine(_request: Recorded) -> Round:
    return Round(text=("All is well.",))


async def test_a_turn_of_another_version_is_reported_and_the_next_one_is_answered(
    stage: Start,
) -> None:
    async with stage(fine) as running:
        lost = await running.ask("nobody is mentioned here", RESPONDER)
        turn, now = lost.turn_in(running.workspace), round(time.time() * 1000)
        await running.change(
            "INSERT INTO workflow_status (workflow_uuid, status, name, application_version,"
            " executor_id, created_at, updated_at)"
            " VALUES (?, 'PENDING', 'turn', 'kortex-0', 'local', ?, ?)",
            turn,
            now,
            now,
        )
        thread = turn.removeprefix("turn:")
        await running.change(
            "INSERT INTO tickets (id, thread, ts, state, owner) VALUES (?, ?, ?, 'running', '')",
            turn,
            thread,
            lost.ts,
        )
        after = await running.ask("@kortex and now?", RESPONDER, thread=lost.ts)
        for _ in range(2):
            await running.service.engine.look_after_threads()
        assert LOST in await running.answer(lost)
        assert "All is well." in await running.answer(after)
        state = running.query("SELECT state FROM turns WHERE id = ?", turn)
        ended = running.query(
            "SELECT kind FROM audit WHERE kind = 'turn.ended' AND body LIKE ?", f"%{turn}%"
        )
    assert (state, len(ended)) == ([("failed",)], 1)
