"""What changed in the workspace, as it changes: for the page, and for waiting without sleeping."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal, TypeVar

from bot.demo.workspace.json_access import JsonObject

T = TypeVar("T")

ChangeKind = Literal[
    "message", "edit", "delete", "ephemeral", "view", "view_closed", "channel",
    "home", "session",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Change:
    """One thing people can see. `user` empty means everybody in the channel."""

    kind: ChangeKind
    body: JsonObject
    channel: str = ""
    user: str = ""


class Feed:
    """Fans changes out to subscribers and wakes those who wait for a condition."""

    def __init__(self) -> None:
        self._subscribers: set[asyncio.Queue[Change | None]] = set()
        self._waiters: set[asyncio.Future[None]] = set()
        self._closed = False

    def publish(self, change: Change) -> None:
        for queue in self._subscribers:
            queue.put_nowait(change)
        self.notify()

    def notify(self) -> None:
        """Let the waiting conditions look again, with nothing to show."""
        waiters, self._waiters = self._waiters, set()
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)

    @contextmanager
    def subscribe(self) -> Iterator[AsyncIterator[Change]]:
        """Changes from now on; the iterator ends when the feed closes."""
        queue: asyncio.Queue[Change | None] = asyncio.Queue()
        if self._closed:
            queue.put_nowait(None)
        self._subscribers.add(queue)
        try:
            yield self._drain(queue)
        finally:
            self._subscribers.discard(queue)
            self.notify()

    @property
    def followers(self) -> int:
        return len(self._subscribers)

    @staticmethod
    async def _drain(queue: asyncio.Queue[Change | None]) -> AsyncIterator[Change]:
        while (change := await queue.get()) is not None:
            yield change

    async def wait_for(self, predicate: Callable[[], T | None], timeout_s: float) -> T:
        """The first truthy value of the predicate, looked at again after each change.

        Raises TimeoutError.
        """
        async with asyncio.timeout(timeout_s):
            while not (value := predicate()):
                waiter = asyncio.get_running_loop().create_future()
                self._waiters.add(waiter)
                try:
                    await waiter
                finally:
                    self._waiters.discard(waiter)
            return value

    def close(self) -> None:
        self._closed = True
        for queue in self._subscribers:
            queue.put_nowait(None)
