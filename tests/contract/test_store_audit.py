"""What AuditLog promises, and what holds for the rows of the trail on both databases."""

import asyncio

import orjson
import pytest
import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from bot.domain.audit import AuditEvent, AuditKind
from bot.ports import StorageUnavailable
from bot.store.audit import StoredAudit, append_audit
from bot.store.engine import Database
from bot.store.tables import audit
from tests.fixtures_database import database, database_url, other
from tests.fixtures_stores import Stores, stores

__all__ = ["database", "database_url", "other", "stores"]

EVENT = AuditEvent(AuditKind.TOOL_CALL, "U1", {"tool": "core__get_logs", "ok": True}, "session:1")


def keyed(key: str) -> AuditEvent:
    return AuditEvent(AuditKind.TOOL_CALL, "U1", {"key": key}, key=key)


async def rows(database: Database) -> list[sa.Row[tuple[object, ...]]]:
    async with database.read() as connection:
        return list(await connection.execute(sa.select(audit).order_by(audit.c.seq)))


async def test_events_are_kept_in_order(stores: Stores) -> None:
    await stores.audit.append(EVENT)
    await stores.audit.append(AuditEvent(AuditKind.MODEL_CALL, "U1"))
    assert await stores.trail() == [AuditKind.TOOL_CALL, AuditKind.MODEL_CALL]


async def test_without_a_key_every_write_is_a_row(stores: Stores) -> None:
    await stores.audit.append(EVENT)
    await stores.audit.append(EVENT)
    assert len(await stores.trail()) == 2


async def test_a_repeated_key_is_one_row(stores: Stores) -> None:
    await stores.audit.append(keyed("a"))
    await stores.audit.append(keyed("b"))
    await stores.audit.append(keyed("a"))
    assert len(await stores.trail()) == 2


async def test_a_key_written_twenty_times_at_once_is_one_row(stores: Stores) -> None:
    async with asyncio.TaskGroup() as group:
        for _ in range(20):
            group.create_task(stores.audit.append(keyed("a")))
    assert len(await stores.trail()) == 1


async def test_a_row_says_what_when_who_and_where(database: Database) -> None:
    before = await database.now()
    await StoredAudit(database).append(EVENT)
    (row,) = await rows(database)
    assert (row.seq, row.kind, row.actor, row.session_id) == (1, "tool.call", "U1", "session:1")
    assert before <= row.at <= await database.now()
    assert (row.key, row.prev, row.mac, row.key_id) == (None, None, None, None)


async def test_a_body_is_canonical(database: Database) -> None:
    await StoredAudit(database).append(AuditEvent(AuditKind.TOOL_CALL, "U1", {"b": "é", "a": [1]}))
    (row,) = await rows(database)
    assert row.body == '{"a":[1],"b":"é"}'


@pytest.mark.parametrize("text", ["a\x00b", "\ud800", "x\udfff\x00"])
async def test_text_that_a_database_cannot_store_does_no_harm(
    database: Database, text: str
) -> None:
    event = AuditEvent(AuditKind.TOOL_CALL, text, {text: [text, {"in": text}]}, text, text)
    await StoredAudit(database).append(event)
    await StoredAudit(database).append(event)
    (row,) = await rows(database)
    assert list(orjson.loads(row.body))


async def test_numbers_have_no_gap_under_fifty_writers(database: Database, other: Database) -> None:
    logs = (StoredAudit(database), StoredAudit(other))
    async with asyncio.TaskGroup() as group:
        for n in range(50):
            group.create_task(logs[n % 2].append(EVENT))
    assert [row.seq for row in await rows(database)] == list(range(1, 51))


async def test_a_row_is_undone_with_its_transaction_and_leaves_no_gap(database: Database) -> None:
    class Undo(Exception):
        pass

    async def undone(connection: AsyncConnection) -> None:
        await append_audit(connection, EVENT)
        raise Undo

    with pytest.raises(Undo):
        await database.transact(undone)
    assert await rows(database) == []
    await StoredAudit(database).append(EVENT)
    assert [row.seq for row in await rows(database)] == [1]


async def test_two_rows_of_one_transaction_follow_each_other(database: Database) -> None:
    async with database.write() as connection:
        await append_audit(connection, keyed("a"))
        await append_audit(connection, keyed("b"))
    assert [(row.seq, row.key) for row in await rows(database)] == [(1, "a"), (2, "b")]


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE audit SET actor = 'nobody'",
        "UPDATE audit SET mac = 'forged' WHERE seq = 1",
        "DELETE FROM audit",
        "DELETE FROM audit WHERE seq = 1",
    ],
)
async def test_rows_can_be_neither_changed_nor_removed(database: Database, statement: str) -> None:
    await StoredAudit(database).append(EVENT)
    with pytest.raises((StorageUnavailable, sa.exc.IntegrityError), match="append-only"):
        async with database.write() as connection:
            await connection.execute(sa.text(statement))
    (row,) = await rows(database)
    assert row.actor == "U1"


REPLACE = {
    "sqlite": "INSERT OR REPLACE INTO audit (seq, at, kind, actor, session_id, body) "
    "VALUES (1, 0, 'x', 'nobody', '', '{}')",
    "postgresql": "TRUNCATE audit",
}


async def test_the_back_door_of_each_database_is_closed(database: Database) -> None:
    await StoredAudit(database).append(EVENT)
    with pytest.raises((StorageUnavailable, sa.exc.IntegrityError), match="append-only"):
        async with database.write() as connection:
            await connection.execute(sa.text(REPLACE[database.dialect]))
    assert len(await rows(database)) == 1
