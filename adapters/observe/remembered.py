"""An answer that holds for some minutes, asked for once however many want it at the same time."""

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from datetime import timedelta
from time import monotonic
from typing import Final, Generic, TypeVar

T = TypeVar("T")
_MOST: Final = 32


class Remembered(Generic[T]):
    """Answers by key. A failure is not remembered."""

    def __init__(self, lasts: timedelta) -> None:
        self._lasts_s = lasts.total_seconds()
        self._kept: dict[Hashable, tuple[float, T]] = {}
        self._asking: dict[Hashable, asyncio.Lock] = {}

    async def get(self, key: Hashable, ask: Callable[[], Awaitable[T]]) -> T:
        """What is remembered, else what `ask` says. Raises what it raises."""
        lock = self._asking.setdefault(key, asyncio.Lock())
        try:
            async with lock:
                kept = self._kept.get(key)
                if kept is not None and monotonic() - kept[0] < self._lasts_s:
                    return kept[1]
                answer = await ask()
                self._kept[key] = (monotonic(), answer)
                while len(self._kept) > _MOST:
                    self._kept.pop(next(iter(self._kept)))
                return answer
        finally:
            if not lock.locked():
                self._asking.pop(key, None)
