"""What AuditLog promises, and what holds for the rows of the audit log on both databases."""

import asyncio
import hashlib
from collections.abc import Sequence
from datetime import UTC, datetime

import orjson
import pytest
import sqlalchemy as sa
from pydantic import JsonValue
from sqlalchemy.ext.asyncio import AsyncConnection

from bot.audit.chain import GENESIS, UNKEYED, AuditKeys, ChainRow
from bot.audit.checkpoint import sign
from bot.audit.verify import Summary
from bot.domain.audit import AuditEvent, AuditKind
from bot.ports.failures import StorageUnavailable
from bot.privacy.redactor import TextRedactor
from bot.store.audit import AuditLogChanged, StoredAudit, append_audit, append_audits
from bot.store.audit_by_hand import erase, seal
from bot.store.audit_reading import StoredAuditReader, verify
from bot.store.database import Database
from bot.store.sealing import Sealing
from bot.store.tables import audit
from tests.fixtures_database import database, database_url, other
from tests.fixtures_stores import Stores, stores
from tests.held_connection import reading, writing
from tools.redactor import Redacted, RedactionFailed

__all__ = ["database", "database_url", "other", "stores"]

KEYED = Sealing(AuditKeys("1", {"1": b"a" * 32}))
REDACTOR = TextRedactor({"hunter2hunter2"}, b"k")
REDACTOR.redact_value({"its lists are read": "when first needed"})
# What someone who owns the database can do.
UNGUARD = {
    "sqlite": ("DROP TRIGGER audit_no_update", "DROP TRIGGER audit_no_delete"),
    "postgresql": ("ALTER TABLE audit DISABLE TRIGGER USER",),
}
EVENT = AuditEvent(AuditKind.TOOL_CALL, "U1", {"tool": "core__get_logs", "ok": True}, "session:1")


def keyed(key: str) -> AuditEvent:
    return AuditEvent(AuditKind.TOOL_CALL, "U1", {"key": key}, key=key)


async def rows(database: Database) -> list[sa.Row[tuple[object, ...]]]:
    async with reading(database) as connection:
        return list(await connection.execute(sa.select(audit).order_by(audit.c.seq)))


async def test_events_are_kept_in_order(stores: Stores) -> None:
    await stores.audit.append(EVENT)
    await stores.audit.append(AuditEvent(AuditKind.MODEL_CALL, "U1"))
    assert await stores.audit_kinds() == [AuditKind.TOOL_CALL, AuditKind.MODEL_CALL]


async def test_without_a_key_every_write_is_a_row(stores: Stores) -> None:
    await stores.audit.append(EVENT)
    await stores.audit.append(EVENT)
    assert len(await stores.audit_kinds()) == 2


async def test_a_repeated_key_is_one_row(stores: Stores) -> None:
    await stores.audit.append(keyed("a"))
    await stores.audit.append(keyed("b"))
    await stores.audit.append(keyed("a"))
    assert len(await stores.audit_kinds()) == 2


async def test_a_key_written_twenty_times_at_once_is_one_row(stores: Stores) -> None:
    async with asyncio.TaskGroup() as group:
        for _ in range(20):
            group.create_task(stores.audit.append(keyed("a")))
    assert len(await stores.audit_kinds()) == 1


async def test_a_row_has_an_event_a_time_an_actor_and_a_place(database: Database) -> None:
    before = await database.now()
    await StoredAudit(database).append(EVENT)
    (row,) = await rows(database)
    assert (row.seq, row.kind, row.actor, row.session_id) == (1, "tool.call", "U1", "session:1")
    assert before <= row.at <= await database.now()
    assert (row.key, row.prev, row.key_id, row.erased_by) == (None, GENESIS, UNKEYED, None)


async def test_a_body_is_canonical(database: Database) -> None:
    await StoredAudit(database).append(AuditEvent(AuditKind.TOOL_CALL, "U1", {"b": "é", "a": [1]}))
    (row,) = await rows(database)
    assert row.body == '{"a":[1],"b":"é"}'


