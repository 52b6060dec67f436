"""When models are gone, money is spent or a tool hangs, people still get a true end."""

import asyncio
import re
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from bot.chat.evidence_need import REPLACED
from bot.demo.workspace.seeds import RESPONDER
from tests.fakes.model_server import Call, Failure, Recorded, Round
from tests.fixtures_service import Start, stage
from tests.stage import STOP, results

__all__ = ["stage"]

CLOCK = Call("core__get_current_time", {})
LOGS = Call("core__get_logs", {"product": "checkout", "time_range": "last 30m"})


async def test_triage_investigates_when_every_model_is_down(stage: Start) -> None:
    def script(_request: Recorded) -> Round:
        return Round(failure=Failure(401, "bad key"))

    more = {"llm": {"fallback_providers": ["anthropic"], "triage_fallback": True}}
    async with stage(script, more) as running:
        answer = await running.answered("@kortex why is checkout slow?", RESPONDER)

    assert "no model was used · triage" in answer
    assert re.search(r"OpenAI refuses its API key \(HTTP 401 since \d\d:\d\d \w+\); Claude", answer)
    assert "⚠ not checked" not in answer.partition("without a model.")[0]
    assert "openai answered 401" in answer
    assert "anthropic answered 401" in answer
    assert "v2.4.0" in answer


async def test_an_answer_without_evidence_is_replaced_by_triage(
    stage: Start,
) -> None:
    def script(_request: Recorded) -> Round:
        return Round(text=("The database ran out of disk at 03:14.",))

    more = {"llm": {"triage_fallback": True}}
    async with stage(script, more) as running:
        asked = await running.ask("@kortex why is checkout slow?", RESPONDER)
        answer = await running.answer(asked)
        thanked = await running.answered("thanks", RESPONDER, thread=asked.thread)
        first = running.models.bodies[0]

    assert "ran out of disk" not in answer
    assert "v2.4.0" in answer
    assert REPLACED[:40] in answer
    assert first["tool_choice"] == "required"
    assert "answered without a model · triage" in answer
    assert "ran out of disk" in thanked  # asks nothing: the model's word is shown, and marked
    assert len(running.models.requests) == 2


async def test_a_spent_budget_starts_no_round_and_the_thread_says_so(stage: Start) -> None:
    def script(request: Recorded) -> Round:
        if results(request):
            return Round(text=("never said",))
        return Round(text=("I look at the clock. ",), calls=(CLOCK,), output_tokens=500_000)

    more = {
        "llm": {
            "triage_fallback": False,
            "providers": {"openai": {"model": "gpt-6.1-sol"}},
            "budget": {"daily_usd_limit": 1.0},
        }
    }
    async with stage(script, more) as running:
        asked = await running.ask("@kortex why?", RESPONDER)
        first = await running.answer(asked)
        second = await running.answered("and now?", RESPONDER, thread=asked.thread)
        report = await running.private_reply(
            RESPONDER, running.workspace.command(RESPONDER, asked.channel, "budget")
        )

        assert len(running.models.requests) == 1
        assert "I look at the clock." in first
        assert "A limit on model use is reached." in first
        assert "1 result behind *Evidence*." in first
        assert "today's budget ($1.00) is spent; a new budget starts" in second
        assert "never said" not in first + second
        assert "of $1.0000" in report
        assert running.query("SELECT count(*) FROM audit WHERE kind = 'budget.refused'") == [(2,)]


async def test_a_spent_budget_falls_back_to_triage(stage: Start) -> None:
    def script(_request: Recorded) -> Round:
        return Round(text=("I look at the clock. ",), calls=(CLOCK,), output_tokens=500_000)

    more = {
        "llm": {
            "triage_fallback": True,
            "providers": {"openai": {"model": "gpt-6.1-sol"}},
            "budget": {"daily_usd_limit": 1.0},
        }
    }
    async with stage(script, more) as running:
        answer = await running.answered("@kortex why is checkout slow?", RESPONDER)

        assert len(running.models.requests) == 1
        assert "is spent; a new budget starts" in answer
        assert "answered without a model" in answer


@asynccontextmanager
async def silent_backend() -> AsyncIterator[tuple[str, asyncio.Event, asyncio.Event]]:
    """A server that takes requests and never answers; (URL, asked, hung up)."""
    asked, gone = asyncio.Event(), asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readline()
        asked.set()
        while await reader.read(4096):
            pass
        gone.set()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", asked, gone


async def test_a_hanging_tool_is_abandoned_and_earlier_results_are_kept(stage: Start) -> None:
    def script(_request: Recorded) -> Round:
        return Round(text=("I look at the logs. ",), calls=(CLOCK, LOGS))

    async with silent_backend() as (url, reached, gone):
        none = {"kind": "none"}
        more = {"observe": {"logs": {"kind": "loki", "url": url}, "metrics": none, "traces": none}}
        async with stage(script, more) as running:
            asked = await running.ask("@kortex why?", RESPONDER)
            live = await running.live(asked, "get_current_time")
            async with asyncio.timeout(5):
                await reached.wait()

            began = time.monotonic()
            await running.press(RESPONDER, live, STOP)
            answer = await running.answer(asked)

            assert time.monotonic() - began < 1.0
            assert "Stopped by" in answer
            assert "I look at the logs." in answer
            assert len(running.models.requests) == 1
            async with asyncio.timeout(1):
                await gone.wait()
