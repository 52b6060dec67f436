"""Detect a database that is an older copy of itself.

A backup is marked as one. Otherwise, on SQLite, a file beside the database names the newest row of
the audit log and the database's inode: a database without that row is an older copy; without the file,
or with another inode (the whole folder was copied or restored), it is unknown. On PostgreSQL the row names the transaction that wrote it: after reading in a dump it is another one. A
database made from it as a template has another number. A promoted standby, or a log played to an
earlier moment, shows another timeline; these two look the same.
"""

import asyncio
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from enum import Enum, auto
from errno import ENOENT
from pathlib import Path
from typing import Final

import sqlalchemy as sa
import structlog

from bot.domain.proposal import OPEN, ProposalState
from bot.ports.failures import StorageUnavailable
from bot.store.database import Database
from bot.store.dialect import now, seconds_ago
from bot.store.tables import audit, origin, proposals, replicas

log = structlog.stdlib.get_logger(__name__)

ORIGIN: Final = "origin"
_LOCK: Final = 0x6B6F7274657B
_STAYS_IDLE: Final = sa.text("SET LOCAL idle_in_transaction_session_timeout = 0")
# https://www.postgresql.org/docs/current/functions-info.html: 64 bits; a row keeps 32.
_WRITER: Final[sa.ColumnElement[str]] = sa.literal_column(
    "CAST(txid_current() % 4294967296 AS text)"
)
_WRITTEN_BY: Final[sa.ColumnElement[str]] = sa.literal_column("CAST(xmin AS text)")
# The name of a log file begins with eight digits of its timeline.
_TIMELINE: Final = sa.text("SELECT substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8)")
# A rename leaves it; `pg_upgrade` does since PostgreSQL 15.
_NUMBER: Final = sa.text("SELECT oid FROM pg_database WHERE datname = current_database()")
_MARK_BYTES: Final = 256
_TOO_LARGE: Final = 1 << 63
# Number and MAC of a row of the audit log; 0 and nothing of one without rows.
Newest = tuple[int, str]
Inode = tuple[int, int]  # and, before it, the device, whose number may change with a restart
_NONE: Final[Newest] = (0, "")
_REPLACED: Final = (
    "{name} was replaced or deleted while Kortex had it open. Put the file back or restart Kortex"
)


class CopyInDoubt(Exception):
    """It is unknown whether this is a copy, and some of its work could be sent twice."""


class CopyState(Enum):
    ITSELF = auto()
    COPY = auto()
    DOUBTFUL = auto()


@dataclass(frozen=True, slots=True)
class SeenMark:
    """The file beside a SQLite database: number and MAC of the newest row its audit log had here."""

    path: Path
    database: Path

    def inode(self) -> Inode:
        """Of the file at the database's path. Raises OSError."""
        found = self.database.stat()
        return found.st_dev, found.st_ino

    def read(self) -> tuple[Newest, bool] | None:
        """The row, and whether the mark is of this file; one of an earlier release does not say."""
        with suppress(OSError, ValueError):
            with self.path.open("rb") as kept:
                seq, mac, *inode = kept.read(_MARK_BYTES).decode("ascii").split(" ")
            if 0 <= int(seq) < _TOO_LARGE and len(inode) < 2:
                return (int(seq), mac), inode in ([], [str(self.inode()[1])])
        return None

    def write(self, newest: Newest) -> None:
        """Whole or not at all. Raises OSError."""
        fresh = self.path.with_name(self.path.name + ".new")
        with fresh.open("w", encoding="ascii") as kept:
            kept.write("{} {} {}".format(*newest, self.inode()[1]))
            kept.flush()
            os.fsync(kept.fileno())
        fresh.replace(self.path)


def mark_of(database: Path) -> SeenMark:
    return SeenMark(database.with_name(database.name + ".seen"), database)


