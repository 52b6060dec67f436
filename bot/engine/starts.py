"""Durable starts under way in this process: each once, and what can wait waits for a burst of them."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from typing import Any, Final

# A platform waits 3 s for a start, and a turn can wait: while more starts than this are under way,
# turns that have not begun wait, until the burst is so old.
CALM_STARTS: Final = 8
STARTS_FIRST_S: Final = 15.0
Begin = Callable[[], Coroutine[Any, Any, Exception | None]]


class Starts:
    """Starts by the id of what is started."""

    def __init__(self) -> None:
        self._under_way: dict[str, asyncio.Task[Exception | None]] = {}
        self._calm = asyncio.Event()
        self._calm.set()
        self._burst_since = 0.0

    async def once(
        self,
        name: str,
        is_started: Callable[[str], Awaitable[bool]],
        begin: Begin,
        background: asyncio.TaskGroup,
    ) -> None:
        """Begin it in `background`, unless it is started; join a start of it that is under way.

        Raises what `is_started` raises and `begin` returns.
        """
        if name not in self._under_way and await is_started(name):
            return
        if (begun := self._under_way.get(name)) is None:
            # In a task of its own: a start that is cancelled half-way leaves work that nobody runs.
            begun = self._under_way[name] = background.create_task(begin())
            begun.add_done_callback(lambda _task: self._ended(name))
            self._look()
        if (failure := await asyncio.shield(begun)) is not None:
            raise failure

    async def few(self) -> None:
        """Wait until few are under way, or have been many for too long."""
        with suppress(TimeoutError):
            async with asyncio.timeout_at(self._burst_since + STARTS_FIRST_S):
                await self._calm.wait()

    async def none(self) -> None:
        """Wait until every one has ended."""
        while self._under_way:
            await asyncio.wait(self._under_way.values())

    def _ended(self, name: str) -> None:
        del self._under_way[name]
        self._look()

    def _look(self) -> None:
        if len(self._under_way) <= CALM_STARTS:
            self._calm.set()
        elif self._calm.is_set():
            self._calm.clear()
            self._burst_since = asyncio.get_running_loop().time()
