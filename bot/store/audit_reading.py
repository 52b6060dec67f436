"""The audit log read back: whole pages for the verifier, entries for people and sinks, checkpoints."""

import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Final, cast

import orjson
import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from bot.audit.chain import AuditKeys, ChainRow
from bot.audit.checkpoint import AuditLogEnd, Checkpoint, checkpoints_in
from bot.audit.seal import newest_genuine
from bot.audit.verify import Bad, Summary, Verifier
from bot.domain.audit import AuditEntry, AuditKind
from bot.store.columns import from_micros
from bot.store.database import NOW, Database
from bot.store.dialect import MOST, Parameters, insert_into, now
from bot.store.tables import audit, audit_checkpoints, sessions
from bot.store.tenant_filter import TenantScope, of_session

Rest = Callable[[float], Awaitable[None]]

PAGE_ROWS = 5_000
# A session and the row that says so are written within moments; clocks are set back by less.
_SESSION_BEFORE_ROW = timedelta(hours=1)
# In the order of ChainRow's fields; the instant stays a number, as it was hashed.
_AT = sa.type_coerce(audit.c.at, sa.BigInteger()).label("at_us")
# As its index has it.
_IS_SEAL = audit.c.kind == sa.literal_column(f"'{AuditKind.AUDIT_SEALED.value}'")
_ROW = sa.select(*(_AT if name == "at_us" else audit.c[name] for name in ChainRow._fields))
_NEWEST = _ROW.order_by(audit.c.seq.desc()).limit(MOST)


class StoredAuditReader:
    """Reads only, but for checkpoints. Raises StorageUnavailable. `scope` bounds the entries."""

    def __init__(self, database: Database, scope: TenantScope = None) -> None:
        self._database = database
        self._scope = scope

    async def pages(self, size: int = PAGE_ROWS) -> AsyncIterator[Sequence[ChainRow]]:
        """All rows, with any number, in order."""
        after: int | None = None
        while page := await self._page(after, size):
            if page[-1].tip is None:
                yield page
            elif len(page) == 1:
                yield page
                return
            else:  # the newest row gets a successor at any moment, and loses its tip: read it alone
                page = page[:-1]
                yield page
            after = page[-1].seq

    async def _page(self, after: int | None, size: int) -> Sequence[ChainRow]:
        statement = _ROW.order_by(audit.c.seq).limit(size)
        if after is not None:
            statement = statement.where(audit.c.seq > after)

        found = await self._database.rows(statement)
        # Rows are already tuples of the same fields; copying millions would take noticeable
        # time.
        return cast("Sequence[ChainRow]", found)

    async def newest(self) -> ChainRow | None:
        found = await self.last_rows(1)
        return found[0] if found else None

    async def entries(
        self,
        *,
        after: int = 0,
        session: str = "",
        since: datetime | None = None,
        limit: int = PAGE_ROWS,
        newest: bool = False,
        of: sa.ColumnElement[bool] | None = None,
    ) -> Sequence[AuditEntry]:
        """The entries in order, after row `after`; `newest` takes the last ones.

        `of` is a condition on the table of the audit log.
        """
        order = audit.c.seq.desc() if newest else audit.c.seq
        own = of_session(audit.c.session_id, self._scope)
        statement = _ROW.where(audit.c.seq > after, own).order_by(order).limit(limit)
        if of is not None:
            statement = statement.where(of)
        if session:
            statement = statement.where(audit.c.session_id == session)
        if since is not None:
            statement = statement.where(audit.c.at >= since)
        found = [_entry(row) for row in await self._rows(statement)]
        return found[::-1] if newest else found

    async def checkpoints(self, since: int = 0) -> Sequence[Checkpoint]:
        """Those made here of so many rows or more, oldest first."""

        found = await self._database.scalars(
            sa.select(audit_checkpoints.c.line)
            .where(audit_checkpoints.c.seq >= since)
            .order_by(audit_checkpoints.c.seq)
        )
        return [each for line in found for each in checkpoints_in(str(line))]

    async def seals(self) -> Sequence[ChainRow]:
        return await self._rows(_ROW.where(_IS_SEAL).order_by(audit.c.seq))

    async def last_rows(self, count: int) -> Sequence[ChainRow]:
        found = await self._rows(_NEWEST, {"most": count})
        return found[::-1]

    async def begins_late(self) -> Bad | None:
        """Whether there are sessions from before the first row, which their rows would be."""

        async def work(connection: AsyncConnection) -> Bad | None:
            oldest = await connection.scalar(sa.select(sa.func.min(sessions.c.created_at)))
            first = await connection.scalar(sa.select(_AT).order_by(audit.c.seq).limit(1))
            if oldest is None:
                return None
            if first is None:
                return Bad(
                    1, f"the audit log is empty, and there is a session from {oldest:%Y-%m-%d}"
                )
            if from_micros(first) - oldest > _SESSION_BEFORE_ROW:
                return Bad(
                    1,
                    f"the audit log begins after the first session, which is from {oldest:%Y-%m-%d}",
                )
            return None

        return await self._database.fetch(work)

    async def end(self) -> AuditLogEnd:
        async def work(connection: AsyncConnection) -> AuditLogEnd:
            newest = (await connection.execute(_NEWEST, {"most": 1})).first()
            made = (await connection.execute(_LAST_CHECKPOINT)).first()
            return AuditLogEnd(
                None if newest is None else ChainRow._make(newest),
                None if made is None else (made.seq, made.at),
                (await connection.execute(NOW)).scalar_one(),
            )

        return await self._database.fetch(work)

    async def keep_checkpoint(self, checkpoint: Checkpoint) -> bool:
        async def work(connection: AsyncConnection) -> bool:
            kept = await connection.execute(
                insert_into(connection, audit_checkpoints)
                .values(seq=checkpoint.size, at=now(), line=checkpoint.line)
                .on_conflict_do_nothing(index_elements=["seq"])
                .returning(audit_checkpoints.c.seq)
            )
            return kept.first() is not None

        return await self._database.transact(work, again=False)

    async def _rows(
        self, statement: sa.Select[Any], given: Parameters | None = None
    ) -> Sequence[ChainRow]:
        return [ChainRow._make(row) for row in await self._database.rows(statement, given)]