class RestoreGuard:
    """One per process. `mark` is None on PostgreSQL. Every method raises StorageUnavailable."""

    def __init__(self, database: Database, mark: SeenMark | None) -> None:
        self._database = database
        self._mark = mark
        self._noted: Newest | None = None
        self._inode: Inode | None = None  # of the file that was settled
        self._noting = asyncio.Lock()  # an older mark must not replace a newer one
        self._is_settled = False

    @asynccontextmanager
    async def alone(self) -> AsyncIterator[None]:
        """No other replica checks or closes a copy during the block; on SQLite there is no other."""
        if self._mark is not None:
            yield
            return
        # A transaction's lock: behind a pooler, a session's would outlive this process.
        async with self._database.begin() as connection:
            await connection.execute(_STAYS_IDLE)
            await connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_LOCK)))
            yield

    async def judge(self) -> CopyState:
        """What it is. One without a row is new here, or of a release before there was one."""

        row = await self._database.first(
            sa.select(origin.c.copied_at, origin.c.timeline, *self._proof()).where(_THE_ROW)
        )
        if row is not None and row.copied_at is not None:
            return CopyState.COPY
        if self._mark is not None:
            return await self._judge_by(self._mark, is_new=row is None)
        if row is None:
            return CopyState.ITSELF
        if row.written_by != row.is_written_by:
            return CopyState.COPY
        same = row.timeline == await self._whereabouts()
        return CopyState.ITSELF if same else CopyState.DOUBTFUL

    async def _judge_by(self, mark: SeenMark, *, is_new: bool) -> CopyState:
        seen = await asyncio.to_thread(mark.read)
        if is_new and (seen is None or await self._newest() == _NONE):
            return CopyState.ITSELF  # the mark may be of one that was deleted since
        if seen is None:
            return CopyState.DOUBTFUL
        newest, is_of_this_file = seen
        if not await self._has(newest):
            return CopyState.COPY
        return CopyState.ITSELF if is_of_this_file else CopyState.DOUBTFUL

    def _proof(self) -> tuple[sa.ColumnElement[str], ...]:
        if self._mark is not None:
            return ()
        return origin.c.written_by, _WRITTEN_BY.label("is_written_by")

    @property
    def why_in_doubt(self) -> str:
        """What makes it so: the middle of a sentence."""
        if self._mark is None:
            return (
                "its server is on another timeline (a failover or a point-in-time recovery), or "
                "the database was made from another one as its template"
            )
        return f"{self._mark.path.name}, which marks it, is missing or was made for another file"

    async def at_stake(self) -> int:
        """How many proposals could still be sent."""
        pending = ProposalState.PENDING.value
        alive = sa.or_(proposals.c.state != pending, proposals.c.expires_at > seconds_ago(0))

        still = proposals.c.state.in_(state.value for state in OPEN)
        return int(await self._database.scalar(sa.select(sa.func.count()).where(still, alive)) or 0)

    async def is_served(self, lease_s: float) -> bool:
        """Whether a replica is alive on it; on SQLite always False, because this process is the
        only one.
        """
        if self._mark is not None:
            return False
        # A beat of the future is a restored row: the clock of the server that it came from was ahead.
        is_live = replicas.c.beat.between(seconds_ago(lease_s), seconds_ago(-lease_s))
        beating = sa.select(replicas.c.id).where(is_live)

        return await self._database.scalar(beating.limit(1)) is not None

    async def settle(self) -> None:
        """From now on it is itself, where it is."""
        with _logged():
            if self._mark is not None:
                self._inode = await asyncio.to_thread(self._mark.inode)
            await self._keep_mark()  # before the row: a row without a mark is in doubt
        timeline = "" if self._mark else await self._whereabouts()
        writer = sa.literal("") if self._mark else _WRITER
        await self._write({"written_by": writer, "timeline": timeline, "copied_at": None})
        self._is_settled = True

    async def mark_copied(self) -> None:
        await self._write({"copied_at": now()})

    async def note(self) -> None:
        """Keep the newest row's name, where no restored copy overwrites it. Raises nothing.

        From then on the database is refused while its file is another, and used again when it is back.
        Only of a database that was settled: a copy must not take the mark of its original.
        """
        if self._is_settled:
            with suppress(StorageUnavailable), _logged():  # the next look does
                await self._keep_mark()

    async def mark(self) -> None:
        """The same, before an order is sent: a copy from before is known as one.

        Raises StorageUnavailable, also where another file took the database's place: what Kortex
        writes to the open one is lost at its end.
        """
        if self._is_settled:
            try:
                await self._keep_mark()
            except OSError as error:
                where = error.filename or (self._mark and self._mark.path)  # no name on a full disk
                raise StorageUnavailable(
                    f"no order may be sent: {where}: {error.strerror}"
                ) from error

    async def _keep_mark(self) -> None:
        if self._mark is None:
            return
        async with self._noting:
            await self._check_in_place(self._mark)
            newest = await self._newest()
            if newest != self._noted:
                await asyncio.to_thread(self._mark.write, newest)
                self._noted = newest

    async def _check_in_place(self, mark: SeenMark) -> None:
        """Let the database be used only while its file is the one that was opened. Raises OSError."""
        try:
            is_in_place = self._inode in (None, await asyncio.to_thread(mark.inode))
        except FileNotFoundError:
            is_in_place = False
        self._database.refuse("" if is_in_place else _REPLACED.format(name=mark.database.name))
        if not is_in_place:
            raise FileNotFoundError(ENOENT, "replaced or deleted", str(mark.database))

    async def _write(self, values: dict[str, object]) -> None:
        await self._database.execute(
            self._database.insert(origin)
            .values(name=ORIGIN, **values)
            .on_conflict_do_update(index_elements=["name"], set_=values)
        )

    async def _newest(self) -> Newest:
        row = await self._database.first(_NEWEST)
        return _NONE if row is None else (row.seq, row.mac or "")

    async def _has(self, seen: Newest) -> bool:
        this = sa.select(audit.c.mac).where(audit.c.seq == seen[0])
        row = await self._database.first(this)
        return seen == _NONE if row is None else (row.mac or "") == seen[1]

    async def _whereabouts(self) -> str:
        return f"{await self._timeline()}/{await self._database.scalar(_NUMBER)}"

    async def _timeline(self) -> str:
        try:
            return str(await self._database.scalar(_TIMELINE))
        except sa.exc.ProgrammingError:  # not this role's to ask
            return ""


@contextmanager
def _logged() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        log.warning("restore_guard.mark_not_written", error=error.strerror)


_THE_ROW: Final = origin.c.name == ORIGIN
_NEWEST: Final = sa.select(audit.c.seq, audit.c.mac).order_by(audit.c.seq.desc()).limit(1)