@pytest.mark.parametrize("text", ["a\x00b", "\ud800", "x\udfff\x00"])
async def test_text_that_a_database_cannot_store_is_harmless(database: Database, text: str) -> None:
    event = AuditEvent(AuditKind.TOOL_CALL, text, {text: [text, {"in": text}]}, text, text)
    await StoredAudit(database).append(event)
    await StoredAudit(database).append(event)
    (row,) = await rows(database)
    assert list(orjson.loads(row.body))


async def test_numbers_have_no_gap_with_fifty_writers(database: Database, other: Database) -> None:
    logs = (StoredAudit(database), StoredAudit(other))
    async with asyncio.TaskGroup() as group:
        for n in range(50):
            group.create_task(logs[n % 2].append(EVENT))
    assert [row.seq for row in await rows(database)] == list(range(1, 51))


async def test_two_replicas_write_one_chain(database_url: str) -> None:
    first = await Database.open(database_url, sealing=KEYED)
    second = await Database.open(database_url, sealing=KEYED)
    async with asyncio.TaskGroup() as group:
        for n in range(40):
            group.create_task(StoredAudit((first, second)[n % 2]).append(keyed(f"{n % 30}")))
    found = await verify(StoredAuditReader(first), KEYED.keys)
    assert (found.bad, found.rows, found.unkeyed) == (None, 30, 0)
    await first.close()
    await second.close()


async def seal_unless_it_holds(database: Database, found: Summary) -> None:
    if found.bad:
        await seal(database, found, by="cli:somebody", reason="there was no key")


async def test_without_a_seal_nothing_is_written_with_a_key_after_rows_without(
    database_url: str,
) -> None:
    unkeyed = await Database.open(database_url)
    await StoredAudit(unkeyed).append(EVENT)
    await unkeyed.close()
    database = await Database.open(database_url, sealing=KEYED)
    with pytest.raises(AuditLogChanged, match="row 1 is not the last one that Kortex wrote"):
        await StoredAudit(database).append(EVENT)
    assert len(await rows(database)) == 1
    await database.close()


async def test_nothing_is_written_after_a_truncated_tail(database_url: str) -> None:
    database = await Database.open(database_url, sealing=KEYED)
    for n in range(5):
        await StoredAudit(database).append(keyed(str(n)))
    async with writing(database) as connection:
        for statement in UNGUARD[database.dialect]:
            await connection.execute(sa.text(statement))
        await connection.execute(sa.text("DELETE FROM audit WHERE seq > 3"))
    with pytest.raises(AuditLogChanged):
        await StoredAudit(database).append(EVENT)
    assert len(await rows(database)) == 3
    await database.close()


