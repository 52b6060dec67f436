"""The append-only audit log: gapless numbers, one writer at a time, in the writer's transaction.

Every row is sealed into the chain of `bot.audit.chain` as it is written. Reading it back,
verifying, erasing and sealing what a chain cannot follow live in `audit_reading`, `audit_erasure`
and `audit_seal`.
"""

import secrets
from collections.abc import Sequence

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from bot.audit.chain import GENESIS, SALT_BYTES, ChainRow, hash_of_content, mac_of
from bot.domain.audit import AuditEvent
from bot.ports.failures import StorageUnavailable
from bot.store.columns import clean
from bot.store.database import Database
from bot.store.dialect import Work, lock_audit, now
from bot.store.sealing import Sealing, sealing_of
from bot.store.step_rows import waiting_rows
from bot.store.tables import audit

_LINKS = (audit.c.seq, audit.c.mac, audit.c.key_id, audit.c.tip)
_NEWEST = sa.select(*_LINKS).order_by(audit.c.seq.desc()).limit(1).subquery()
_CLOCK = sa.select(sa.type_coerce(now(), sa.BigInteger()).label("us")).subquery()
_WRITTEN = audit.alias()
# The clock and the newest row, once for each of those keys that has a row, and once where none has.
_BEFORE = sa.select(
    _CLOCK.c.us,
    *(_NEWEST.c[column.name] for column in _LINKS),
    _WRITTEN.c.key,
    _WRITTEN.c.seq.label("written"),
).select_from(
    _CLOCK.outerjoin(_NEWEST, sa.true()).outerjoin(
        _WRITTEN, _WRITTEN.c.key.in_(sa.bindparam("keys", expanding=True))
    )
)
_COLUMNS = [name for name in ChainRow._fields if name not in ("at_us", "erased_by")]
_INSERT = audit.insert().values(
    {name: sa.bindparam(name) for name in _COLUMNS}
    | {"at": sa.bindparam("at_us", type_=sa.BigInteger())}
)


# The fields that show the edition of the newest row: its MAC and all its inputs.
_WHOLE = sa.select(
    *(
        sa.type_coerce(audit.c.at, sa.BigInteger()).label(name)
        if name == "at_us"
        else audit.c[name]
        for name in ChainRow._fields
    )
).where(audit.c.seq == sa.bindparam("seq"))


class AuditLogChanged(StorageUnavailable):
    """The audit log is not as it was left: nothing may be written after it, so nothing is done."""


async def append_audit(connection: AsyncConnection, event: AuditEvent) -> int:
    """Write one row in the caller's transaction and return its number; see `append_audits`."""
    return (await append_audits(connection, [event]))[0]


async def append_audits(connection: AsyncConnection, events: Sequence[AuditEvent]) -> Sequence[int]:
    """Write rows in the caller's transaction and return their numbers; a repeated `key` is one row.

    The last statements of the transaction: the audit log's lock is held until the end, and one taken
    after every row lock cannot deadlock. Raises StorageUnavailable.
    """
    if not events:
        return ()
    sealing = sealing_of(connection)
    bodies = sealing.bodies([event.body for event in events])
    keys = [clean(event.key) or None for event in events]
    await lock_audit(connection)
    # A statement of its own after the lock: under READ COMMITTED it sees the row before.
    before = (await connection.execute(_BEFORE, {"keys": [key for key in keys if key]})).all()
    at_us, seq, mac, key_id, tip, *_ = before[0]
    written: dict[str | None, int] = {row.key: row.written for row in before if row.key}
    numbers, rows = [], []
    last, prev = seq or 0, mac or GENESIS
    for event, body, key in zip(events, bodies, keys, strict=True):
        if key is None or key not in written:
            last += 1
            rows.append(sealing.sealed(row_of(sealing, event, body, last, at_us, prev)))
            prev = rows[-1].mac
            written[key] = last
        numbers.append(written[key])
    if rows and seq is not None and not sealing.is_tip(seq, mac, key_id, tip):
        await _is_of_first_edition(connection, sealing, seq)
    if rows:
        await _insert(connection, rows)
    return numbers


def row_of(
    sealing: Sealing, event: AuditEvent, body: str, seq: int, at_us: int, prev: str
) -> ChainRow:
    """The event as a row that is not sealed yet; `prev` is the MAC of the row before."""
    actor = clean(sealing.line(event.actor))
    salt = secrets.token_hex(SALT_BYTES)
    return ChainRow(
        seq=seq,
        at_us=at_us,
        kind=event.kind.value,
        session_id=clean(event.session_id),
        key=clean(event.key) or None,
        actor=actor,
        salt=salt,
        body=body,
        body_hash=hash_of_content(salt, actor, body),
        prev=prev,
        mac="",
        key_id=sealing.keys.current,
    )


async def insert_row(connection: AsyncConnection, sealing: Sealing, row: ChainRow) -> None:
    """Seal and write it; the database takes the tip from the row before."""
    await _insert(connection, [sealing.sealed(row)])


async def _insert(connection: AsyncConnection, rows: Sequence[ChainRow]) -> None:
    values = [row._asdict() for row in rows]
    names = ("at_us", *_COLUMNS)
    given = [{name: each[name] for name in names} for each in values]
    await connection.execute(_INSERT, given)


async def _is_of_first_edition(connection: AsyncConnection, sealing: Sealing, seq: int) -> None:
    """Rows that the release before wrote have no tip. Raises AuditLogChanged for any other."""
    found = ChainRow._make((await connection.execute(_WHOLE, {"seq": seq})).one())
    key = sealing.keys.for_rows(1).get(found.key_id) if found.key_id else None
    try:
        fits = key is not None and found.mac == mac_of(key, found)
    except (TypeError, ValueError, AttributeError):  # a column holds another type
        fits = False
    if not fits:
        raise AuditLogChanged(
            f"the audit log was changed from outside: row {seq} is not the last one that "
            "Kortex wrote. Nothing was done. Stop Kortex, keep a copy of the database and run "
            "`kortex audit verify`"
        )


async def write_telling(database: Database, work: Work[Sequence[AuditEvent]]) -> None:
    """Idempotent `work`, and the events it returns, with the record of the step under way.

    At once outside of any. Raises StorageUnavailable.
    """

    async def alone(connection: AsyncConnection) -> None:
        await append_audits(connection, await work(connection))

    rows = waiting_rows()
    if rows is None:
        await database.transact(alone)
    else:
        rows.telling.append(work)


class StoredAudit:
    """`bot.ports.audit_log.AuditLog` in the database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def append(self, event: AuditEvent) -> None:
        """Write one row; a repeated `key` is one row. Raises StorageUnavailable.

        Only an event with a key is tried again when the connection is lost: another might be
        written twice.
        """

        async def work(connection: AsyncConnection) -> None:
            await append_audit(connection, event)

        await self._database.transact(work, again=bool(event.key))

    async def append_with_step(self, event: AuditEvent) -> None:
        """With the record of the step under way; at once outside of any, or without a key."""
        rows = waiting_rows()
        if rows is None or not event.key:
            await self.append(event)
        else:
            rows.events.append(event)
