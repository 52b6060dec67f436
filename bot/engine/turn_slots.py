"""How many turns run in this process at once, and what becomes of those that wait for a slot."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Any, Final

from bot.chat.stopping import StoppedByPerson, unless_stopped
from bot.domain.session import Ask
from bot.ports.durability import StopSignal

MAX_LIVE_TURNS: Final = 512
# One writer, and a turn takes about thirty transactions.
MAX_LIVE_TURNS_SQLITE: Final = 128
ShowWaiting = Callable[[Ask], Coroutine[Any, Any, None]]


class TurnSlots:
    """Slots, given in the order of asking. `show_waiting` tells people of a wait; it never raises."""

    def __init__(self, limit: int, show_waiting: ShowWaiting) -> None:
        self._slots = asyncio.Semaphore(limit)
        self._show_waiting = show_waiting
        self._waiting: set[asyncio.Task[object]] = set()

    @asynccontextmanager
    async def hold(self, ask: Ask, stop: StopSignal) -> AsyncIterator[None]:
        """Wait for a slot and keep it; a turn that is asked to stop needs none to end."""
        if not self._slots.locked():
            async with self._slots:
                yield
            return
        taken = False

        async def take() -> None:
            nonlocal taken
            await self._slots.acquire()
            taken = True

        # May go on into the turn, which then waits for what is being posted and posts it no more.
        showing = asyncio.create_task(self._show_waiting(ask))  # noqa: TID251  ended below
        try:
            with self._noted(), suppress(StoppedByPerson):
                await unless_stopped(stop, take())
            yield
        finally:
            if taken:
                self._slots.release()
            showing.cancel()
            await asyncio.wait({showing})

    def let_go(self) -> int:
        """Cancel the turns that wait, for whoever resumes them; how many it was."""
        for task in self._waiting:
            task.cancel()
        return len(self._waiting)

    @contextmanager
    def _noted(self) -> Iterator[None]:
        task = asyncio.current_task()
        assert task is not None  # noqa: S101 - a workflow is always run by one
        self._waiting.add(task)
        try:
            yield
        finally:
            self._waiting.discard(task)
