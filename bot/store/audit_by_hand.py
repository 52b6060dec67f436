"""An operator's recorded changes of the audit log: erase content, and seal it.

Erased rows stay, and the chain holds. A seal is one row, made with the key, over all rows before
it.
"""

from collections.abc import Sequence

import sqlalchemy as sa
from pydantic import JsonValue
from sqlalchemy.ext.asyncio import AsyncConnection

from bot.audit.seal import Digest
from bot.audit.verify import Summary, as_ranges
from bot.domain.audit import AuditEvent, AuditKind
from bot.store.audit import AuditLogChanged, append_audit, insert_row, row_of
from bot.store.audit_reading import StoredAuditReader
from bot.store.database import Database
from bot.store.dialect import lock_audit, now
from bot.store.person import PersonRows
from bot.store.sealing import sealing_of
from bot.store.tables import audit

BATCH_ROWS = 1_000  # per transaction: the audit log is locked during one

_CLOCK = sa.type_coerce(now(), sa.BigInteger())


async def erase(
    database: Database,
    *,
    by: str,
    reason: str,
    person: str = "",
    session: str = "",
    named: bool = False,
) -> int:
    """Empty actor and body of a person's rows, or a session's, and record that in the audit log.

    `named`: also of rows whose body names the person. Returns the number of rows; rows about other
    erasures stay. Raises UnknownWorkspace, StorageUnavailable.
    """
    if not person and not session:
        raise ValueError("an erasure names a person or a session")
    whose = audit.c.session_id == session
    if person:
        theirs = PersonRows(person)
        await theirs.check_workspace(database)
        whose = theirs.audit_rows(named=named)
    erased = 0

    async def batch(connection: AsyncConnection) -> int:
        return await _batch(connection, whose, by, reason)

    while True:
        count = await database.transact(batch, again=False)
        erased += count
        if count < BATCH_ROWS:
            return erased


async def _batch(
    connection: AsyncConnection, whose: sa.ColumnElement[bool], by: str, reason: str
) -> int:
    found = await connection.scalars(
        sa.select(audit.c.seq)
        .where(
            whose,
            audit.c.erased_by.is_(None),
            audit.c.mac.is_not(None),
            audit.c.kind.not_in((AuditKind.AUDIT_ERASED.value, AuditKind.AUDIT_SEALED.value)),
        )
        .order_by(audit.c.seq)
        .limit(BATCH_ROWS)
    )
    seqs: Sequence[int] = found.all()
    if not seqs:
        return 0
    body: dict[str, JsonValue] = {"rows": as_ranges(seqs), "count": len(seqs), "reason": reason}
    said = await append_audit(connection, AuditEvent(AuditKind.AUDIT_ERASED, by, body))
    await connection.execute(
        audit.update()
        .where(audit.c.seq.in_(seqs))
        .values(actor="", salt="", body="", erased_by=said)
    )
    return len(seqs)


async def seal(database: Database, found: Summary, *, by: str, reason: str) -> int:
    """Write the seal over the rows that `verify` has `found`; returns the number of rows.

    Reads the whole audit log before the transaction. Raises AuditLogChanged when it grew in the meantime
    (a bot still runs; no seal was made), StorageUnavailable.
    """
    digest, emptied, last = Digest(), list[int](), 0
    async for page in StoredAuditReader(database).pages():
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

    async def work(connection: AsyncConnection) -> int:
        sealing = sealing_of(connection)
        await lock_audit(connection)
        newest = await connection.scalar(sa.select(sa.func.max(audit.c.seq)))
        if (newest or 0) != last:
            raise AuditLogChanged(
                "the audit log grew while it was read. Nothing was sealed: stop every Kortex on "
                "this database, then try again"
            )
        at_us = (await connection.execute(sa.select(_CLOCK))).scalar_one()
        row = row_of(sealing, event, sealing.body(event.body), last + 1, at_us, digest.hex())
        await insert_row(connection, sealing, row)
        return last

    return await database.transact(work, again=False)
