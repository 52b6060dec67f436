"""Every row of the audit log as a `koder.admin.action` event: in the log and, if configured, over HTTP.

The audit log itself is the queue: a cursor per sink marks the delivered rows, so an event survives a
crash and a collector that is away. At least once; receivers drop duplicates by sequence.

A sink that is far behind catches up beside the answers, in pieces with rests between them.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import structlog

from adapters.errors import AdapterError
from bot.audit.share import rest_s
from bot.domain.audit import AuditEntry
from bot.ports.audit_log import AuditReader

EVENT = "koder.admin.action"
BATCH_ROWS = 200
DELIVERY_S = 20.0  # of one call: a hanging sink fails, even without a client timeout
# Longer than a batch may take, and how long a sink that failed is left alone.
LEASE_S = 30.0
# A log record takes 0.1 to 0.2 ms of the loop, mostly for redaction, and the loop gets a turn after
# so many. Live answers write a hundred between two runs.
LOG_ROWS = 4
RUN_S = 1.5  # within the clock's tick, `bot.app.audit`
TELL_AGAIN_S = 60.0
FAR_ROWS = 1_000
STALLED_S = 60.0  # no row waits so long for a sink that works

_log = structlog.get_logger(__name__)

Deliver = Callable[[Sequence[AuditEntry]], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Sink:
    """Where rows go, in order, and how many in one call. It raises AdapterError for what failed."""

    deliver: Deliver
    at_once: int = BATCH_ROWS


class Cursors(Protocol):
    async def is_behind(self, name: str) -> bool:
        """Whether there are rows that were not delivered."""
        ...

    async def claim(self, name: str, lease_s: float) -> int | None:
        """The last row delivered, for who may deliver now."""
        ...

    async def advance(self, name: str, seq: int) -> None:
        """Delivered up to here."""
        ...


class EventFeed:
    """Delivers new rows to every sink. Each replica runs it; one of them claims each batch."""

    def __init__(
        self,
        audit_log: AuditReader,
        cursors: Cursors,
        sinks: Mapping[str, Sink],
        rest: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._audit_log = audit_log
        self._cursors = cursors
        self._sinks = sinks
        self._rest = rest
        self._run_s = 0.0  # the first run is part of a start, which waits for it
        self._told: dict[
            str, float
        ] = {}  # sinks that are far behind, and the time of that log line

    async def run(self) -> None:
        """Serve all sinks at once, each as far as it takes rows. Raises StorageUnavailable."""
        until, self._run_s = time.monotonic() + self._run_s, RUN_S
        served = (self._serve(name, until) for name in self._sinks)
        for ended in await asyncio.gather(*served, return_exceptions=True):
            if isinstance(ended, BaseException):
                raise ended

    async def _serve(self, name: str, until: float) -> None:
        while await self._batch(name) and time.monotonic() < until:
            pass

    async def _batch(self, name: str) -> bool:
        begun = time.monotonic()
        # Reading first: an idle bot writes nothing.
        if not await self._cursors.is_behind(name):
            return False
        after = await self._cursors.claim(name, LEASE_S)
        if after is None:
            return False
        entries = await self._audit_log.entries(after=after, limit=BATCH_ROWS)
        took_s = time.monotonic() - begun
        # Not advanced where it failed: the claim runs out, and the same rows are tried again.
        if not await self._delivered(name, entries):
            return False
        begun = time.monotonic()
        await self._cursors.advance(name, entries[-1].seq if entries else after)
        await self._tell(name, entries)
        if len(entries) < BATCH_ROWS:
            return False
        # After the claim: another replica may continue now.
        await self._rest(rest_s(took_s + time.monotonic() - begun))
        return True

    async def _delivered(self, name: str, entries: Sequence[AuditEntry]) -> bool:
        sink = self._sinks[name]
        for first in range(0, len(entries), sink.at_once):
            # The loop's own work, which delays other tasks; a collector's time does not.
            begun = time.thread_time()
            try:
                async with asyncio.timeout(DELIVERY_S):
                    await sink.deliver(entries[first : first + sink.at_once])
            except (AdapterError, TimeoutError) as error:
                why = str(error) or f"not delivered within {DELIVERY_S:g} s"
                _log.warning("audit.sink.failed", sink=name, why=why, first=entries[first].seq)
                return False
            is_behind = len(entries) == BATCH_ROWS
            await self._rest(rest_s(time.thread_time() - begun) if is_behind else 0)
        return True

    async def _tell(self, name: str, entries: Sequence[AuditEntry]) -> None:
        """Say once a minute how far it still is behind, and when it no longer is."""
        if len(entries) < BATCH_ROWS:
            if self._told.pop(name, None) is not None:
                _log.info("audit.sink.caught_up", sink=name)
            return
        told = self._told.get(name)
        if told is not None and time.monotonic() < told + TELL_AGAIN_S:
            return
        (newest,) = await self._audit_log.entries(limit=1, newest=True)
        rows, since = newest.seq - entries[-1].seq, entries[-1].at
        if rows >= FAR_ROWS:
            self._told[name] = time.monotonic()
            _log.info("audit.sink.behind", sink=name, rows=rows, since=since.isoformat())


async def to_log(entries: Sequence[AuditEntry]) -> None:
    for entry in entries:
        _log.info(EVENT, **entry.as_json())