_LAST_CHECKPOINT: Final = (
    sa.select(audit_checkpoints.c.seq, audit_checkpoints.c.at)
    .order_by(audit_checkpoints.c.seq.desc())
    .limit(1)
)


async def verify(
    audit_log: StoredAuditReader,
    keys: AuditKeys,
    witnesses: Sequence[Checkpoint] = (),
    *,
    page_rows: int = PAGE_ROWS,
    rest: Rest | None = None,
) -> Summary:
    """Read the whole audit log; compare it with its own checkpoints and the given ones.

    A page is checked without a pause: some 8 µs a row. `rest` gets the seconds of each page before
    the next one. Raises StorageUnavailable.
    """
    checkpoints = [*await audit_log.checkpoints(), *witnesses]
    seal = newest_genuine(await audit_log.seals(), keys)
    verifier = Verifier(keys, (each.size for each in checkpoints), seal=seal)
    begun = time.monotonic()
    async for page in audit_log.pages(page_rows):
        if not verifier.feed(page):
            break
        if rest is not None:
            await rest(time.monotonic() - begun)
        begun = time.monotonic()
    return await _whole(audit_log, verifier.finish(checkpoints), seal)


async def verify_end(
    audit_log: StoredAuditReader,
    keys: AuditKeys,
    witnesses: Sequence[Checkpoint] = (),
    rows: int = PAGE_ROWS,
) -> Summary:
    """As `verify`, of the newest rows alone: what a start can afford, however long the audit log is.

    Raises StorageUnavailable.
    """
    found = await audit_log.last_rows(rows)
    # Those of fewer rows say nothing of these.
    made_here = await audit_log.checkpoints(found[0].seq if found else 0)
    checkpoints = [*made_here, *witnesses]
    seal = newest_genuine(await audit_log.seals(), keys)
    first = found[0] if len(found) == rows else None
    if seal is not None and first is not None and first.seq < seal.seq:
        found = [row for row in found if row.seq >= seal.seq]
        first = seal
    verifier = Verifier(keys, (each.size for each in checkpoints), seal=seal, first=first)
    verifier.feed(found)
    return await _whole(audit_log, verifier.finish(checkpoints), seal)


async def _whole(audit_log: StoredAuditReader, found: Summary, seal: ChainRow | None) -> Summary:
    """An audit log that holds in itself may still lack its beginning."""
    return found if found.bad or seal else replace(found, bad=await audit_log.begins_late())


def _entry(row: ChainRow) -> AuditEntry:
    return AuditEntry(
        seq=row.seq,
        at=from_micros(row.at_us),
        kind=row.kind,
        actor=row.actor,
        session_id=row.session_id,
        body=orjson.loads(row.body) if row.body else {},
        mac=row.mac or "",
        key_id=row.key_id or "",
        erased_by=row.erased_by,
    )
