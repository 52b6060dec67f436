"""`bot.ports.proposals.KillSwitch`: a row for all replicas, and what holds while the row cannot be written.

Freezing takes effect in this process at once, and is written to a marker file and to the database
as soon as each can be written. Lifting is the other way round: first the database, then the rest.
"""

import asyncio
import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

import sqlalchemy as sa
import structlog
from pydantic import TypeAdapter, ValidationError
from sqlalchemy.ext.asyncio import AsyncConnection

from bot.domain.audit import AuditEvent, AuditKind
from bot.domain.freeze import Freeze
from bot.ports.failures import StorageUnavailable
from bot.store.audit import append_audit
from bot.store.database import Database
from bot.store.dialect import insert_into, now
from bot.store.tables import switches

log = structlog.stdlib.get_logger(__name__)

# The answer to a slash command is due within 3 s, and people's roles are looked up before.
STORE_TIMEOUT_S = 0.8
_FREEZE = "freeze"


@dataclass(frozen=True, slots=True)
class _Wish:
    by: str
    reason: str
    at: datetime


_WISH = TypeAdapter(_Wish)


def _utc_now() -> datetime:
    return datetime.now(UTC)


class StoredKillSwitch:
    """One per process. `marker` is a file that keeps a freeze the database could not take.

    A marker made by hand freezes as well, at the next `sync`.
    """

    def __init__(
        self, database: Database, marker: Path | None, clock: Callable[[], datetime] = _utc_now
    ) -> None:
        self._database = database
        self._marker = marker
        self._clock = clock
        self._held: _Wish | None = None
        self._storing = asyncio.Lock()

    async def freeze(self, by: str, reason: str) -> bool:
        self._held = _Wish(by, reason, self._clock())
        await asyncio.to_thread(_write, self._marker, self._held)
        return await self.sync()

    async def lift(self, by: str) -> None:
        async with self._storing:
            await self._store(by, "", self._clock(), on=False)
            await asyncio.to_thread(_remove, self._marker)
            self._held = None

    async def state(self) -> Freeze:
        if (held := self._held) is not None:
            return Freeze(True, self._clock(), held.by, held.reason, held.at)
        wanted = sa.select(sa.literal(_FREEZE).label("name")).subquery()
        joined = wanted.outerjoin(switches, switches.c.name == wanted.c.name)

        [row] = await self._database.rows(
            sa.select(now().label("read_at"), switches).select_from(joined)
        )
        if not row.is_on:
            return Freeze(False, row.read_at)
        return Freeze(True, row.read_at, row.by_user, row.reason, row.at)

    async def sync(self) -> bool:
        """Store the pending holds and marks; False when some remain."""
        async with self._storing:
            if self._held is None:
                self._held = await asyncio.to_thread(_read, self._marker, self._clock)
            if (held := self._held) is None:
                return True
            try:
                async with asyncio.timeout(STORE_TIMEOUT_S):
                    await self._store(held.by, held.reason, held.at, on=True)
            except (StorageUnavailable, TimeoutError):
                log.error("freeze.not_stored", by=held.by)
                return False
            if self._held is held:
                await asyncio.to_thread(_remove, self._marker)
                self._held = None
            return True

    async def _store(self, by: str, reason: str, at: datetime, *, on: bool) -> None:
        values = {"is_on": on, "by_user": by, "reason": reason, "at": at}
        event = AuditEvent(
            AuditKind.FREEZE_CHANGED,
            by,
            {"frozen": on, "reason": reason},
            key=f"freeze:{'on' if on else 'off'}:{by}:{at.isoformat()}",
        )

        async def work(connection: AsyncConnection) -> None:
            await connection.execute(
                insert_into(connection, switches)
                .values(name=_FREEZE, **values)
                .on_conflict_do_update(index_elements=["name"], set_=values)
            )
            await append_audit(connection, event)

        await self._database.transact(work, again=False)


def _write(marker: Path | None, wish: _Wish) -> None:
    if marker is None:
        return
    try:
        marker.write_text(json.dumps({**asdict(wish), "at": wish.at.isoformat()}), "utf-8")
    except OSError as error:
        # It still holds in this process, and the database may take it.
        log.warning("freeze.marker_not_written", error=error.strerror)


def _read(marker: Path | None, clock: Callable[[], datetime]) -> _Wish | None:
    if marker is None or not marker.exists():
        return None
    try:
        return _WISH.validate_json(marker.read_bytes())
    except (OSError, ValidationError):
        return _Wish("operator", f"the file {marker.name} is there", clock())


def _remove(marker: Path | None) -> None:
    if marker is None:
        return
    try:
        marker.unlink(missing_ok=True)
    except OSError as error:
        log.error("freeze.marker_not_removed", error=error.strerror)
