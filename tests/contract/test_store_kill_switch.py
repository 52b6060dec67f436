"""The kill switch on both databases: shared, kept, and never opened by a failure."""

from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from bot.domain.audit import AuditKind
from bot.ports.failures import StorageUnavailable
from bot.store.database import Database
from bot.store.kill_switch import StoredKillSwitch
from tests.fixtures_database import database, database_url, other
from tests.fixtures_stores import stored

__all__ = ["database", "database_url", "other"]

NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
SHUT = {
    "sqlite": ("PRAGMA query_only = ON",),
    "postgresql": (
        "CREATE FUNCTION shut() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION "
        "'cannot execute INSERT in a read-only transaction' USING ERRCODE = '25006'; END $$",
        "CREATE TRIGGER shut BEFORE INSERT ON switches FOR EACH ROW EXECUTE FUNCTION shut()",
    ),
}
OPEN = {
    "sqlite": ("PRAGMA query_only = OFF",),
    "postgresql": ("DROP TRIGGER shut ON switches", "DROP FUNCTION shut()"),
}


def switch(database: Database, marker: Path | None = None) -> StoredKillSwitch:
    return StoredKillSwitch(database, marker, lambda: NOW)


@asynccontextmanager
async def read_only(database: Database) -> AsyncIterator[None]:
    """The database takes no writes. The pragma stays with SQLite's one connection that is in use."""

    def run(statements: tuple[str, ...]) -> Coroutine[Any, Any, None]:
        async def work(connection: AsyncConnection) -> None:
            for statement in statements:
                await connection.execute(sa.text(statement))

        return database.fetch(work)

    await run(SHUT[database.dialect])
    yield
    await run(OPEN[database.dialect])


async def test_the_switch_starts_off(database: Database) -> None:
    assert not (await switch(database).state()).on


async def test_a_freeze_applies_on_every_replica_and_is_audited(
    database: Database, other: Database
) -> None:
    assert await switch(database).freeze("U1", "the sale")
    state = await switch(other).state()
    assert (state.on, state.by, state.reason, state.at) == (True, "U1", "the sale", NOW)
    await switch(other).lift("U2")
    assert not (await switch(database).state()).on
    assert await stored(database).audit_kinds() == [AuditKind.FREEZE_CHANGED] * 2


async def test_a_freeze_applies_at_once_when_nothing_can_be_written(
    database: Database, other: Database, tmp_path: Path
) -> None:
    here = switch(database, tmp_path / "freeze")
    async with read_only(database):
        assert not await here.freeze("U1", "now")
        assert (await here.state()).on
        assert not await here.sync()
    assert await here.sync()
    assert (await switch(other).state()).reason == "now"
    assert not (tmp_path / "freeze").exists()
    assert await stored(database).audit_kinds() == [AuditKind.FREEZE_CHANGED]


async def test_a_freeze_that_could_not_be_stored_survives_a_restart(
    database: Database, tmp_path: Path
) -> None:
    async with read_only(database):
        await switch(database, tmp_path / "freeze").freeze("U1", "now")
        restarted = switch(database, tmp_path / "freeze")
        await restarted.sync()
        state = await restarted.state()
    assert (state.on, state.by, state.reason, state.at) == (True, "U1", "now", NOW)


@pytest.mark.parametrize("content", ["", "{", '{"by": 1}'])
async def test_a_file_created_by_hand_freezes(
    database: Database, other: Database, tmp_path: Path, content: str
) -> None:
    (tmp_path / "freeze").write_text(content)
    assert await switch(database, tmp_path / "freeze").sync()
    assert (await switch(other).state()).reason == "the file freeze is there"


async def test_a_lift_that_cannot_be_stored_lifts_nothing(
    database: Database, tmp_path: Path
) -> None:
    here = switch(database, tmp_path / "freeze")
    await here.freeze("U1", "")
    async with read_only(database):
        with pytest.raises(StorageUnavailable):
            await here.lift("U2")
        assert (await here.state()).on
    assert (await here.state()).on


async def test_a_lift_cancels_a_freeze_that_is_not_stored_yet(
    database: Database, tmp_path: Path
) -> None:
    here = switch(database, tmp_path / "freeze")
    async with read_only(database):
        await here.freeze("U1", "")
    await here.lift("U2")
    assert await here.sync()
    assert not (await here.state()).on


async def test_a_marker_that_cannot_be_written_still_freezes(
    database: Database, tmp_path: Path
) -> None:
    here = switch(database, tmp_path / "no such folder" / "freeze")
    async with read_only(database):
        assert not await here.freeze("U1", "")
        assert (await here.state()).on
