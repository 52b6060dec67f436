"""The trail read back: whole pages for the verifier, entries for people and sinks, checkpoints."""

from collections.abc import AsyncIterator, Sequence
from datetime import datetime
from typing import Any, cast

import sqlalchemy as sa

from bot.audit.chain import AuditKeys, ChainRow
from bot.audit.checkpoint import Checkpoint, checkpoints_in
from bot.audit.verify import Summary, Verifier
from bot.domain.audit import TrailEntry
from bot.store import json_text
from bot.store.columns import from_micros
from bot.store.connection import Connection
from bot.store.dialect import insert_into, now
from bot.store.engine import Database
from bot.store.tables import audit, audit_checkpoints

PAGE_ROWS = 5_000
# In the order of ChainRow's fields; the instant stays a number, which is what was hashed.
_AT = sa.type_coerce(audit.c.at, sa.BigInteger()).label("at_us")
_ROW = sa.select(*(_AT if name == "at_us" else audit.c[name] for name in ChainRow._fields))


class StoredTrail:
    """Reads only, but for checkpoints. Raises StorageUnavailable."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def pages(self) -> AsyncIterator[Sequence[ChainRow]]:
        """Every row there is, whatever its number, in order."""
        after: int | None = None
        while page := await self._page(after):
            yield page
            after = page[-1].seq

    async def _page(self, after: int | None) -> Sequence[ChainRow]:
        statement = _ROW.order_by(audit.c.seq).limit(PAGE_ROWS)
        if after is not None:
            statement = statement.where(audit.c.seq > after)

        async def work(connection: Connection) -> Sequence[ChainRow]:
            found = await connection.execute(statement)
            # Rows are tuples of the same fields; making others of millions would be felt.
            return cast("Sequence[ChainRow]", found.all())

        return await self._database.fetch(work)

    async def newest(self) -> ChainRow | None:
        """The last row."""
        found = await self._rows(_ROW.order_by(audit.c.seq.desc()).limit(1))
        return found[0] if found else None

    async def entries(
        self,
        *,
        after: int = 0,
        session: str = "",
        since: datetime | None = None,
        limit: int = PAGE_ROWS,
        newest: bool = False,
    ) -> Sequence[TrailEntry]:
        """What was written, in order, beyond row `after`; `newest` takes the last ones."""
        order = audit.c.seq.desc() if newest else audit.c.seq
        statement = _ROW.where(audit.c.seq > after).order_by(order).limit(limit)
        if session:
            statement = statement.where(audit.c.session_id == session)
        if since is not None:
            statement = statement.where(audit.c.at >= since)
        found = [_entry(row) for row in await self._rows(statement)]
        return found[::-1] if newest else found

    async def checkpoints(self) -> Sequence[Checkpoint]:
        """Those made here, oldest first."""

        async def work(connection: Connection) -> Sequence[Checkpoint]:
            found = await connection.scalars(
                sa.select(audit_checkpoints.c.line).order_by(audit_checkpoints.c.seq)
            )
            return [each for line in found for each in checkpoints_in(line)]

        return await self._database.fetch(work)

    async def last_checkpoint(self) -> tuple[int, datetime] | None:
        """The size and time of the newest one, and nothing when there is none."""

        async def work(connection: Connection) -> tuple[int, datetime] | None:
            found = await connection.execute(
                sa.select(audit_checkpoints.c.seq, audit_checkpoints.c.at)
                .order_by(audit_checkpoints.c.seq.desc())
                .limit(1)
            )
            row = found.first()
            return None if row is None else (row.seq, row.at)

        return await self._database.fetch(work)

    async def keep_checkpoint(self, checkpoint: Checkpoint) -> bool:
        """Store it; False when another replica made one of that size. The winner publishes."""

        async def work(connection: Connection) -> bool:
            kept = await connection.execute(
                insert_into(connection, audit_checkpoints)
                .values(seq=checkpoint.size, at=now(), line=checkpoint.line)
                .on_conflict_do_nothing(index_elements=["seq"])
                .returning(audit_checkpoints.c.seq)
            )
            return kept.first() is not None

        return await self._database.transact(work, again=False)

    async def _rows(self, statement: sa.Select[Any]) -> Sequence[ChainRow]:
        async def work(connection: Connection) -> Sequence[ChainRow]:
            return [ChainRow._make(row) for row in await connection.execute(statement)]

        return await self._database.fetch(work)


async def verify(
    trail: StoredTrail, keys: AuditKeys, witnesses: Sequence[Checkpoint] = ()
) -> Summary:
    """Read all of it; hold it against its own checkpoints and those given.

    Raises StorageUnavailable.
    """
    checkpoints = [*await trail.checkpoints(), *witnesses]
    verifier = Verifier(keys, (each.size for each in checkpoints))
    async for page in trail.pages():
        if not verifier.feed(page):
            break
    return verifier.finish(checkpoints)


def _entry(row: ChainRow) -> TrailEntry:
    return TrailEntry(
        seq=row.seq,
        at=from_micros(row.at_us),
        kind=row.kind,
        actor=row.actor,
        session_id=row.session_id,
        body=json_text.loads(row.body) if row.body else {},
        mac=row.mac or "",
        key_id=row.key_id or "",
        erased_by=row.erased_by,
    )
