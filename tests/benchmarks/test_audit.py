"""How fast the audit log is verified, against hashing the same bytes; and what a row costs to write."""

import asyncio
import hashlib
import sqlite3
import time
from collections.abc import Coroutine
from pathlib import Path

import pytest

from bot.audit.verify import Verifier
from bot.domain.audit import AuditEvent, AuditKind
from bot.store.audit import StoredAudit
from bot.store.audit_reading import StoredAuditReader, verify
from bot.store.database import Database
from bot.store.sealing import Sealing
from tests.benchmarks.figures import ratios, show, spread
from tests.fixtures_audit import KEYS, chain_of
from tests.fixtures_database import sqlite_url

__all__ = ["sqlite_url"]

pytestmark = pytest.mark.benchmark

ROWS, ROUNDS, WRITES = 200_000, 5, 1_000
COLUMNS = (
    "seq, at, kind, session_id, key, actor, salt, body, body_hash, prev, mac, key_id, erased_by"
)


def _seconds(work: object) -> float:
    started = time.perf_counter()
    assert callable(work)
    work()
    return time.perf_counter() - started


def test_verifying_rows_in_memory() -> None:
    """The floor is one SHA-256 per row over the bytes that the verifier has to hash twice."""
    rows = chain_of(ROWS)
    texts = ["\0".join((row.salt, row.actor, row.body)).encode() for row in rows]

    def floor() -> None:
        for text in texts:
            hashlib.sha256(text).hexdigest()

    def ours() -> None:
        verifier = Verifier(KEYS)
        verifier.feed(rows)
        assert verifier.finish().bad is None

    ours_s, floor_s = ([_seconds(work) for _ in range(ROUNDS)] for work in (ours, floor))
    show(
        f"verify, {ROWS:,} rows in memory (target 100,000 rows/s)",
        rows_per_s=spread([ROWS / each for each in ours_s], 0),
        ours_over_hashing_alone=spread(ratios(ours_s, floor_s)),
    )


async def test_verifying_a_database(sqlite_url: str) -> None:
    """The floor is reading the same rows through the standard library and throwing them away."""
    path = sqlite_url.split("///")[1]
    rows = chain_of(ROWS)
    connection = sqlite3.connect(path)
    marks = ", ".join("?" * 13)
    connection.executemany(f"INSERT INTO audit ({COLUMNS}) VALUES ({marks})", rows)  # noqa: S608
    connection.commit()
    database = await Database.open(sqlite_url)

    def floor() -> None:
        for _ in connection.execute(f"SELECT {COLUMNS} FROM audit ORDER BY seq"):  # noqa: S608
            pass

    ours_s, floor_s, cpu_s = [], [], []
    for _ in range(ROUNDS):
        floor_s.append(_seconds(floor))
        started, cpu = time.perf_counter(), time.process_time()
        found = await verify(StoredAuditReader(database), KEYS)
        ours_s.append(time.perf_counter() - started)
        cpu_s.append(time.process_time() - cpu)
        assert (found.bad, found.rows) == (None, ROWS)
    await database.close()
    connection.close()
    show(
        f"verify, {ROWS:,} rows of a SQLite file (target 100,000 rows/s)",
        rows_per_s=spread([ROWS / each for each in ours_s], 0),
        rows_per_cpu_s=spread([ROWS / each for each in cpu_s], 0),
        ours_over_reading_alone=spread(ratios(ours_s, floor_s)),
    )


async def test_appending_rows(sqlite_url: str, tmp_path: Path) -> None:
    """The floor is one durable transaction per row of the same size, unsealed."""
    plain = sqlite3.connect(tmp_path / "plain.db", isolation_level=None)
    plain.execute("PRAGMA journal_mode = WAL")
    plain.execute("PRAGMA synchronous = FULL")
    plain.execute("CREATE TABLE rows (seq INTEGER PRIMARY KEY, body TEXT)")
    body = "x" * 600

    def floor() -> None:
        for n in range(WRITES):
            plain.execute("INSERT INTO rows (body) VALUES (?)", (f"{n}{body}",))

    floor_s = _seconds(floor)
    plain.close()
    database = await Database.open(sqlite_url, sealing=Sealing(KEYS))
    log = StoredAudit(database)

    def append(n: int) -> Coroutine[None, None, None]:
        return log.append(AuditEvent(AuditKind.TOOL_CALL, "U1", {"n": n, "tool": "core__get_logs"}))

    started, cpu = time.perf_counter(), time.process_time()
    for n in range(WRITES):
        await append(n)
    ours_s, ours_cpu_s = time.perf_counter() - started, time.process_time() - cpu
    started = time.perf_counter()
    async with asyncio.TaskGroup() as writers:
        for n in range(WRITES):
            writers.create_task(append(n))
    at_once_s = time.perf_counter() - started
    await database.close()
    show(
        f"append, {WRITES:,} rows, each its own transaction on SQLite",
        rows_per_s=f"{WRITES / ours_s:.0f}",
        rows_per_s_of_writers_who_wait=f"{WRITES / at_once_s:.0f}",
        cpu_us_per_row=f"{ours_cpu_s / WRITES * 1e6:.0f}",
        ours_over_a_plain_insert=f"{ours_s / floor_s:.2f}",
    )
