"""One call at a time per key: cached look-ups that callers share, and locks by name."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from cachetools import LRUCache

_T = TypeVar("_T")
_TIMEOUT_S = 1.0


@dataclass(slots=True)
class _Entry(Generic[_T]):
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    value: _T | None = None
    at: float = float("-inf")  # when the question was sent: the answer cannot be newer


class SingleFlightCache(Generic[_T]):
    """Cached answers by key. A failed look-up is raised to its caller and not cached."""

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
        self._entries: LRUCache[str, _Entry[_T]] = LRUCache(capacity)

    async def get(self, key: str, max_age_s: float) -> _T:
        """The answer to a question sent at most `max_age_s` ago, or while this call waited.

        Raises what the lookup raises, and TimeoutError.
        """
        asked_at = self._clock()
        while True:
            entry: _Entry[_T] = self._entries.setdefault(key, _Entry())
            async with entry.lock:
                if self._entries.get(key) is not entry:
                    continue  # forgotten while this call waited
                if entry.value is not None and asked_at - entry.at <= max_age_s:
                    return entry.value
                sent_at = self._clock()
                async with asyncio.timeout(self._timeout_s):
                    entry.value = await self._look_up(key)
                entry.at = sent_at
                return entry.value

    def forget(self, key: str) -> None:
        """Look up again next time. An answer in progress may be outdated and is not cached."""
        self._entries.pop(key, None)


class KeyedLock:
    """Locks by name, within this process."""

    def __init__(self) -> None:
        self._locks: dict[str, tuple[asyncio.Lock, int]] = {}

    @asynccontextmanager
    async def hold(self, key: str) -> AsyncIterator[None]:
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
