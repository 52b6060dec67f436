"""Whether a database knows itself from a copy, and what ends in a copy, on both databases."""

import asyncio
import shutil
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from bot.app.rules import engine_database
from bot.app.start import restore_check
from bot.audit.chain import AuditKeys
from bot.domain.audit import AuditEvent, AuditKind
from bot.domain.ids import ProposalId
from bot.domain.proposal import OPEN, ProposalState
from bot.engine.records import EngineRecords
from bot.ports.failures import DatabaseReplaced, StorageUnavailable
from bot.ports.proposals import WatchKind
from bot.store.alert_tables import alert_threads
from bot.store.alerts import StoredAlerts
from bot.store.audit import StoredAudit
from bot.store.audit_reading import StoredAuditReader, verify
from bot.store.backup import BackupRefused, write_backup
from bot.store.database import Database
from bot.store.proposals import StoredProposals
from bot.store.replicas import Replicas
from bot.store.restore_guard import CopyInDoubt, CopyState, RestoreGuard, SeenMark, mark_of
from bot.store.restored import UNKNOWN, close_restored
from bot.store.tables import origin as table
from bot.store.tables import proposals, replicas
from bot.store.undelivered import StoredUndelivered
from bot.store.watches import StoredWatches
from tests.contract.test_store_alerts import alert, file
from tests.contract.test_store_undelivered import final
from tests.fixtures_database import (
    database,
    database_url,
    other,
    postgres_server,
    postgres_url,
    sqlite_url,
)
from tests.fixtures_turn import ASK
from tests.held_connection import reading, writing
from tests.slack_ingress import order_of_its_own

__all__ = ["database", "database_url", "other", "postgres_url", "sqlite_url"]

S = ProposalState


@pytest.fixture
def origin(database: Database, database_url: str) -> RestoreGuard:
    path = Path(database_url.partition(":///")[2])
    return RestoreGuard(database, mark_of(path) if database.dialect == "sqlite" else None)


async def decided(database: Database, name: str) -> None:
    await StoredAudit(database).append(AuditEvent(AuditKind.STARTED, "test", {"as": name}))


async def test_a_database_recognises_itself_from_the_first_start(
    database: Database, other: Database, origin: RestoreGuard
) -> None:
    assert await origin.judge() is CopyState.ITSELF  # of a release before there was a row
    await origin.settle()
    await decided(database, "first")
    await origin.note()

    assert await origin.judge() is CopyState.ITSELF
    assert await RestoreGuard(other, origin._mark).judge() is CopyState.ITSELF


async def test_a_declared_copy_is_a_copy_until_it_is_settled(origin: RestoreGuard) -> None:
    await origin.settle()
    await origin.mark_copied()
    assert await origin.judge() is CopyState.COPY

    await origin.settle()

    assert await origin.judge() is CopyState.ITSELF


async def test_a_pending_proposal_is_at_stake_until_it_expires(
    database: Database, origin: RestoreGuard
) -> None:
    store, event = StoredProposals(database), AuditEvent(AuditKind.PROPOSAL_CREATED, "U1")
    now = await database.now()
    for name, state, left in [("old", S.PENDING, False), ("new", S.PENDING, True)] + [
        (str(state), state, False) for state in S if state is not S.PENDING
    ]:
        row = order_of_its_own(name, state=state, expires_at=now)
        await store.create(row, event)
        await _live(database, name, minutes=5 if left else -5)

    assert await origin.at_stake() == 3  # new, confirmed, dispatching


async def _live(database: Database, name: str, minutes: int) -> None:
    async with writing(database) as connection:
        this = proposals.update().where(proposals.c.id == name)
        moved = sa.type_coerce(proposals.c.expires_at, sa.BigInteger()) + minutes * 60_000_000
        await connection.execute(this.values(expires_at=sa.type_coerce(moved, sa.BigInteger())))


@pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)
async def test_a_database_loaded_from_a_dump_is_a_copy(
    database: Database, origin: RestoreGuard
) -> None:
    await origin.settle()
    async with writing(database) as connection:
        (row,) = (await connection.execute(sa.select(table))).all()
        await connection.execute(table.delete())
        await connection.execute(table.insert().values(row._asdict()))

    assert await origin.judge() is CopyState.COPY


@pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)
async def test_a_rewritten_table_is_not_a_copy_and_another_timeline_is_in_doubt(
    database: Database, origin: RestoreGuard, monkeypatch: pytest.MonkeyPatch
) -> None:
    await origin.settle()
    async with reading(database) as connection:  # in no transaction
        await connection.execute(sa.text("VACUUM (FULL, FREEZE) origin"))
    assert await origin.judge() is CopyState.ITSELF

    async def other_timeline(_self: RestoreGuard) -> str:
        return "00000002"

    monkeypatch.setattr(RestoreGuard, "_timeline", other_timeline)

    assert await origin.judge() is CopyState.DOUBTFUL
    assert not await origin.is_served(60.0)
    await Replicas(database).beat("one that was there before")
    assert await origin.is_served(60.0)


@pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)
@pytest.mark.parametrize("ahead_s", [-3600, 3600, 10 * 365 * 86_400])
async def test_a_restored_beat_of_another_clock_is_not_a_running_replica(
    database: Database, origin: RestoreGuard, ahead_s: int
) -> None:
    await Replicas(database).beat("one of the original")
    async with writing(database) as connection:
        moved = sa.type_coerce(replicas.c.beat, sa.BigInteger()) + ahead_s * 1_000_000
        await connection.execute(
            replicas.update().values(beat=sa.type_coerce(moved, sa.BigInteger()))
        )

    assert not await origin.is_served(60.0)


async def test_a_database_cloned_from_a_template_is_in_doubt(postgres_url: str) -> None:
    database = await Database.open(postgres_url)
    await RestoreGuard(database, None).settle()
    await database.close()
    server, name = postgres_server(), postgres_url.rpartition("/")[2].partition("?")[0]
    await server.execute(f"CREATE DATABASE {name}_clone TEMPLATE {name}")
    clone = await Database.open(server.url(f"{name}_clone"))

    copy_state = await RestoreGuard(clone, None).judge()
    await clone.close()
    await server.execute(f"DROP DATABASE {name}_clone")

    assert copy_state is CopyState.DOUBTFUL


async def test_an_older_file_in_the_databases_place_is_a_copy(sqlite_url: str) -> None:
    path = Path(sqlite_url.partition(":///")[2])
    database = await Database.open(sqlite_url)
    origin = RestoreGuard(database, mark_of(path))
    await asyncio.to_thread(mark_of(path).write, (7, "of one that was deleted"))
    assert await origin.judge() is CopyState.ITSELF
    await origin.settle()
    older = path.with_name("older.db")
    await asyncio.to_thread(shutil.copyfile, path, older)  # the log is empty: nothing was written
    async with reading(database) as connection:
        await connection.exec_driver_sql(f"VACUUM INTO '{older}.whole'")
    await decided(database, "since then")
    await origin.note()
    await database.close()

    copy = await Database.open(f"sqlite+aiosqlite:///{older}.whole")
    put_back = RestoreGuard(copy, mark_of(path))

    assert await put_back.judge() is CopyState.COPY
    await decided(copy, "another row under the same number")
    assert await put_back.judge() is CopyState.COPY
    assert await RestoreGuard(copy, mark_of(older)).judge() is CopyState.DOUBTFUL  # elsewhere
    async with writing(copy) as connection:  # as one of a release before there was a row
        await connection.execute(table.delete())
    assert await put_back.judge() is CopyState.COPY
    assert await RestoreGuard(copy, mark_of(older)).judge() is CopyState.ITSELF
    await copy.close()


