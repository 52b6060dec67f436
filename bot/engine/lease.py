"""A replica's lease on its work: beats, whom it takes for dead, and that it stood still itself.

What is done with the work of a replica that lost its lease lives in `bot.engine.take_over`.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress

from bot.ports.failures import StorageUnavailable
from bot.store.replicas import STOOD_STILL_LEASES, Presence

_BEATS = 4  # in a lease: two may fail before anybody takes the replica for dead


class Lease:
    """One replica's lease."""

    def __init__(self, presence: Presence, lease_s: float) -> None:
        self._presence = presence
        self._lease_s = lease_s
        self._every_s = lease_s / _BEATS
        self._beaten_at = self._looked_at = time.monotonic()

    async def hold(
        self,
        judge: Callable[[], Awaitable[None]],
        overslept: Callable[[], None],
        cut_off: Callable[[], Awaitable[None]],
    ) -> None:
        """Beat until cancelled. `judge` looks after the replicas that do not; it must not raise.

        The beat never waits for it, and a replica whose own beat was late judges nobody: everything
        may have stood still. `overslept` is called when this process stood still for so long that
        others take it for dead; `cut_off` when it was without the database for longer than its
        lease, which to others looks like its end.
        """
        async with asyncio.TaskGroup() as group:
            judging: asyncio.Task[None] | None = None
            with self._watchdog(overslept):
                while True:
                    await asyncio.sleep(self._every_s)
                    asked_at = time.monotonic()
                    with suppress(StorageUnavailable):
                        kept = await self._presence.beat()
                        silent_s, self._beaten_at = asked_at - self._beaten_at, asked_at
                        if not kept and silent_s > self._lease_s:
                            await cut_off()
                        in_time = silent_s < 2 * self._every_s
                        if in_time and (judging is None or judging.done()):
                            judging = group.create_task(_run(judge))

    @contextmanager
    def _watchdog(self, overslept: Callable[[], None]) -> Iterator[None]:
        """Callbacks, not a task: after a stop one runs before any task that new data wakes up."""
        loop = asyncio.get_running_loop()
        handle: asyncio.TimerHandle

        def look() -> None:
            nonlocal handle
            now = time.monotonic()
            stood_still = now - self._looked_at > 2 * self._every_s
            if stood_still and now - self._beaten_at > STOOD_STILL_LEASES * self._lease_s:
                overslept()
            self._looked_at = now
            handle = loop.call_later(self._every_s, look)

        self._looked_at = time.monotonic()
        handle = loop.call_later(self._every_s, look)
        try:
            yield
        finally:
            handle.cancel()


async def _run(judge: Callable[[], Awaitable[None]]) -> None:
    await judge()
