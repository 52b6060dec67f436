"""One at a time per key: locks that are forgotten, and look-ups that many wait for and one makes."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Generic, TypeVar

_T = TypeVar("_T")
_TIMEOUT_S = 1.0


@dataclass(frozen=True, slots=True)
class _Kept(Generic[_T]):
    value: _T
    at: float  # when the question was sent: the answer cannot be newer


class Fresh(Generic[_T]):
    """Answers by key. A failed lookup is raised to its caller and not kept."""

    def __init__(
        self,
        look_up: Callable[[str], Awaitable[_T]],
        clock: Callable[[], float],
        timeout_s: float = _TIMEOUT_S,
        capacity: int = 5_000,
    ) -> None:
        self._look_up = look_up
        self._clock = clock
        self._timeout_s = timeout_s
        self._capacity = capacity
        self._kept: dict[str, _Kept[_T]] = {}
        self._locks: dict[str, asyncio.Lock] = {}
        self._forgotten = 0

    async def get(self, key: str, max_age_s: float) -> _T:
        """The answer to a question sent at most `max_age_s` ago, or while this call waited.

        Raises what the lookup raises, and TimeoutError.
        """
        asked_at = self._clock()
        async with self._locks.setdefault(key, asyncio.Lock()):
            kept = self._kept.get(key)
            if kept is not None and asked_at - kept.at <= max_age_s:
                return kept.value
            sent_at, forgotten = self._clock(), self._forgotten
            async with asyncio.timeout(self._timeout_s):
                value = await self._look_up(key)
            if forgotten == self._forgotten:
                self._keep(key, _Kept(value, sent_at))
            return value

    def forget(self, key: str) -> None:
        """The next question is asked anew."""
        self._kept.pop(key, None)
        self._forgotten += 1  # an answer now under way may be older than this

    def _keep(self, key: str, kept: _Kept[_T]) -> None:
        self._kept.pop(key, None)
        self._kept[key] = kept
        while len(self._kept) > self._capacity:
            oldest = next(iter(self._kept))
            del self._kept[oldest]
            self._locks.pop(oldest, None)


class KeyedLock:
    """Locks by name, within this process."""

    def __init__(self) -> None:
        self._locks: dict[str, tuple[asyncio.Lock, int]] = {}

    @asynccontextmanager
    async def hold(self, key: str) -> AsyncIterator[None]:
        """Wait for the key's lock, hold it."""
        lock, holders = self._locks.get(key, (asyncio.Lock(), 0))
        self._locks[key] = (lock, holders + 1)
        try:
            async with lock:
                yield
        finally:
            lock, holders = self._locks[key]
            if holders == 1:
                del self._locks[key]
            else:
                self._locks[key] = (lock, holders - 1)
