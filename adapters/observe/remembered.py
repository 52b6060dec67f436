"""An answer that holds for some minutes, asked for once however many want it at the same time."""

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from dataclasses import dataclass
from datetime import datetime, timedelta
from time import monotonic
from typing import Final, Generic, TypeVar

from tools.outside_json import counting_unread, left_out

T = TypeVar("T")
_MOST: Final = 32


@dataclass(frozen=True, slots=True)
class _CachedAnswer(Generic[T]):
    """An answer. `unread` entries of it could not be read, which each caller is to hear."""

    at_s: float
    answer: T
    unread: int


class Remembered(Generic[T]):
    """The newest `most` answers by key, let go of when their time is over. No failure is remembered."""

    def __init__(self, lasts: timedelta, most: int = _MOST) -> None:
        self._lasts_s = lasts.total_seconds()
        self._most = most
        self._kept: dict[Hashable, _CachedAnswer[T]] = {}
        self._asking: dict[Hashable, asyncio.Lock] = {}

    @property
    def held(self) -> int:
        return len(self._kept)

    async def get(self, key: Hashable, ask: Callable[[], Awaitable[T]]) -> T:
        """The cached value, else the result of `ask`. Raises what it raises."""
        lock = self._asking.setdefault(key, asyncio.Lock())
        try:
            async with lock:
                kept = self._kept.get(key)
                if kept is None or monotonic() - kept.at_s >= self._lasts_s:
                    with counting_unread() as unread:
                        answer = await ask()
                    kept = self._keep(key, _CachedAnswer(monotonic(), answer, unread.count))
                left_out(kept.unread)
                return kept.answer
        finally:
            if not lock.locked():
                self._asking.pop(key, None)

    def _keep(self, key: Hashable, kept: _CachedAnswer[T]) -> _CachedAnswer[T]:
        self._kept.pop(key, None)
        self._kept[key] = kept
        while len(self._kept) > self._most:
            self._kept.pop(next(iter(self._kept)))
        asyncio.get_running_loop().call_later(self._lasts_s, self._forget, key, kept.at_s)
        return kept

    def _forget(self, key: Hashable, at_s: float) -> None:
        if key in self._kept and self._kept[key].at_s == at_s:
            del self._kept[key]


class LooksBack:
    """Keys of looks that go `back` from an end: a later one has looked over an end before it."""

    def __init__(self, lasts: timedelta, back: timedelta) -> None:
        self._lasts_s = lasts.total_seconds()
        self._reach = back / 2 / lasts
        self._latest = 0  # asked for, in `lasts` since the epoch

    def key(self, end: datetime) -> int:
        about = int(end.timestamp() // self._lasts_s)
        if about <= self._latest <= about + self._reach:
            about = self._latest
        self._latest = max(self._latest, about)
        return about
