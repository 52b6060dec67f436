"""Measures turns on three SQLite files in turn: an empty one, one with years behind it, and a copy of
that whose log never had the rows of the audit log.

`growth_run AUDIT_ROWS ROUNDS`. The bot is in this process; Slack, the model and Loki are others.
"""

import asyncio
import os
import shutil
import sqlite3
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any, Final

import sqlalchemy as sa

from bot.app.stores import open_redactor
from bot.audit.chain import AuditKeys, ChainRow
from bot.settings.database import DatabaseSettings
from bot.slack.delivery.pacing import Rates
from bot.store.dialect import DAY_US
from bot.telemetry import logs
from tests.benchmarks.bot_run import bot_load, bot_of, settings_for
from tests.benchmarks.child import Child, child, say
from tests.fixtures_audit import chain_of
from tests.grown import fill

# So that each round is held against all that a limit can be set on.
LIMITS: Final = """
[llm.budget]
daily_usd_limit = 1000000.0
per_user_hourly_limit = 1000000
per_session_token_cap = 1000000000
"""
PACE_MS, STREAMS, TURNS = 1, 5, 40
TIMES: Final = 2  # of what `tests.grown` has: 10,000 sessions, 100,000 turns
SPENT_TODAY: Final = 60_000
WORKFLOWS: Final = 20_000  # of the last days; older ones are gone
AUDIT_CHUNK: Final = 20_000
_AUDIT_COLUMNS: Final = ", ".join("at" if name == "at_us" else name for name in ChainRow._fields)
_MARKS: Final = ", ".join("?" * len(ChainRow._fields))


def grow(path: Path, audit_rows: int) -> None:
    """Fill a file that a bot has made: all that is past, and a busy day until now."""
    engine = sa.create_engine(f"sqlite:///{path}")
    with engine.begin() as past:
        fill(past, TIMES, frozenset({"audit", "audit_checkpoints"}))
    engine.dispose()
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("PRAGMA synchronous = OFF")
        _spend(connection)
        _end_workflows(connection)
        _append(connection, audit_rows)
        connection.execute(
            "INSERT OR REPLACE INTO audit_sinks (name, seq, claimed_until) "
            "SELECT 'log', max(seq), 0 FROM audit"
        )


def _spend(connection: sqlite3.Connection) -> None:
    connection.execute(
        "INSERT INTO spending WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL "  # noqa: S608 - our own
        f"SELECT i + 1 FROM n WHERE i < {SPENT_TODAY}) "
        "SELECT 'turn:today:' || (i / 3), i % 3, 'openai', 'session:today:' || (i / 30), "
        "printf('U0BENCH%03d', i % 400), 'incident-' || (i % 50), 'bench-model', 'investigate', "
        "1000, 0, 0, 100, 1000, 1000, ? + i, 1000, printf('C0BENCH%03d', i % 50), '' FROM n",
        (time.time_ns() // 1000 // DAY_US * DAY_US,),
    )


def _end_workflows(connection: sqlite3.Connection) -> None:
    connection.execute(
        "INSERT INTO workflow_status (workflow_uuid, status, name, created_at, updated_at, priority, "  # noqa: S608
        "executor_id, inputs) WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL "
        f"SELECT i + 1 FROM n WHERE i < {WORKFLOWS}) "
        "SELECT 'turn:ended:' || i, 'SUCCESS', 'turn', ? - i, ? - i, 0, 'local', '{}' FROM n",
        (time.time_ns() // 1_000_000,) * 2,
    )


def _append(connection: sqlite3.Connection, rows: int) -> None:
    columns = ", ".join(f'"{name}"' for name in _AUDIT_COLUMNS.split(", "))
    found = connection.execute(f"SELECT {columns} FROM audit ORDER BY seq DESC LIMIT 1")  # noqa: S608
    last = ChainRow(*found.fetchone())
    for _ in range(0, rows, AUDIT_CHUNK):
        _, *chunk = chain_of(AUDIT_CHUNK, AuditKeys(), before=[last])
        last = chunk[-1]
        connection.executemany(f"INSERT INTO audit ({columns}) VALUES ({_MARKS})", chunk)  # noqa: S608


def forget_served(path: Path) -> None:
    """As a sink is that never had a row."""
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE audit_sinks SET seq = 0, claimed_until = 0")


def served(path: Path) -> int:
    """How many rows the log has."""
    with closing(sqlite3.connect(path)) as connection:
        (rows,) = connection.execute("SELECT seq FROM audit_sinks WHERE name = 'log'").fetchone()
    return int(rows)


@asynccontextmanager
async def started(
    folder: Path, model: Child, slack: Child, url: str = "", pace_ms: int = PACE_MS
) -> AsyncIterator[float]:
    """A bot on the folder's file, or on the database at `url`, with its log as in production.

    The CPU seconds that its start took.
    """
    settings = settings_for(str(folder), model, slack, pace_ms, LIMITS)
    if url:
        database = DatabaseSettings.model_validate({"url": url})
        settings = settings.model_copy(update={"database": database})
    logs.configure(open_redactor(settings))
    begun = time.process_time()
    async with bot_of(settings, slack, Rates.unlimited()):
        yield time.process_time() - begun


async def main(audit_rows: int, rounds: int) -> Mapping[str, Any]:
    """Each side's loads; A B C, C B A."""
    found: dict[str, list[Any]] = {"empty": [], "grown": [], "behind": []}
    with tempfile.TemporaryDirectory() as folder:
        files = {side: Path(folder) / side for side in found}
        async with child("model_process") as model, child("slack_process", "unlimited", 1) as slack:
            for path in files.values():
                path.mkdir()
            async with started(files["empty"], model, slack):
                await bot_load(model, slack, 1, 1, 0.0)
            begun = time.monotonic()
            for side in ("grown", "behind"):
                shutil.copyfile(files["empty"] / "kortex.db", files[side] / "kortex.db")
            await asyncio.to_thread(grow, files["grown"] / "kortex.db", audit_rows)
            filled_s = time.monotonic() - begun
            await asyncio.to_thread(
                shutil.copyfile, files["grown"] / "kortex.db", files["behind"] / "kortex.db"
            )
            for number in range(rounds):
                for side in (list(found), list(found)[::-1])[number % 2]:
                    if side == "behind":
                        forget_served(files[side] / "kortex.db")
                    async with started(files[side], model, slack) as start_s:
                        await bot_load(model, slack, 1, 1, 0.0)
                        before = served(files[side] / "kortex.db")
                        load = await bot_load(model, slack, STREAMS, TURNS, 0.0)
                        rows = served(files[side] / "kortex.db") - before
                    told_a_s = rows / load["wall_s"]
                    found[side].append({**load, "start_s": start_s, "told_a_s": told_a_s})
            size = (files["grown"] / "kortex.db").stat().st_size
    return {**found, "filled_s": filled_s, "bytes": size}


if __name__ == "__main__":
    sys.stderr = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 - until it ends
    say(asyncio.run(main(*map(int, sys.argv[1:]))))
