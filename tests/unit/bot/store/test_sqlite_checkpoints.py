"""SQLite's log: who takes it into the file, when, and that no commit waits for it."""

import sqlite3
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest
import sqlalchemy as sa

from bot.domain.audit import AuditEvent, AuditKind
from bot.store import sqlite_checkpoints
from bot.store.audit import append_audit
from bot.store.database import Database
from bot.store.dialect import Connection
from tests.fixtures_database import sqlite_url

__all__ = ["sqlite_url"]

THOUSAND_PAGES = "x" * (1_200 * 4_096)


async def append(connection: Connection, what: str) -> None:
    await append_audit(connection, AuditEvent(AuditKind.STARTED, "somebody", {"what": what}))


async def added(database: Database, what: str) -> None:
    await database.transact(partial(append, what=what))


def file_of(url: str) -> Path:
    return Path(sa.make_url(url).database or "")


def size_of(url: str) -> int:
    return file_of(url).stat().st_size


async def test_the_log_is_taken_in_after_so_many_transactions(
    sqlite_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite_checkpoints, "EACH", 3)
    database = await Database.open(sqlite_url)
    before = size_of(sqlite_url)
    with closing(
        sqlite3.connect(file_of(sqlite_url))
    ) as another:  # the last one takes it in as well
        another.execute("SELECT count(*) FROM audit").fetchone()
        try:
            await added(database, THOUSAND_PAGES)
            await added(database, "little")
            not_yet = size_of(sqlite_url)
            await added(database, "little")
        finally:
            await database.close()
        assert not_yet == before < size_of(sqlite_url)


async def test_a_log_that_grows_too_long_is_taken_in_by_its_writer(
    sqlite_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bot.store.sqlite_threads.LOG_PAGES", 1_000)
    database = await Database.open(sqlite_url)
    try:
        before = size_of(sqlite_url)
        await added(database, THOUSAND_PAGES)
        after = size_of(sqlite_url)
    finally:
        await database.close()
    assert after > before


def test_what_fails_is_left_to_the_next(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite_checkpoints, "EACH", 1)
    engine = sa.create_engine(f"sqlite:///{tmp_path}/no such folder/kortex.db")
    tried: list[None] = []
    sa.event.listen(engine, "do_connect", lambda *_: tried.append(None))
    checkpoints = sqlite_checkpoints.Checkpoints(engine)
    checkpoints.wrote()
    checkpoints.wrote()
    checkpoints.close()
    assert len(tried) == 2
