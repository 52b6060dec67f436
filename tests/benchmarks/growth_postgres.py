"""Measures turns on two PostgreSQL databases in turn: an empty one, and one with years behind it.

`growth_postgres AUDIT_ROWS ROUNDS`. The bot is in this process; PostgreSQL, Slack, the model and Loki
are others.
"""

import asyncio
import os
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import psycopg
import sqlalchemy as sa
from psycopg.rows import tuple_row

from bot.audit.chain import AuditKeys, ChainRow
from bot.store.address import addressed
from bot.store.dialect import DAY_US
from tests.benchmarks.bot_run import bot_load
from tests.benchmarks.child import child, say
from tests.benchmarks.growth_run import (
    AUDIT_CHUNK,
    SPENT_TODAY,
    STREAMS,
    TIMES,
    TURNS,
    WORKFLOWS,
    started,
)
from tests.fixtures_audit import chain_of
from tests.fixtures_database import plain_address, postgres_server
from tests.grown import fill

_COLUMNS: Final = ", ".join(f'"{"at" if name == "at_us" else name}"' for name in ChainRow._fields)


def grow(url: str, audit_rows: int) -> None:
    """Fill a database that a bot has served: all that is past, and a busy day until now."""
    engine = sa.create_engine(addressed(url))
    with engine.begin() as past:
        fill(past, TIMES, frozenset({"audit", "audit_checkpoints"}))
    engine.dispose()
    with psycopg.connect(plain_address(url)) as connection:
        connection.execute(
            "INSERT INTO spending SELECT 'turn:today:' || (i / 3), i %% 3, 'openai', "
            "'session:today:' || (i / 30), 'U0BENCH' || to_char(i %% 400, 'FM000'), 'incident-' || (i %% 50), "
            "'bench-model', 'investigate', 1000, 0, 0, 100, 1000, 1000, %s + i, 1000, "
            "'C0BENCH' || to_char(i %% 50, 'FM000'), '' FROM generate_series(1, %s) AS n(i)",
            (time.time_ns() // 1000 // DAY_US * DAY_US, SPENT_TODAY),
        )
        connection.execute(
            "INSERT INTO dbos.workflow_status (workflow_uuid, status, name, created_at, updated_at, "
            "priority, executor_id, inputs) SELECT 'turn:ended:' || i, 'SUCCESS', 'turn', %(now)s - i, "
            "%(now)s - i, 0, 'local', '{}' FROM generate_series(1, %(count)s) AS n(i)",
            {"now": time.time_ns() // 1_000_000, "count": WORKFLOWS},
        )
        _append(connection, audit_rows)
        connection.execute(
            "INSERT INTO audit_sinks (name, seq, claimed_until) SELECT 'log', max(seq), 0 FROM audit "
            "ON CONFLICT (name) DO UPDATE SET seq = excluded.seq, claimed_until = 0"
        )
    with psycopg.connect(plain_address(url), autocommit=True) as connection:
        # As years of it are: what a bulk load leaves to be done is done.
        connection.execute("VACUUM ANALYZE")
        connection.execute("CHECKPOINT")


def _append(connection: psycopg.Connection[Any], rows: int) -> None:
    cursor = connection.cursor(row_factory=tuple_row)
    newest = cursor.execute(f"SELECT {_COLUMNS} FROM audit ORDER BY seq DESC LIMIT 1")  # noqa: S608
    last = ChainRow(*newest.fetchone() or ())
    for _ in range(0, rows, AUDIT_CHUNK):
        _, *chunk = chain_of(AUDIT_CHUNK, AuditKeys(), before=[last])
        last = chunk[-1]
        with cursor.copy(f"COPY audit ({_COLUMNS}) FROM STDIN") as copy:
            for row in chunk:
                copy.write_row(row)


async def main(audit_rows: int, rounds: int) -> Mapping[str, Any]:
    """Each side's loads; A B, B A."""
    found: dict[str, list[Any]] = {"empty": [], "grown": []}
    server = postgres_server()
    async with (
        child("model_process") as model,
        child("slack_process", "unlimited", 1) as slack,
        server.new_database(migrated=True) as empty,
        server.new_database(migrated=True) as grown,
    ):
        urls = {"empty": empty, "grown": grown}
        with tempfile.TemporaryDirectory() as folder:
            async with started(Path(folder), model, slack, grown):
                await bot_load(model, slack, 1, 1, 0.0)
            await asyncio.to_thread(grow, grown, audit_rows)
            for number in range(rounds):
                for side in (list(found), list(found)[::-1])[number % 2]:
                    async with started(Path(folder), model, slack, urls[side]) as start_s:
                        await bot_load(model, slack, 1, 1, 0.0)
                        load = await bot_load(model, slack, STREAMS, TURNS, 0.0)
                    found[side].append({**load, "start_s": start_s})
    return found


if __name__ == "__main__":
    sys.stderr = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 - until it ends
    say(asyncio.run(main(*map(int, sys.argv[1:]))))
