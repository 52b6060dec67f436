"""Short work of one event loop for which another loop of the process waits, so that both do not compute at once.

Threads that compute take turns at the interpreter's lock: whoever gives it up, with each statement and
each wake of another thread, has it back only after the other has had its turn.
"""

import asyncio
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from selectors import DefaultSelector, SelectorKey
from typing import Final

# For one piece of work, or for those that overlap, at most: longer it waits for a disk, or for a crowd.
LONGEST_S: Final = 0.005


class RightOfWay:
    """Taken on one loop, given on another."""

    def __init__(self) -> None:
        self._is_free = threading.Event()
        self._is_free.set()
        self._until = 0.0
        self._holders = 0

    @contextmanager
    def taken(self) -> Iterator[None]:
        """Until the loop comes round after the body: what the body's task does next is part of it."""
        self._holders += 1
        if self._holders == 1:
            self._until = time.monotonic() + LONGEST_S
            self._is_free.clear()
        try:
            yield
        finally:
            asyncio.get_running_loop().call_soon(self._leave)

    def give(self) -> None:
        """Wait in this thread while it is taken, `LONGEST_S` at most."""
        if not self._is_free.is_set() and (left_s := self._until - time.monotonic()) > 0:
            self._is_free.wait(left_s)

    def _leave(self) -> None:
        self._holders -= 1
        if not self._holders:
            self._is_free.set()


class GivingLoop(asyncio.SelectorEventLoop):
    """Gives the right of way each time before it goes on with what has become ready."""

    def __init__(self) -> None:
        self.right_of_way = RightOfWay()
        super().__init__(_Giving(self.right_of_way))


class _Giving(DefaultSelector):
    def __init__(self, right_of_way: RightOfWay) -> None:
        super().__init__()
        self._right_of_way = right_of_way

    def select(self, timeout: float | None = None) -> list[tuple[SelectorKey, int]]:
        ready = super().select(timeout)
        self._right_of_way.give()
        return ready
