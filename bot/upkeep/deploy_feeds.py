"""Deploy systems, polled on every replica: what one has stored, the rest knows."""

import asyncio
import time
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Final

import structlog

from adapters.deploys.feed import DeployFeed
from adapters.errors import AdapterError
from bot.ports.failures import StorageUnavailable
from bot.ports.ingested_events import EventStore, FeedStates
from tools.capabilities import Clock
from tools.errors import ToolError
from tools.outside_json import counting_unread

log = structlog.get_logger(__name__)

# An investigation compares with the day before; later an hour more than the last read covers late
# reports.
FIRST_LOOK: Final = timedelta(hours=24)
LOOK: Final = timedelta(hours=1)
TIMEOUT_S: Final = 60.0  # of one look at one system
LONGEST_PAUSE_S: Final = 900.0
START_S: Final = 1.0
TICK_S: Final = 10.0  # how often a round checks for due feeds; `every` is no shorter


class FeedSweep:
    """One thing that is asked. What it does not answer is asked for again, less and less often.

    Not in the first second: a start waits for the first run of its jobs, and not for other systems.
    """

    def __init__(
        self,
        name: str,
        feed: DeployFeed,
        events: EventStore,
        clock: Clock,
        every_s: float,
        states: FeedStates,
        seconds: Callable[[], float] = time.monotonic,
    ) -> None:
        self._name = name
        self._feed = feed
        self._events = events
        self._clock = clock
        self._every_s = every_s
        self._states = states
        self._unread = 0  # within a day: the next looks do not reach back so far
        self._unread_at: datetime | None = None
        self._seconds = seconds
        self._told_until: datetime | None = None
        self._failures = 0
        self._not_before = seconds() + START_S
        self.is_away = False

    async def run(self) -> int:
        """Ask and store, if it is time; how many deploys were new. Raises nothing but a cancellation.

        `is_away` then says whether it failed in a way that everything at that address would.
        """
        self.is_away = False
        if self._seconds() < self._not_before:
            return 0
        self._not_before = self._seconds() + self._every_s - TICK_S / 2
        now = self._clock.now()
        try:
            async with asyncio.timeout(TIMEOUT_S):
                with counting_unread() as unread:
                    found = await self._feed.since(self._from(now))
                added = await self._events.add(found)
        except (AdapterError, ToolError, StorageUnavailable, TimeoutError) as error:
            self._failed(error)
            return 0
        if self._failures:
            log.info("deploy_feed.recovered", feed=self._name)
        if unread.count:
            log.warning("deploy_feed.unreadable_entries", feed=self._name, count=unread.count)
        self._failures = 0
        self._told_until = now
        if self._unread_at is None or now - self._unread_at > FIRST_LOOK:
            self._unread = 0
        if unread.count:
            self._unread, self._unread_at = max(unread.count, self._unread), now
        self._states.note(self._name, self._unread, fails=False)
        return added

    def missed(self) -> None:
        """Note that it cannot be read, without asking it."""
        self._states.note(self._name, self._unread, fails=True)

    def _from(self, now: datetime) -> datetime:
        """An hour before the last answer, at any distance and after any clock change."""
        if self._told_until is None:
            return now - FIRST_LOOK
        return min(now, self._told_until) - LOOK

    def _failed(self, error: Exception) -> None:
        """Missed deploys are read as at the first look: the next answer may come much later."""
        self._told_until = None
        self._failures += 1
        pause_s = min(LONGEST_PAUSE_S, 2.0**self._failures)
        asked_to_wait_s = error.retry_after_s if isinstance(error, AdapterError) else None
        if asked_to_wait_s is not None:
            pause_s = min(LONGEST_PAUSE_S, max(pause_s, asked_to_wait_s))
        self._not_before = self._seconds() + pause_s
        own = isinstance(error, AdapterError) and not error.retryable and asked_to_wait_s is None
        self.is_away = not own
        why = str(error) or f"no answer within {TIMEOUT_S:g} s"
        tell = log.warning if self._failures == 1 else log.debug
        tell("deploy_feed.failed", feed=self._name, error=why, again_in_s=pause_s)
        self.missed()


class FeedRound:
    """The feeds of one address, polled one after the other."""

    def __init__(self, sweeps: Sequence[FeedSweep]) -> None:
        self._sweeps = sweeps

    async def run(self) -> int:
        """Poll the due feeds, up to the first that is down; the number of new deploys."""
        added = 0
        for number, sweep in enumerate(self._sweeps, 1):
            added += await sweep.run()
            if sweep.is_away:
                for other in self._sweeps[number:]:
                    other.missed()
                break
        return added
