"""Deletes what has been kept long enough: messages, results, and the engine's record of both."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

import structlog

from bot.store.retention import DAY_S, StoredRetention

log = structlog.get_logger(__name__)

SWEEP_S: Final = 3600.0
# Slack delivers an event again for hours; the record of a turn is what keeps it from running twice.
SHORTEST_JOURNAL_S: Final = DAY_S

ForgetEnded = Callable[[float], Awaitable[int]]


@dataclass(frozen=True, slots=True)
class KeptFor:
    """Days; 0 keeps for good. `nothing` keeps neither messages nor results beyond their turn."""

    messages_days: int
    results_days: int
    nothing: bool = False


class RetentionSweep:
    """The clock's job. Idempotent, and safe on every replica at once."""

    def __init__(self, store: StoredRetention, forget_ended: ForgetEnded, kept: KeptFor) -> None:
        self._store = store
        self._forget_ended = forget_ended
        self._kept = kept

    async def run(self) -> None:
        """Delete what is due. Raises StorageUnavailable."""
        messages_s = self._kept.messages_days * DAY_S
        results_s = self._kept.results_days * DAY_S
        if self._kept.nothing:
            messages_s = results_s = SHORTEST_JOURNAL_S
        messages = await self._store.drop_messages(messages_s) if messages_s else 0
        results = await self._store.drop_results(results_s) if results_s else 0
        limits = [s for s in (messages_s, results_s) if s]
        ended = await self._forget_ended(max(min(limits), SHORTEST_JOURNAL_S)) if limits else 0
        if messages or results or ended:
            log.info("retention_swept", messages=messages, results=results, workflows=ended)