async def test_an_audit_log_is_verified_while_it_grows(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = await Database.open(database_url, sealing=KEYED)
    await StoredAudit(database).append(keyed("0"))
    audit_log = StoredAuditReader(database)
    read = StoredAuditReader._page

    async def grows(self: StoredAuditReader, after: int | None, size: int) -> Sequence[ChainRow]:
        page = await read(self, after, size)
        if (after or 0) < 20:
            await StoredAudit(database).append(keyed(str(len(await rows(database)))))
        return page

    monkeypatch.setattr(StoredAuditReader, "_page", grows)
    found = await verify(audit_log, KEYED.keys, page_rows=3)
    assert found.bad is None
    await database.close()


async def test_a_slow_verification_pauses_between_pages(database: Database) -> None:
    for n in range(7):
        await StoredAudit(database).append(keyed(str(n)))
    rested: list[float] = []

    async def rest(took_s: float) -> None:
        rested.append(took_s)

    found = await verify(StoredAuditReader(database), AuditKeys(), page_rows=3, rest=rest)

    assert (found.bad, found.rows) == (None, 7)
    assert len(rested) >= 3
    assert all(0.0 < took_s < 5.0 for took_s in rested)


async def test_only_the_newest_row_has_a_tip(database: Database) -> None:
    for n in range(4):
        await StoredAudit(database).append(keyed(str(n)))
    assert [row.tip is None for row in await rows(database)] == [True, True, True, False]
    with pytest.raises((sa.exc.ProgrammingError, sa.exc.IntegrityError), match="append-only"):
        async with writing(database) as connection:
            await connection.execute(sa.text("UPDATE audit SET tip = NULL WHERE seq = 4"))


async def test_a_key_may_be_added_later_and_rotated(database_url: str) -> None:
    rotated = AuditKeys("2", {"1": b"a" * 32, "2": b"b" * 32})
    for keys in (AuditKeys(), KEYED.keys, rotated):
        database = await Database.open(database_url, sealing=Sealing(keys))
        before = await verify(StoredAuditReader(database), keys)
        await seal_unless_it_holds(database, before)
        await StoredAudit(database).append(EVENT)
        found = await verify(StoredAuditReader(database), keys)
        assert found.bad is None
        await database.close()


async def test_a_written_event_is_redacted(database_url: str) -> None:
    database = await Database.open(database_url, sealing=Sealing(redactor=REDACTOR))
    body: dict[str, JsonValue] = {"arguments": {"query": ["password hunter2hunter2"]}, "ok": True}
    await StoredAudit(database).append(AuditEvent(AuditKind.TOOL_CALL, "U1", body))
    (row,) = await rows(database)
    assert "hunter2" not in row.body
    assert orjson.loads(row.body)["ok"] is True
    await database.close()


async def test_rows_written_together_are_each_redacted(database_url: str) -> None:
    database = await Database.open(database_url, sealing=Sealing(redactor=REDACTOR))
    bodies: list[dict[str, JsonValue]] = [
        {"tool": "core__get_logs", "count": 3},
        {"arguments": {"password": "dipPr179Gg7x"}},
        {},
        {"arguments": ["hunter2hunter2", "hunter2", None, 0.5], "ok": False},
    ]
    events = [AuditEvent(AuditKind.TOOL_CALL, "U1", body) for body in bodies]

    async with writing(database) as connection:
        await append_audits(connection, events)

    kept = [orjson.loads(row.body) for row in await rows(database)]
    assert kept == [REDACTOR.redact_value(body) for body in bodies]
    assert "dipPr179Gg7x" not in str(kept)
    assert "hunter2hunter2" not in str(kept)
    await database.close()


async def test_redaction_leaves_ids_digests_and_counts(database_url: str) -> None:
    database = await Database.open(database_url, sealing=Sealing(redactor=REDACTOR))
    body: dict[str, JsonValue] = {
        "turn": "turn:T0KORTEX01:C0CHECKOUT:1795276826.911531",
        "proposal": "p_b8704ca98906d3e8185fc533",
        "digest": hashlib.sha256(b"x").hexdigest(),
        "call": "call_9f8e7d6c5b4a",
        "input_tokens": 120,
        "bytes": 4_096,
    }
    await StoredAudit(database).append(AuditEvent(AuditKind.MODEL_CALL, "U0RESPOND1", body))
    (row,) = await rows(database)
    assert (row.actor, orjson.loads(row.body)) == ("U0RESPOND1", body)
    await database.close()


def test_redaction_leaves_checkpoints() -> None:
    lines = [
        sign(keys, n, hashlib.sha256(b"%d" % n).hexdigest(), datetime.now(UTC)).line
        for n in range(100)
        for keys in (AuditKeys(), KEYED.keys)
    ]
    assert [
        line for line in lines if REDACTOR.redact(f"keep it: `{line}`") != f"keep it: `{line}`"
    ] == []


async def test_an_event_that_cannot_be_redacted_is_not_written(database_url: str) -> None:
    class Broken:
        def redact(self, text: str) -> Redacted:
            raise RedactionFailed("broken")

        def redact_value(self, value: JsonValue) -> JsonValue:
            raise RedactionFailed("broken")

        @property
        def learned(self) -> int:
            return 0

    database = await Database.open(database_url, sealing=Sealing(redactor=Broken()))
    with pytest.raises(StorageUnavailable, match="redacted"):
        await StoredAudit(database).append(EVENT)
    assert await rows(database) == []
    await database.close()


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE audit SET actor = 'U9' WHERE seq = 3",
        "UPDATE audit SET body = '{}' WHERE seq = 3",
        "UPDATE audit SET kind = 'x' WHERE seq = 3",
        "UPDATE audit SET at = at + 1 WHERE seq = 3",
    ],
)
async def test_a_change_behind_the_triggers_is_found(database: Database, change: str) -> None:
    for n in range(5):
        await StoredAudit(database).append(keyed(str(n)))
    async with writing(database) as connection:
        for statement in UNGUARD[database.dialect]:
            await connection.execute(sa.text(statement))
        await connection.execute(sa.text(change))
    found = await verify(StoredAuditReader(database), AuditKeys())
    assert found.bad is not None
    assert found.bad.seq == 3


