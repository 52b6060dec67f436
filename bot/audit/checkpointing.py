"""Signed checkpoints of the audit log, made when due and published where the database cannot reach."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Protocol

import structlog

from adapters.errors import AdapterError
from bot.audit.chain import AuditKeys, ChainRow
from bot.audit.checkpoint import AuditLogEnd, Checkpoint, sign
from bot.ports.failures import SurfaceFailed, SurfaceGone

EVERY_ROWS = 100
EVERY_S = 300.0

_log = structlog.get_logger(__name__)

Publisher = Callable[[Checkpoint], Awaitable[None]]


class CheckpointStore(Protocol):
    async def end(self) -> AuditLogEnd:
        """Its last row, beside its last checkpoint."""
        ...

    async def keep_checkpoint(self, checkpoint: Checkpoint) -> bool:
        """Whether this one is the first of its size."""
        ...


class Checkpoints:
    """A job of every replica; the one that stores a checkpoint publishes it."""

    def __init__(
        self,
        audit_log: CheckpointStore,
        keys: AuditKeys,
        publishers: Mapping[str, Publisher],
    ) -> None:
        self._audit_log = audit_log
        self._keys = keys
        self._publishers = publishers
        self._unpublished: dict[str, Checkpoint] = {}
        self._seen: ChainRow | None = None
        self._is_cut = False

    async def run(self) -> None:
        """Create a due checkpoint and publish the unpublished ones. Raises StorageUnavailable."""
        await self._make(EVERY_ROWS, EVERY_S)
        await self._publish()

    async def close(self) -> None:
        """The last one, at shutdown, if there are new rows. Raises StorageUnavailable."""
        await self._make(1, 0.0)
        await self._publish()

    async def _make(self, every_rows: int, every_s: float) -> None:
        newest, last, now = await self._audit_log.end()
        if self._was_cut(newest) or newest is None or not newest.mac:
            return
        rows = newest.seq - (last[0] if last else 0)
        if rows <= 0:
            return
        is_late = last is None or (now - last[1]).total_seconds() >= every_s
        if rows < every_rows and not is_late:
            return
        made = sign(self._keys, newest.seq, newest.mac, now)
        if await self._audit_log.keep_checkpoint(made):
            self._unpublished = dict.fromkeys(self._publishers, made)

    def _was_cut(self, newest: ChainRow | None) -> bool:
        """Rows that this process saw are missing: the rest is never signed again."""
        seen, self._seen = self._seen, newest
        if seen is None or self._is_cut:
            return self._is_cut
        if (
            newest is None
            or newest.seq < seen.seq
            or (newest.seq == seen.seq and newest.mac != seen.mac)
        ):
            self._is_cut = True
            _log.error(
                "audit.log.truncated",
                was=seen.seq,
                now=newest.seq if newest else 0,
                what="rows of the audit log were removed; stop Kortex, keep a copy of the "
                "database and run `kortex audit verify`",
            )
        return self._is_cut

    async def _publish(self) -> None:
        for name, checkpoint in list(self._unpublished.items()):
            try:
                await self._publishers[name](checkpoint)
            except (AdapterError, SurfaceFailed, SurfaceGone, OSError) as error:
                # Kept, and tried again with the next run: a newer one says all that this one says.
                _log.error("audit.checkpoint.unpublished", where=name, why=str(error))
            else:
                del self._unpublished[name]
