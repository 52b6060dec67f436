"""Courtesies that must not delay an acknowledgement, in tasks that shutdown waits for."""

import asyncio
from collections.abc import Coroutine

import structlog

_log = structlog.stdlib.get_logger(__name__)


class BackgroundTasks:
    """Runs small jobs on the side. What must survive a crash does not belong here."""

    def __init__(self, timeout_s: float = 10.0) -> None:
        self._timeout_s = timeout_s
        self._running: set[asyncio.Task[None]] = set()

    def run(self, name: str, job: Coroutine[object, object, None]) -> None:
        """Start the job; a failure is logged, never raised."""
        # The sender of the request is not kept waiting; `drain` is the scope these tasks end in.
        task = asyncio.create_task(self._guarded(name, job))  # noqa: TID251
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    async def drain(self, grace_s: float) -> None:
        """Wait for what runs, at most `grace_s`, then cancel the rest."""
        if self._running:
            await asyncio.wait(self._running, timeout=grace_s)
        rest = tuple(self._running)
        for task in rest:
            task.cancel()
        await asyncio.gather(*rest, return_exceptions=True)

    async def _guarded(self, name: str, job: Coroutine[object, object, None]) -> None:
        try:
            async with asyncio.timeout(self._timeout_s):
                await job
        except Exception as error:  # noqa: BLE001 - the seam of a side job: nobody awaits it
            _log.warning("slack.background_task.failed", task=name, error=type(error).__name__)
