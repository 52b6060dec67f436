"""Every row of the trail as a `koder.admin.action` event: in the log and, if configured, over HTTP.

The trail itself is the queue: a cursor per sink says what was delivered, so an event survives a
crash and a collector that is away. At least once; receivers drop what they have by sequence.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Protocol

import structlog

from adapters.errors import AdapterError
from bot.domain.audit import TrailEntry
from bot.ports.trail import Trail

EVENT = "koder.admin.action"
BATCH_ROWS = 200
BATCHES_PER_RUN = 10
# Longer than a batch may take, and how long a sink that failed is left alone.
LEASE_S = 30.0

_log = structlog.get_logger(__name__)

Sink = Callable[[Sequence[TrailEntry]], Awaitable[None]]


class Cursors(Protocol):
    """`bot.store.audit_sinks.SinkCursors`."""

    async def served(self, name: str) -> int:
        """The last row delivered."""
        ...

    async def claim(self, name: str, lease_s: float) -> int | None:
        """The last row delivered, for who may deliver now."""
        ...

    async def advance(self, name: str, seq: int) -> None:
        """Delivered up to here."""
        ...


class EventFeed:
    """Delivers what is new to every sink; a job of every replica, one of which wins each batch."""

    def __init__(self, trail: Trail, cursors: Cursors, sinks: Mapping[str, Sink]) -> None:
        self._trail = trail
        self._cursors = cursors
        self._sinks = sinks

    async def run(self) -> None:
        """Serve each sink as far as it takes it. Raises StorageUnavailable."""
        for name, sink in self._sinks.items():
            for _ in range(BATCHES_PER_RUN):
                if not await self._batch(name, sink):
                    break

    async def _batch(self, name: str, sink: Sink) -> bool:
        # Reading first: an idle bot writes nothing.
        if not await self._trail.entries(after=await self._cursors.served(name), limit=1):
            return False
        after = await self._cursors.claim(name, LEASE_S)
        if after is None:
            return False
        entries = await self._trail.entries(after=after, limit=BATCH_ROWS)
        if entries:
            try:
                await sink(entries)
            except AdapterError as error:
                # Not advanced: the claim runs out, and the same rows are tried again.
                _log.warning("audit.sink.failed", sink=name, why=error.message, first=after + 1)
                return False
        await self._cursors.advance(name, entries[-1].seq if entries else after)
        return len(entries) == BATCH_ROWS


async def to_log(entries: Sequence[TrailEntry]) -> None:
    """One structured record per row."""
    for entry in entries:
        _log.info(EVENT, **entry.as_json())
