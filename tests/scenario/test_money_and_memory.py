"""Limits, frugal mode and closed conversations as people in the channel meet them."""

import sqlite3
from contextlib import closing

import aiohttp

from bot.app.worker import Times
from bot.demo.workspace.seeds import CHECKOUT, DIRECT, RESPONDER
from tests.fakes.model_server import Call, Recorded, Round
from tests.fixtures_service import INGEST_TOKEN, Start, stage
from tests.stage import Stage

__all__ = ["stage"]

LOGS = Call("core__get_logs", {"product": "checkout", "time_range": "last 30m"})


def _models_asked(running: Stage) -> list[str]:
    return [body["model"] for body in running.models.bodies]


async def test_frugal_mode_asks_the_fast_model_first_and_the_full_one_when_needed(
    stage: Start,
) -> None:
    def script(asked: Recorded) -> Round:
        if asked.body["model"] == "small-model":
            return Round(text=("<need_more", "_context/>"))
        return Round(text=("The pool is exhausted.",))

    more = {"llm": {"mode": "frugal", "providers": {"openai": {"fast_model": "small-model"}}}}
    async with stage(script, more) as running:
        answer = await running.answered("@kortex why?")

    assert _models_asked(running) == ["small-model", "test-model"]
    assert "The pool is exhausted." in answer
    assert "it asked for a stronger one; the full model answers" in answer
    assert "need_more_context" not in answer


async def test_a_spent_daily_budget_falls_back_to_triage_and_the_thread_says_why(
    stage: Start,
) -> None:
    more = {
        "llm": {
            "fallback_providers": ["triage"],
            "budget": {"daily_usd_limit": 0.001},
        }
    }
    async with stage([Round(text=("never",))], more) as running:
        answer = await running.answered("@kortex why is checkout slow?")

    assert "$0.0000 of today's budget ($0.0010) is spent" in answer
    assert "no model was used" in answer
    assert running.models.requests == []


async def test_admins_get_a_budget_alert_and_can_list_spending(stage: Start) -> None:
    budget = {"daily_usd_limit": 2.0, "alert_at_pct": 1}
    more = {"llm": {"budget": budget, "show_cost": False}}
    dear = Round(text=("It was the pool.",), input_tokens=3000)
    async with stage([dear], more, times=Times(tick_s=0.1)) as running:
        await running.answered("@kortex why?")
        told = await running.workspace.wait_for(
            lambda: [m for m in running.workspace.messages(DIRECT) if "model budget" in m.text], 20
        )
        await running.workspace.command(RESPONDER, CHECKOUT, "budget")
        async with aiohttp.ClientSession() as session:
            url = f"http://127.0.0.1:{running.service.http_port}/api/v1/budget"
            async with session.get(url) as refused:
                assert refused.status == 401
            bearer = {"Authorization": f"Bearer {INGEST_TOKEN}"}
            async with session.get(url, headers=bearer) as answer:
                found = await answer.json()

    assert len(told) == 1
    assert found["used_usd_micros"] >= 20_000
    assert [row["name"] for row in found["by"]["user"]] == [RESPONDER]


async def test_each_person_has_an_hourly_limit_of_model_answers(stage: Start) -> None:
    more = {
        "llm": {"fallback_providers": ["triage"], "budget": {"per_user_hourly_limit": 1}},
    }
    rounds = [Round(calls=(LOGS,)), Round(text=("From the model.",)), Round(text=("never",))]
    async with stage(rounds, more) as running:
        first = await running.answered("@kortex why?")
        second = await running.answered("@kortex and now?")

    assert "From the model." in first
    assert "you asked 1 question this hour" in second
    assert "no model was used" in second
    assert len(running.models.requests) == 2


async def test_a_message_in_a_closed_conversation_starts_fresh_and_says_so(
    stage: Start,
) -> None:
    async with stage([Round(text=("It was the pool.",)), Round(text=("Fresh eyes.",))]) as running:
        asked = await running.ask("@kortex why?")
        await running.answer(asked)
        _age_sessions(running)
        answer = await running.answered("and now?", thread=asked.thread)

    assert "Fresh eyes." in answer
    assert "closed after 7 days without a message, so I start fresh" in answer
    assert "It was the pool." not in str(running.models.bodies[-1]["messages"])


def _age_sessions(running: Stage) -> None:
    """Everything so far happened eight days ago."""
    days_us = 8 * 86_400_000_000
    with closing(sqlite3.connect(running.folder / "kortex.db", timeout=10)) as database:
        database.execute("UPDATE sessions SET active_at = active_at - ?", (days_us,))
        database.execute("UPDATE turns SET started_at = started_at - ?", (days_us,))
        database.commit()