@pytest.mark.parametrize(
    "kept",
    [b"", b"\xff" * 80, b"1 2 3", b"0  1 2", b"9" * 5000, b"9" * 80 + b" x", b"-1 x", b"0  \xb9"],
)
async def test_an_unreadable_mark_leaves_doubt(
    sqlite_url: str, tmp_path: Path, kept: bytes
) -> None:
    database = await Database.open(sqlite_url)
    mark = SeenMark(tmp_path / "seen", Path(sqlite_url.partition(":///")[2]))
    await RestoreGuard(database, mark).settle()
    mark.path.write_bytes(kept)

    copy_state = await RestoreGuard(database, mark).judge()

    assert copy_state is not CopyState.ITSELF
    await database.close()


@pytest.mark.parametrize(
    ("mark", "copy_state"),
    [
        ("{seq} {mac} {inode}", CopyState.ITSELF),
        ("{seq} {mac}", CopyState.ITSELF),  # of an earlier release
        ("{seq} {mac} 7", CopyState.DOUBTFUL),
        ("{seq} {mac} ", CopyState.DOUBTFUL),
        ("99 {mac} {inode}", CopyState.COPY),
        ("99 {mac} 7", CopyState.COPY),
        ("{seq} another {inode}", CopyState.COPY),
    ],
)
async def test_a_mark_of_another_file_is_in_doubt_and_one_of_a_lost_row_a_copy(
    sqlite_url: str, mark: str, copy_state: CopyState
) -> None:
    path = Path(sqlite_url.partition(":///")[2])
    database = await Database.open(sqlite_url)
    guard = RestoreGuard(database, mark_of(path))
    await decided(database, "first")
    await guard.settle()
    seen = mark_of(path).path
    seq, mac, inode = (await asyncio.to_thread(seen.read_text)).split(" ")

    await asyncio.to_thread(seen.write_text, mark.format(seq=seq, mac=mac, inode=inode))

    assert await guard.judge() is copy_state
    await database.close()


async def test_a_copied_folder_is_in_doubt_and_a_renamed_one_is_itself(
    sqlite_url: str, tmp_path: Path
) -> None:
    path = Path(sqlite_url.partition(":///")[2])
    database = await Database.open(sqlite_url)
    await RestoreGuard(database, mark_of(path)).settle()
    await database.close()
    home, elsewhere, renamed = (tmp_path / name for name in ("home", "copy", "renamed"))
    home.mkdir()
    for each in (path, mark_of(path).path):
        each.rename(home / each.name)
    await asyncio.to_thread(shutil.copytree, home, elsewhere)
    home.rename(renamed)

    for folder, copy_state in ((elsewhere, CopyState.DOUBTFUL), (renamed, CopyState.ITSELF)):
        opened = await Database.open(f"sqlite:///{folder / path.name}")
        guard = RestoreGuard(opened, mark_of(folder / path.name))
        assert await guard.judge() is copy_state
        await guard.settle()  # as its operator says
        assert await guard.judge() is CopyState.ITSELF
        await opened.close()


async def test_a_copy_from_just_before_a_dispatch_is_recognised(sqlite_url: str) -> None:
    path = Path(sqlite_url.partition(":///")[2])
    database = await Database.open(sqlite_url)
    origin = RestoreGuard(database, mark_of(path))
    store = StoredProposals(database, origin.mark)
    event = AuditEvent(AuditKind.DISPATCH_INTENT, "U1")
    await store.create(order_of_its_own("sent", state=S.CONFIRMED), event)
    await origin.settle()
    async with reading(database) as connection:
        await connection.exec_driver_sql(f"VACUUM INTO '{path}.before'")

    assert (await store.begin_dispatch(ProposalId("sent"), event)).is_ours
    await database.close()

    copy = await Database.open(f"sqlite:///{path}.before")
    assert await RestoreGuard(copy, mark_of(path)).judge() is CopyState.COPY
    await copy.close()


def _is_in_the_way(path: Path) -> None:
    path.with_name(f"{path.name}.seen.new").mkdir()


def _has_no_room(path: Path) -> None:
    path.with_name(f"{path.name}.seen.new").symlink_to("/dev/full")


