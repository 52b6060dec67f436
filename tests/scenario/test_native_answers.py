"""A whole bot that answers in Slack's own streams: on the wire, stopped, and beside a proposal."""

import asyncio
from collections import defaultdict

import pytest

from bot.demo.workspace.seeds import CHECKOUT, RESPONDER
from bot.demo.workspace.state import Setup
from tests.fakes.model_server import Call, Recorded, Round
from tests.fixtures_service import Start, stage
from tests.slack_request_gate import SlackRequestGate
from tests.stage import Asked, Stage, question_of, results, rounds

__all__ = ["stage"]

NATIVE = {"slack": {"stream": "native"}}
TEXT = "The pool of checkout is exhausted since the deploy of this morning. "
HELD: defaultdict[str, asyncio.Event] = defaultdict(asyncio.Event)
PROPOSE = Call(
    "core__propose_action",
    {"action": "rollback-deploy", "product": "checkout", "params": {}, "rationale": "it leaks"},
)


def hanging(request: Recorded) -> Round:
    """Look at the clock, then begin an answer and say no more."""
    if not results(request):
        return Round(calls=(Call("core__get_current_time", {}),))
    return Round(text=(TEXT, "And more."), hold=HELD[question_of(request)], hold_at=2)


async def begun(running: Stage, text: str) -> Asked:
    """Ask, and wait until the first words are there."""
    asked = await running.ask(text)
    await running.workspace.wait_for(lambda: "exhausted" in said(running, asked))
    return asked


def said(running: Stage, asked: Asked) -> str:
    bot = running.workspace.app.bot_user_id
    thread = running.workspace.thread(asked.channel, asked.thread)
    return "\n".join(f"{m.text} {m.blocks}" for m in thread if m.user == bot)


async def test_slacks_own_stop_ends_the_stream_and_keeps_its_text(stage: Start) -> None:
    async with stage(hanging, NATIVE) as running:
        asked = await begun(running, "@kortex why?")
        await running.workspace.stop(RESPONDER, CHECKOUT, asked.thread)
        answer = await running.answer(asked)

        assert "exhausted" in answer
        assert "Stopped" in answer
        assert "And more" not in answer
        sessions = running.workspace.sessions
        await running.workspace.wait_for(
            lambda: sessions.of(CHECKOUT, asked.thread).status == "active"
        )


async def test_the_word_stop_ends_the_stream(stage: Start) -> None:
    async with stage(hanging, NATIVE) as running:
        asked = await begun(running, "@kortex why now?")
        await running.ask("stop", thread=asked.thread)

        assert "Stopped" in await running.answer(asked)


async def test_a_thread_waits_while_its_proposal_waits(stage: Start) -> None:
    script = rounds(Round(calls=(PROPOSE,)), Round(text=("Proposed.",)))
    async with stage(script, NATIVE) as running:
        asked = await running.ask("@kortex roll it back")
        await running.answer(asked)
        sessions = running.workspace.sessions
        await running.workspace.wait_for(
            lambda: sessions.of(CHECKOUT, asked.thread).status == "suspended"
        )
        await running.press(RESPONDER, await running.card(asked), "proposal:reject")
        (view,) = await running.workspace.wait_for(lambda: running.workspace.modals_of(RESPONDER))
        await running.workspace.submit(RESPONDER, str(view["id"]), {})
        await running.workspace.wait_for(
            lambda: sessions.of(CHECKOUT, asked.thread).status == "active"
        )

        assert sessions.of(CHECKOUT, asked.thread).title == "roll it back"
        refused = {call.method for call in running.workspace.calls if call.error}
        assert refused <= {"bots.info"}  # asked at the start, and not needed


@pytest.mark.parametrize(
    "refused",
    [
        {"agents.sessions.setStatus": "unknown_method"},
        {"agents.sessions.setStatus": "unknown_method", "assistant.threads.setStatus": "missing_scope"},
    ],
)  # fmt: skip
async def test_a_workspace_without_sessions_answers_normally(
    stage: Start, refused: dict[str, str]
) -> None:
    setup = Setup(request_gate=SlackRequestGate(refused=refused))
    async with stage(rounds(Round(text=(TEXT,))), NATIVE, setup=setup) as running:
        assert TEXT.strip() in await running.answered("@kortex why?")
