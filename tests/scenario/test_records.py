"""`kortex records` after a real conversation: all of it comes out, and all of it goes."""

import asyncio
import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from bot.audit.chain import AuditKeys
from bot.cli.main import main
from bot.demo.workspace.seeds import RESPONDER
from bot.store.audit_reading import StoredAuditReader, verify
from bot.store.database import Database
from tests.fakes.model_server import Call, Recorded, Round
from tests.fixtures_service import on_stage
from tests.stage import Stage, question_of, results

WORDS = "zebrafinch", "quaggaherd"  # of the first person, and of the second
PROPOSAL = {"action": "rollback-deploy", "product": "checkout", "params": {}}


def script(request: Recorded) -> Round:
    word = next(each for each in reversed(WORDS) if each in question_of(request))
    if results(request):
        return Round(text=(f"It is the {word}.",))
    return Round(calls=(Call("core__propose_action", {**PROPOSAL, "rationale": word}),))


pytestmark = pytest.mark.may_block_the_loop


def kortex(folder: Path, *arguments: str) -> int:
    """The exit code."""
    config = folder / "kortex.toml"
    config.write_text(f'[database]\nurl = "sqlite+aiosqlite:///{folder}/kortex.db"\n')
    with pytest.raises(SystemExit) as code:
        main(["records", *arguments, "--config", str(config)])
    return int(code.value.code or 0)


def holding(database: Path, word: str) -> list[str]:
    """The tables that hold it anywhere, the engine's too."""
    with closing(sqlite3.connect(database)) as opened:
        named = opened.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
        return [name for (name,) in named if _holds(opened, name, word)]


def _holds(opened: sqlite3.Connection, table: str, word: str) -> bool:
    rows = opened.execute(f'SELECT * FROM "{table}"')  # noqa: S608 - names of its own tables
    return any(word in str(value) for row in rows for value in row)


async def conversation(stage: Stage, word: str, person: str) -> str:
    """One with an answer, a vote and a proposal that was carried out; its session."""
    asked = await stage.ask(f"@kortex is it the {word}?", person)
    await stage.answer(asked)
    await stage.press(RESPONDER, await stage.card(asked), "proposal:confirm")
    await stage.card(asked, "succeeded")
    return f"session:{stage.workspace.app.team_id}:{asked.channel}:{asked.thread}"


async def test_a_conversation_and_a_person_are_exported_and_deleted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async with on_stage(tmp_path, script) as stage:
        mine, theirs = stage.newcomer(), stage.newcomer()
        session = await conversation(stage, WORDS[0], mine)
        await conversation(stage, WORDS[1], theirs)
        file = tmp_path / "kortex.db"
        before = set(holding(file, WORDS[0])), set(holding(file, theirs))
        open_ = await stage.ask(f"@kortex and again {WORDS[1]}", theirs)
        await stage.answer(open_)

        # Beside the bot that runs: what is not over is refused, the rest goes.
        refused = await asyncio.to_thread(kortex, tmp_path, *_of("--person", theirs))
        still = set(holding(file, WORDS[1]))
        exported = await asyncio.to_thread(kortex, tmp_path, "export", "--session", session)
        told = capsys.readouterr()
        deleted = await asyncio.to_thread(kortex, tmp_path, *_of("--session", session))
        await stage.press(RESPONDER, await stage.card(open_), "proposal:reject")
        await stage.workspace.settled()
        await stage.stop_service()
        stage.query("UPDATE proposals SET state = 'rejected' WHERE state = 'pending'")

    assert (refused, exported, deleted) == (2, 0, 0)
    assert "is not over yet" in told.err
    rows = [json.loads(line) for line in told.out.splitlines() if line.startswith("{")]
    assert {"sessions", "turns", "messages", "proposals", "spending", "audit"} <= {
        row["table"] for row in rows
    }
    assert {"messages", "operation_outputs", "incidents"} <= before[0] & still
    assert holding(file, WORDS[0]) == []
    assert holding(file, mine) != []  # of the person nothing was asked

    assert await asyncio.to_thread(kortex, tmp_path, *_of("--person", theirs)) == 0

    assert holding(file, WORDS[1]) == []
    assert holding(file, theirs) == []
    database = await Database.open(f"sqlite+aiosqlite:///{file}")
    summary = await verify(StoredAuditReader(database), AuditKeys(), [])
    await database.close()
    assert summary.bad is None
    assert summary.erased > 0


def _of(option: str, subject: str) -> tuple[str, ...]:
    return "delete", option, subject, "--reason", "asked for by mail"
