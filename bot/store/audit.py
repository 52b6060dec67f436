"""The append-only trail: gapless numbers, one writer at a time, in the writer's transaction.

Every row is sealed into the chain of `bot.audit.chain` as it is written. Reading it back,
verifying and erasing live in `audit_reading` and `audit_erasure`.
"""

import secrets
from typing import cast

import sqlalchemy as sa

from bot.audit.chain import GENESIS, SALT_BYTES, ChainRow, hash_of_content, mac_of
from bot.domain.audit import AuditEvent
from bot.store.columns import clean
from bot.store.connection import Connection
from bot.store.dialect import lock_audit, now
from bot.store.engine import Database
from bot.store.sealing import Sealing, sealing_of
from bot.store.tables import audit

_NEWEST = sa.select(audit.c.seq, audit.c.mac).order_by(audit.c.seq.desc()).limit(1).subquery()
# The clock, the newest row, and the row of that key if there is one.
_BEFORE = sa.select(
    sa.type_coerce(now(), sa.BigInteger()),
    sa.select(_NEWEST.c.seq).scalar_subquery(),
    sa.select(_NEWEST.c.mac).scalar_subquery(),
    sa.select(audit.c.seq).where(audit.c.key == sa.bindparam("key")).scalar_subquery(),
)
_COLUMNS = [name for name in ChainRow._fields if name not in ("at_us", "erased_by")]
_INSERT = audit.insert().values(
    {name: sa.bindparam(name) for name in _COLUMNS}
    | {"at": sa.bindparam("at_us", type_=sa.BigInteger())}
)


async def append_audit(connection: Connection, event: AuditEvent) -> int:
    """Write one row in the caller's transaction and return its number; a repeated `key` is one row.

    The last statement of its transaction: the trail's lock is held until the end, and one taken
    after every row lock cannot deadlock. Raises StorageUnavailable.
    """
    sealing = sealing_of(connection)
    body = sealing.body(event.body)
    actor = clean(sealing.line(event.actor))
    key = clean(event.key) or None
    await lock_audit(connection)
    # A statement of its own after the lock: under READ COMMITTED it sees the row before.
    before = await connection.execute(_BEFORE, {"key": key})
    at_us, seq, prev, written = before.one()
    if written is not None:
        return cast("int", written)
    salt = secrets.token_hex(SALT_BYTES)
    row = ChainRow(
        seq=(seq or 0) + 1,
        at_us=at_us,
        kind=event.kind.value,
        session_id=clean(event.session_id),
        key=key,
        actor=actor,
        salt=salt,
        body=body,
        body_hash=hash_of_content(salt, actor, body),
        prev=prev or GENESIS,
        mac="",
        key_id=sealing.keys.current,
    )
    await connection.execute(_INSERT, _values(row, sealing))
    return row.seq


def _values(row: ChainRow, sealing: Sealing) -> dict[str, object]:
    sealed = row._replace(mac=mac_of(sealing.row_key, row))
    return {name: value for name, value in sealed._asdict().items() if name != "erased_by"}


class StoredAudit:
    """`bot.ports.AuditLog` in the database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def append(self, event: AuditEvent) -> None:
        """Write one row; a repeated `key` is one row. Raises StorageUnavailable.

        Only an event with a key is tried again when the connection is lost: another might be
        written twice.
        """

        async def work(connection: Connection) -> None:
            await append_audit(connection, event)

        await self._database.transact(work, again=bool(event.key))
