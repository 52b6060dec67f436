"""An answer that holds for some minutes, asked for once however many want it at the same time."""

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from datetime import datetime, timedelta
from time import monotonic
from typing import Final, Generic, TypeVar

T = TypeVar("T")
_MOST: Final = 32


class Remembered(Generic[T]):
    """The newest `most` answers by key, let go of when their time is over. No failure is remembered."""

    def __init__(self, lasts: timedelta, most: int = _MOST) -> None:
        self._lasts_s = lasts.total_seconds()
        self._most = most
        self._kept: dict[Hashable, tuple[float, T]] = {}
        self._asking: dict[Hashable, asyncio.Lock] = {}

    @property
    def held(self) -> int:
        """How many answers are in memory."""
        return len(self._kept)

    async def get(self, key: Hashable, ask: Callable[[], Awaitable[T]]) -> T:
        """What is remembered, else what `ask` says. Raises what it raises."""
        lock = self._asking.setdefault(key, asyncio.Lock())
        try:
            async with lock:
                kept = self._kept.get(key)
                if kept is not None and monotonic() - kept[0] < self._lasts_s:
                    return kept[1]
                answer = await ask()
                self._keep(key, answer)
                return answer
        finally:
            if not lock.locked():
                self._asking.pop(key, None)

    def _keep(self, key: Hashable, answer: T) -> None:
        at = monotonic()
        self._kept.pop(key, None)
        self._kept[key] = (at, answer)
        while len(self._kept) > self._most:
            self._kept.pop(next(iter(self._kept)))
        asyncio.get_running_loop().call_later(self._lasts_s, self._forget, key, at)

    def _forget(self, key: Hashable, at: float) -> None:
        if key in self._kept and self._kept[key][0] == at:
            del self._kept[key]


class LooksBack:
    """Keys of looks that go `back` from an end: a later one has looked over an end before it."""

    def __init__(self, lasts: timedelta, back: timedelta) -> None:
        self._lasts_s = lasts.total_seconds()
        self._reach = back / 2 / lasts
        self._latest = 0  # asked for, in `lasts` since the epoch

    def key(self, end: datetime) -> int:
        """Of the look that serves this end."""
        about = int(end.timestamp() // self._lasts_s)
        if about <= self._latest <= about + self._reach:
            about = self._latest
        self._latest = max(self._latest, about)
        return about
