"""Taking a trail as it stands: one row, made with the key, over all rows before it."""

import sqlalchemy as sa
from pydantic import JsonValue

from bot.audit.seal import Digest
from bot.audit.verify import Summary, as_ranges
from bot.domain.audit import AuditEvent, AuditKind
from bot.store.audit import TrailChanged, insert_row, row_of
from bot.store.audit_reading import StoredTrail
from bot.store.database import Database
from bot.store.dialect import Connection, lock_audit, now
from bot.store.sealing import sealing_of
from bot.store.tables import audit

_CLOCK = sa.type_coerce(now(), sa.BigInteger())


async def seal(database: Database, found: Summary, *, by: str, reason: str) -> int:
    """Write the seal over what `verify` has `found`; returns how many rows it covers.

    Reads the whole trail before the transaction. Raises TrailChanged when it grew meanwhile (a bot
    still runs; nothing was sealed), StorageUnavailable.
    """
    digest, emptied, last = Digest(), list[int](), 0
    async for page in StoredTrail(database).pages():
        for row in page:
            digest.add(row)
            last = row.seq
            if row.erased_by is not None:
                emptied.append(row.seq)
    body: dict[str, JsonValue] = {
        "rows": last,
        "found": f"row {found.bad.seq}: {found.bad.reason}" if found.bad else "",
        "unkeyed": found.unkeyed,
        "emptied": as_ranges(emptied),
        "reason": reason,
    }
    event = AuditEvent(AuditKind.AUDIT_SEALED, by, body)

    async def work(connection: Connection) -> int:
        sealing = sealing_of(connection)
        await lock_audit(connection)
        newest = await connection.scalar(sa.select(sa.func.max(audit.c.seq)))
        if (newest or 0) != last:
            raise TrailChanged(
                "the audit trail grew while it was read. Nothing was sealed: stop every Kortex on "
                "this database, then try again"
            )
        at_us = (await connection.execute(sa.select(_CLOCK))).scalar_one()
        row = row_of(sealing, event, sealing.body(event.body), last + 1, at_us)
        await insert_row(connection, sealing, row._replace(prev=digest.hex()))
        return last

    return await database.transact(work, again=False)
