"""Erasing a person's or a session's content from the trail: the rows stay, and the chain holds."""

from collections.abc import Sequence

import sqlalchemy as sa
from pydantic import JsonValue

from bot.audit.verify import as_ranges
from bot.domain.audit import AuditEvent, AuditKind
from bot.store.audit import append_audit
from bot.store.database import Database
from bot.store.dialect import Connection
from bot.store.tables import audit

BATCH_ROWS = 1_000  # per transaction: the trail is locked meanwhile


async def erase(
    database: Database, *, by: str, reason: str, person: str = "", session: str = ""
) -> int:
    """Empty actor and body of a person's rows, or a session's, and say so in the trail.

    Returns how many rows; what was said about other erasures stays. Raises StorageUnavailable.
    """
    if not person and not session:
        raise ValueError("an erasure names a person or a session")
    whose = audit.c.actor == person if person else audit.c.session_id == session
    erased = 0

    async def batch(connection: Connection) -> int:
        return await _batch(connection, whose, by, reason)

    while True:
        count = await database.transact(batch, again=False)
        erased += count
        if count < BATCH_ROWS:
            return erased


async def _batch(
    connection: Connection, whose: sa.ColumnElement[bool], by: str, reason: str
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
