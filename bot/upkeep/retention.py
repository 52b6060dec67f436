"""Retention: delete old messages, results, and the engine's records of work.

Messages and results are kept as long as `[retention]` says. The engine's records of finished work
are unused, so they go in any case.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

import structlog

from bot.store.retention import DAY_S, StoredRetention

log = structlog.get_logger(__name__)

SWEEP_S: Final = 3600.0
RECORDS_S: Final = 60.0
# Slack delivers an event again for hours; the record of a turn is what keeps it from running twice.
SHORTEST_JOURNAL_S: Final = DAY_S
# What a replica left in any state is looked after within minutes of a start; a start may be late.
LONGEST_JOURNAL_S: Final = 7 * DAY_S

ForgetEnded = Callable[[float], Awaitable[int]]


@dataclass(frozen=True, slots=True)
class RetentionPeriods:
    """Days; 0 keeps for good. `nothing` keeps neither messages nor results beyond their turn."""

    messages_days: int
    results_days: int
    nothing: bool = False

    @property
    def messages_s(self) -> float:
        """0 keeps for good."""
        return SHORTEST_JOURNAL_S if self.nothing else self.messages_days * DAY_S

    @property
    def results_s(self) -> float:
        """0 keeps for good."""
        return SHORTEST_JOURNAL_S if self.nothing else self.results_days * DAY_S

    @property
    def records_s(self) -> float:
        """The engine's, which hold both: the shorter of them, within bounds of their own."""
        limits = [s for s in (self.messages_s, self.results_s) if s]
        return max(min([*limits, LONGEST_JOURNAL_S]), SHORTEST_JOURNAL_S)


class RetentionSweep:
    """The clock's job. Idempotent, and safe on every replica at once."""

    def __init__(self, store: StoredRetention, kept: RetentionPeriods) -> None:
        self._store = store
        self._kept = kept

    async def run(self) -> None:
        """Delete the due rows. Raises StorageUnavailable."""
        messages_s, results_s = self._kept.messages_s, self._kept.results_s
        messages = await self._store.drop_messages(messages_s) if messages_s else 0
        results = await self._store.drop_results(results_s) if results_s else 0
        if messages or results:
            log.info("retention_swept", messages=messages, results=results)


class RecordsSweep:
    """The clock's job on the engine's records of work that is over: a little of it at a time."""

    def __init__(self, forget_ended: ForgetEnded, kept: RetentionPeriods) -> None:
        self._forget_ended = forget_ended
        self._kept = kept

    async def run(self) -> None:
        """Delete some of the due rows; the next run continues.

        Raises the engine library's errors.
        """
        if ended := await self._forget_ended(self._kept.records_s):
            log.info("records_swept", workflows=ended)