def _leads_nowhere(path: Path) -> None:
    path.with_name(f"{path.name}.seen.new").symlink_to(path.parent / "none" / "seen")


def _is_no_file(path: Path) -> None:
    path.with_name(f"{path.name}.seen").unlink()
    path.with_name(f"{path.name}.seen").mkdir()


@pytest.mark.parametrize("broken", [_is_in_the_way, _has_no_room, _leads_nowhere, _is_no_file])
async def test_nothing_is_dispatched_without_a_mark(
    sqlite_url: str, broken: Callable[[Path], None]
) -> None:
    path = Path(sqlite_url.partition(":///")[2])
    database = await Database.open(sqlite_url)
    origin = RestoreGuard(database, mark_of(path))
    store = StoredProposals(database, origin.mark)
    event = AuditEvent(AuditKind.DISPATCH_INTENT, "U1")
    await store.create(order_of_its_own("sent", state=S.CONFIRMED), event)
    await origin.settle()
    await decided(database, "a guard's verdict")
    await asyncio.to_thread(broken, path)

    with pytest.raises(StorageUnavailable, match=f"{path.name}.seen"):
        await store.begin_dispatch(ProposalId("sent"), event)
    await origin.note()  # only logs it
    assert await origin.judge() is not CopyState.COPY
    kept = await store.get(ProposalId("sent"))
    assert kept is not None
    assert kept.state is S.CONFIRMED
    for name in (f"{path.name}.seen.new", f"{path.name}.seen"):
        await asyncio.to_thread(_removed, path.with_name(name))
    assert (await store.begin_dispatch(ProposalId("sent"), event)).is_ours
    assert await RestoreGuard(database, mark_of(path)).judge() is CopyState.ITSELF
    await database.close()


def _removed(path: Path) -> None:
    if path.is_dir():
        path.rmdir()
    else:
        path.unlink(missing_ok=True)


async def test_nothing_is_dispatched_from_a_replaced_file(sqlite_url: str) -> None:
    path = Path(sqlite_url.partition(":///")[2])
    database = await Database.open(sqlite_url)
    origin = RestoreGuard(database, mark_of(path))
    store = StoredProposals(database, origin.mark)
    event = AuditEvent(AuditKind.DISPATCH_INTENT, "U1")
    await store.create(order_of_its_own("sent", state=S.CONFIRMED), event)
    await origin.settle()
    await asyncio.to_thread(path.rename, path.with_name("moved.db"))
    for replace in (path.touch, path.unlink):
        await asyncio.to_thread(replace)
        with pytest.raises(StorageUnavailable, match=path.name):
            await store.begin_dispatch(ProposalId("sent"), event)

    await asyncio.to_thread(path.with_name("moved.db").rename, path)
    await origin.note()
    kept = await store.get(ProposalId("sent"))
    assert kept is not None
    assert kept.state is S.CONFIRMED
    await database.close()


async def nothing(_connection: AsyncConnection) -> None:
    pass


async def transaction(database: Database) -> None:
    async with database.begin():
        pass


async def read(database: Database) -> None:
    async with database.read():
        pass


@pytest.mark.parametrize(
    "use",
    [
        transaction,
        read,
        Database.ping,
        Database.now,
        lambda database: database.transact(nothing),
        lambda database: database.fetch(nothing),
    ],
)
async def test_a_replaced_file_is_neither_read_nor_written(
    sqlite_url: str, use: Callable[[Database], Awaitable[object]]
) -> None:
    path = Path(sqlite_url.partition(":///")[2])
    database = await Database.open(sqlite_url)
    origin = RestoreGuard(database, mark_of(path))
    await origin.settle()
    await asyncio.to_thread(path.rename, path.with_name("moved.db"))

    for replace in (path.touch, path.unlink):
        await asyncio.to_thread(replace)
        await origin.note()
        with pytest.raises(DatabaseReplaced, match=f"{path.name} was replaced or deleted"):
            await use(database)

    await asyncio.to_thread(path.with_name("moved.db").rename, path)
    await origin.note()
    await use(database)
    await database.close()


