"""Nothing grows with the past: no statement of the product reads all of a table that grows.

Every statement is one that the product really ran: in turns, in the jobs of the clock, in `/kortex`
commands, behind the operator's page and in the HTTP API.
"""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import aiohttp
import pytest
import sqlalchemy as sa

from bot.app.rules import engine_database
from bot.app.worker import Times
from bot.demo.workspace.seeds import CHECKOUT, RESPONDER
from tests.fakes.model_server import Call, Recorded, Round
from tests.fixtures_api import caller
from tests.fixtures_database import new_database, place_sqlite
from tests.fixtures_service import on_stage
from tests.grown import analyse, fill
from tests.plans import Explain, in_postgresql, in_sqlite, readings
from tests.stage import CONFIRM, REJECT, Stage, question_of, results
from tests.statements import Statements, noted

PROPOSE = Call(
    "core__propose_action",
    {"action": "rollback-deploy", "product": "checkout", "params": {}, "rationale": "it leaks"},
)
LOOKS = (
    Call("core__get_logs", {"product": "checkout", "time_range": "last 30m"}),
    Call("core__get_incident_history", {"query": "pool exhausted"}),
    Call("core__get_recent_deploys", {"product": "checkout"}),
)
COMMANDS = ("status", "sessions", "proposals", "budget", "providers", "tools", "quality", "audit")
SETTINGS = {
    "llm": {
        "budget": {
            "daily_usd_limit": 50.0,
            "per_user_hourly_limit": 100,
            "per_session_token_cap": 10_000_000,
        }
    },
    "retention": {"messages_days": 30, "results_days": 30},
}
TICK_S = 0.2

_NEWEST = "the newest ones, by an index in that order, which ends at the limit"
_FEW = "few rows are sorted: "
# Part of a statement that may read as it does, and why.
ALLOWED: Final[Mapping[str, str]] = {
    "FROM audit ORDER BY audit.seq DESC LIMIT": _NEWEST,
    "SELECT max(audit.seq)": _NEWEST,
    "FROM audit_checkpoints ORDER BY audit_checkpoints.seq DESC LIMIT": _NEWEST,
    "ORDER BY sessions.active_at DESC, sessions.id LIMIT": _NEWEST,
    "FROM chat_sessions ORDER BY chat_sessions.created_at DESC, chat_sessions.id LIMIT": _NEWEST,
    "FROM audit ORDER BY audit.seq LIMIT": "somebody asked to have the whole audit log verified",
    "ORDER BY proposals.created_at, proposals.id": _FEW + "one conversation's proposals",
    "ORDER BY proposals.id": _FEW + "those of one order that are open",
    "GROUP BY spending.provider, spending.model": _FEW + "one conversation's rounds",
    "UNION SELECT reservations.turn_id": _FEW + "what one person asked in this hour",
    "ORDER BY turns.started_at, turns.id LIMIT": _FEW + "turns that run",
    "ORDER BY tickets.ts, tickets.id LIMIT": _FEW + "turns that wait",
    "GROUP BY coalesce(spending.": "a report of one day, which reads that day by index",
    "AND turns.ended_at >=": "a report of some weeks, which reads those by index",
    "FROM chat_events WHERE chat_events.session_id": _FEW + "one page of a conversation's events",
    "DELETE FROM chat_events WHERE": "a batch, which is joined by reading a table of this size",
}


def script(request: Recorded) -> Round:
    """Propose where a rollback is asked for; else look at everything that is kept, then conclude."""
    looks = (PROPOSE,) if "roll" in question_of(request) else LOOKS
    return Round(text=("It leaks.",)) if results(request) else Round(calls=looks)


async def lived(running: Stage) -> None:
    """A day of a team in some seconds."""
    first = await running.ask("@kortex why?")
    await running.answer(first)
    await running.answered("@kortex and now?", thread=first.ts)
    await running.answered("@kortex catch me up", thread=first.ts)
    for verdict in (CONFIRM, REJECT):
        asked = await running.ask("@kortex roll it back")
        await running.answer(asked)
        await running.press(RESPONDER, await running.card(asked), verdict)
        await running.card(asked, "" if verdict is REJECT else "succeeded")
    for command in COMMANDS:
        await running.private_reply(
            RESPONDER, running.workspace.command(RESPONDER, CHECKOUT, command)
        )
    running.workspace.open_home(RESPONDER)
    async with aiohttp.ClientSession() as http:
        anna = await caller(running, http, "anna", "responder")
        session = await anna.open()
        await anna.ask(session, "why is checkout slow?")
        _, document = await anna.call("GET", "/api/v1/openapi.json")
        paths = [path.replace("{session}", session) for path in _read_by(document)]
        for path in paths:
            status, _ = await anna.call("GET", path)
            assert status == 200, path
    await asyncio.sleep(5 * TICK_S)  # the clock's jobs see all of it


def _read_by(document: Mapping[str, Any]) -> list[str]:
    """What is read of a session or of all; a stream has no end."""
    told = [path for path, by in document["paths"].items() if "get" in by]
    return [p for p in told if "{" not in p.replace("{session}", "") and not p.endswith("/events")]


async def statements_of(url: str, folder: Path) -> Statements:
    """All that a bot asks of that database."""
    await place_sqlite(folder / "kortex.db")
    more = {**SETTINGS, "database": {"url": url}}
    with noted() as statements:
        async with on_stage(folder, script, more, times=Times(tick_s=TICK_S)) as running:
            await lived(running)
    return statements


def _unexplained(
    connection: sa.Connection, statements: Mapping[str, Any], explain: Explain
) -> list[str]:
    found = readings(connection, statements, explain)
    told = [f"{'; '.join(bad)}: {text}" for text, bad in found]
    return [each for each in told if not any(part in each for part in ALLOWED)]


def _grown(url: str) -> sa.Engine:
    engine = sa.create_engine(engine_database(url))
    with engine.begin() as connection:
        fill(connection)
    return engine


@pytest.mark.may_block_the_loop
async def test_no_statement_reads_a_whole_growing_table_on_sqlite(tmp_path: Path) -> None:
    async with new_database("sqlite", tmp_path) as url:
        statements = await statements_of(url, tmp_path)
        # The engine of the workflows has a driver of its own.
        asked = {**statements.of("pysqlite"), **statements.of("aiosqlite")}
        engine = _grown(url)
        with engine.connect() as connection:
            found = _unexplained(connection, asked, in_sqlite)
            analyse(connection)
            found += _unexplained(connection, asked, in_sqlite)
        engine.dispose()

    assert len(asked) > 100
    assert "\n".join(found) == ""


@pytest.mark.may_block_the_loop
async def test_no_statement_reads_a_whole_growing_table_on_postgresql(tmp_path: Path) -> None:
    async with new_database("postgresql", tmp_path) as url:
        statements = await statements_of(url, tmp_path)
        engine = _grown(url)
        with engine.begin() as connection:
            analyse(connection)
            asked = statements.of("psycopg")
            found = _unexplained(connection, asked, in_postgresql)
        engine.dispose()

    assert len(asked) > 100
    assert "\n".join(found) == ""
