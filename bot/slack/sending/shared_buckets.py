"""Token buckets that processes of one service draw on together, in memory that they share.

Made before the fork. Names of which many are made (a channel's) take the place of those that nobody
drew on for longest.
"""

import fcntl
import hashlib
import math
import mmap
import os
import struct
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from bot.slack.sending.pacing import Bucket

# A name's digest, its level, and when that was: seconds of the machine's one monotonic clock.
_CELL: Final = struct.Struct("=Qdd")
_CELLS: Final = 8_192
_NEAR: Final = 16  # cells in which a name may stand
# Nobody holds the lock for longer than some microseconds, unless it is frozen just then. A call too
# many is better than a loop that stands still with it.
_LOCK_S: Final = 0.002


class SharedShelf:
    """Implements `Shelf` for a process and all that are forked from it."""

    def __init__(self, lock_s: float = _LOCK_S) -> None:
        self._lock_s = lock_s
        self._file = os.memfd_create("kortex-buckets")
        os.ftruncate(self._file, _CELLS * _CELL.size)
        self._memory = mmap.mmap(self._file, _CELLS * _CELL.size)

    def bucket(self, name: str, burst: int, per_s: float) -> Bucket:
        """See `Shelf.bucket`."""
        digest = hashlib.blake2b(name.encode(errors="replace"), digest_size=8).digest()
        return _SharedBucket(burst, per_s, self, int.from_bytes(digest) or 1)  # 0 is nobody's

    @contextmanager
    def alone(self) -> Iterator[None]:
        """No other process reads or writes meanwhile. The lock of one that dies is free."""
        until = time.monotonic() + self._lock_s
        locked = False
        while not locked and time.monotonic() < until:
            try:
                fcntl.lockf(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                locked = True
            except BlockingIOError:
                os.sched_yield()
        try:
            yield
        finally:
            if locked:
                fcntl.lockf(self._file, fcntl.LOCK_UN)

    def read(self, name: int) -> tuple[int, float, float] | None:
        """Where it stands, its level and when; None for a name that is new, or forgotten."""
        for at in self._near(name):
            found, level, when = _CELL.unpack_from(self._memory, at)
            if found == name:
                return at, level, when
        return None

    def place_for(self, name: int) -> int:
        """Where a new one goes: a free cell, or that which was drawn on before all others."""
        return min(self._near(name), key=lambda at: _CELL.unpack_from(self._memory, at)[2])

    def write(self, at: int, name: int, level: float, when: float) -> None:
        """Put it there."""
        _CELL.pack_into(self._memory, at, name, level, when)

    def _near(self, name: int) -> Iterator[int]:
        return ((name + step) % _CELLS * _CELL.size for step in range(_NEAR))


class _SharedBucket(Bucket):
    def __init__(self, burst: int, per_s: float, shelf: SharedShelf, name: int) -> None:
        super().__init__(burst, per_s)
        self._shelf = shelf
        self._name = name
        self._is_ours = False

    def level(self, now: float) -> float:
        with self._alone():
            return super().level(now)

    def take_of(self, tokens: float, now: float) -> bool:
        with self._alone():
            return super().take_of(tokens, now)

    def draw(self, now: float) -> float:
        with self._alone():
            return super().draw(now)

    def give_back(self) -> None:
        with self._alone():
            super().give_back()

    @contextmanager
    def _alone(self) -> Iterator[None]:
        if self._is_ours:
            yield
            return
        with self._shelf.alone():
            place, self._level, self._at = self._shelf.read(self._name) or self._fresh()
            self._is_ours = True
            try:
                yield
            finally:
                self._is_ours = False
                self._shelf.write(place, self._name, self._level, self._at)

    def _fresh(self) -> tuple[int, float, float]:
        return self._shelf.place_for(self._name), self._burst, -math.inf