async def test_a_copy_ends_open_work_and_shows_nothing_new(
    database: Database, origin: RestoreGuard
) -> None:
    store, event = StoredProposals(database), AuditEvent(AuditKind.PROPOSAL_CREATED, "U1")
    for state in S:
        await store.create(order_of_its_own(state.value, state=state), event)
    await store.create(order_of_its_own("unseen", card_ts=None), event)
    await StoredUndelivered(database).keep(ASK, final())
    await StoredWatches(database).begin(ProposalId("dispatching"), WatchKind.PROGRESS, 0, 3600)
    await file(StoredAlerts(database), alert("checkout is slow"))

    closed = await close_restored(database)

    rows = {row.id: row for row in await _all(database, proposals)}
    ended = {name for name in rows if rows[name].outcome == UNKNOWN.text}
    assert ended == {state.value for state in OPEN} | {"unseen"}
    assert {rows[name].state for name in ended} == {"unknown"}
    assert rows["unseen"].card_shown == rows["unseen"].card_wanted
    assert rows["pending"].card_shown < rows["pending"].card_wanted
    assert closed.proposals == len(ended)
    assert await StoredUndelivered(database).claim(10, 3600.0) == []
    assert await StoredWatches(database).claim(10, 60) == []
    assert [each.shown - each.wanted for each in await _all(database, alert_threads)] == [0]
    assert [each.investigation for each in await _all(database, alert_threads)] == ["left_out"]
    assert (await close_restored(database)).proposals == 0
    assert (await verify(StoredAuditReader(database), AuditKeys(), [])).bad is None


async def _all(database: Database, rows: sa.Table) -> list[sa.Row[tuple[object, ...]]]:
    async with reading(database) as connection:
        return list((await connection.execute(sa.select(rows))).all())


async def test_a_backup_is_a_copy_of_mode_600_that_overwrites_nothing(sqlite_url: str) -> None:
    path = Path(sqlite_url.partition(":///")[2])
    database = await Database.open(sqlite_url)
    await decided(database, "in the log, not in the file yet")
    target = path.with_name("backup of today.db")

    async with writing(database):  # someone is about to write
        size = await asyncio.to_thread(write_backup, path, target)

    assert (size, target.stat().st_mode & 0o777) == (target.stat().st_size, 0o600)
    assert [p.name for p in path.parent.iterdir() if target.name in p.name] == [target.name]
    before = target.read_bytes()
    assert before[18:20] == b"\x01\x01"  # no log beside it: https://www.sqlite.org/fileformat.html
    with pytest.raises(BackupRefused, match="already exists"):
        await asyncio.to_thread(write_backup, path, target)
    with pytest.raises(BackupRefused, match="cannot be written"):
        await asyncio.to_thread(write_backup, path, path.parent / "nowhere" / "x.db")
    assert target.read_bytes() == before
    copy = await Database.open(f"sqlite+aiosqlite:///{target}")
    assert await RestoreGuard(copy, mark_of(target)).judge() is CopyState.COPY
    assert len(await StoredAuditReader(copy).entries(after=0, limit=10)) == 1
    await copy.close()
    await database.close()


@pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)
async def test_one_of_the_replicas_that_start_on_a_copy_closes_it(
    database: Database, other: Database, database_url: str
) -> None:
    first = RestoreGuard(database, None)
    await first.settle()
    await first.mark_copied()
    engine = EngineRecords(engine_database(database_url))

    async with asyncio.TaskGroup() as both:
        for each in (database, other):
            both.create_task(restore_check(RestoreGuard(each, None), each, engine, 2.0)())

    kinds = [entry.kind for entry in await StoredAuditReader(database).entries(after=0, limit=10)]
    assert kinds == ["database.restored"]
    await first.mark_copied()
    await Replicas(database).beat("one that serves")
    with pytest.raises(CopyInDoubt, match="Stop all"):
        await restore_check(first, database, engine, 60.0)()