async def test_a_truncated_tail_is_found_by_the_stored_checkpoint(database: Database) -> None:
    for n in range(5):
        await StoredAudit(database).append(keyed(str(n)))
    audit_log = StoredAuditReader(database)
    newest = await audit_log.newest()
    assert newest is not None
    made = sign(AuditKeys(), newest.seq, newest.mac, await database.now())
    assert await audit_log.keep_checkpoint(made)
    assert not await audit_log.keep_checkpoint(made)
    async with writing(database) as connection:
        for statement in UNGUARD[database.dialect]:
            await connection.execute(sa.text(statement))
        await connection.execute(sa.text("DELETE FROM audit WHERE seq > 3"))
    found = await verify(audit_log, AuditKeys())
    assert found.bad is not None
    assert (found.bad.seq, "tail was cut" in found.bad.reason) == (4, True)


async def test_erasing_a_person_keeps_the_chain(database: Database) -> None:
    log = StoredAudit(database)
    for n in range(6):
        event = AuditEvent(AuditKind.TOOL_CALL, f"U{n % 2}", {"said": f"words {n}"}, "session:1")
        await log.append(event)
    assert await erase(database, by="admin", reason="asked for", person="U1") == 3
    assert await erase(database, by="admin", reason="again", person="U1") == 0
    found = await verify(StoredAuditReader(database), AuditKeys())
    assert (found.bad, found.erased, found.rows) == (None, 3, 7)
    entries = await StoredAuditReader(database).entries(session="session:1")
    assert [(e.actor, dict(e.body)) for e in entries if e.erased_by] == [("", {})] * 3
    assert {e.actor for e in entries if not e.erased_by} == {"U0"}


async def test_a_session_is_erased_in_batches(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bot.store.audit_by_hand.BATCH_ROWS", 2)
    for _ in range(5):
        await StoredAudit(database).append(EVENT)
    assert await erase(database, by="admin", reason="", session="session:1") == 5
    found = await verify(StoredAuditReader(database), AuditKeys())
    assert (found.bad, found.erased, found.rows) == (None, 5, 8)


async def test_a_rolled_back_row_leaves_no_gap(database: Database) -> None:
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


async def test_two_rows_of_one_transaction_are_adjacent(database: Database) -> None:
    async with writing(database) as connection:
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
        "UPDATE audit SET actor = '', salt = '', body = '', erased_by = 2 WHERE seq = 1",
        "UPDATE audit SET erased_by = NULL",
        "UPDATE audit_checkpoints SET line = ''",
        "DELETE FROM audit_checkpoints",
    ],
)
async def test_rows_can_be_neither_changed_nor_removed(database: Database, statement: str) -> None:
    await StoredAudit(database).append(EVENT)
    newest = await StoredAuditReader(database).newest()
    assert newest is not None
    made = sign(AuditKeys(), newest.seq, newest.mac, await database.now())
    await StoredAuditReader(database).keep_checkpoint(made)
    with pytest.raises((sa.exc.ProgrammingError, sa.exc.IntegrityError), match="append-only"):
        async with writing(database) as connection:
            await connection.execute(sa.text(statement))
    (row,) = await rows(database)
    assert row.actor == "U1"


REPLACE = {
    "sqlite": "INSERT OR REPLACE INTO audit (seq, at, kind, actor, session_id, body) "
    "VALUES (1, 0, 'x', 'nobody', '', '{}')",
    "postgresql": "TRUNCATE audit",
}


async def test_the_bypass_of_each_database_is_closed(database: Database) -> None:
    await StoredAudit(database).append(EVENT)
    with pytest.raises((sa.exc.ProgrammingError, sa.exc.IntegrityError), match="append-only"):
        async with writing(database) as connection:
            await connection.execute(sa.text(REPLACE[database.dialect]))
    assert len(await rows(database)) == 1
