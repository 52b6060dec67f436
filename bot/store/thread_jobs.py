"""Work of a loop's callers that threads do: the threads, and what each caller is told."""

import asyncio
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field
from queue import SimpleQueue
from typing import Any, Generic, TypeVar

from bot.ports.failures import StorageUnavailable
from bot.store.dialect import Connection, Work
from bot.store.in_thread import finished

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Limits:
    """Seconds: how long work may wait until it is begun, and how long it may then take."""

    queue_s: float
    running_s: float


class GivenUp(Exception):
    """Nobody waits for the work any more. Nobody sees this either."""


@dataclass(slots=True, eq=False)
class Job(Generic[_T]):
    """Work of one caller, and what became of it. Made on the caller's loop."""

    work: Work[_T]
    limits: Limits
    urgent: bool = False
    given_up: bool = False
    result: Any = None
    _loop: asyncio.AbstractEventLoop = field(default_factory=asyncio.get_running_loop)
    _answer: "asyncio.Future[_T]" = field(init=False)
    _timer: asyncio.TimerHandle = field(init=False)
    _queued_at: float = field(default_factory=time.monotonic)
    _begun_at: float | None = None

    def __post_init__(self) -> None:
        """From now on it waits."""
        self._answer = self._loop.create_future()
        self._timer = self._loop.call_later(self._left_s(), self._look)

    def run(self, connection: Connection) -> None:
        """In a thread, inside a transaction."""
        self._begun_at = time.monotonic()
        self.result = finished(self.work, connection)
        if self.given_up:
            raise GivenUp

    def tell(self, error: BaseException | None = None) -> None:
        """Its caller has the result, or `error` raised. From any thread."""
        with suppress(RuntimeError):  # its loop is closed, perhaps just now: nobody waits there
            self._loop.call_soon_threadsafe(self._settle, error)

    async def outcome(self) -> _T:
        """What it returned or raised. Raises TimeoutError, StorageUnavailable if it was not begun."""
        try:
            return await self._answer
        except asyncio.CancelledError:
            self.given_up = True
            raise
        finally:
            self._timer.cancel()

    def _settle(self, error: BaseException | None) -> None:
        if self._answer.done():
            return
        if error is None:
            self._answer.set_result(self.result)
        else:
            self._answer.set_exception(error)

    def _look(self) -> None:
        if self._answer.done():
            return
        if (left_s := self._left_s()) > 0:
            self._timer = self._loop.call_later(left_s, self._look)
            return
        self.given_up = True
        self._answer.set_exception(self._too_late())

    def _left_s(self) -> float:
        now = time.monotonic()
        if (begun_at := self._begun_at) is None:
            # Looked at again after that long: it may have begun meanwhile.
            return min(self._queued_at + self.limits.queue_s - now, self.limits.running_s)
        return begun_at + self.limits.running_s - now

    def _too_late(self) -> Exception:
        if self._begun_at is not None:
            return TimeoutError()
        waited = f"{self.limits.queue_s:g} s"
        return StorageUnavailable(f"the database was too busy for {waited}; nothing was begun")


def alone(job: Job[Any], opened: Callable[[], AbstractContextManager[Connection]]) -> None:
    """Run it in a transaction of its own, and tell its caller."""
    try:
        with opened() as connection:
            job.run(connection)
    except BaseException as error:  # noqa: BLE001 - raised where the work was asked for
        job.tell(error)
    else:
        job.tell()


async def closed(close: Callable[[], None]) -> None:
    """Once `close` has waited for what still runs."""
    # Not the loop's default threads: whoever stops last may have ended those.
    closer = ThreadPoolExecutor(1)
    try:
        await asyncio.get_running_loop().run_in_executor(closer, close)
    finally:
        closer.shutdown(wait=False)


class Threads(Generic[_T]):
    """One for each of `workers`, begun as they are needed; they take what is put in its order.

    Of several that wait, the one that worked last takes it: its connection and its memory are warm.
    A worker raises nothing. A process that ends waits for none of them: what it did not commit is
    undone.
    """

    def __init__(
        self,
        name: str,
        workers: Sequence[Callable[[_T], None]],
        first: Callable[[], object] = lambda: None,
    ) -> None:
        """`first` is called in each as it begins."""
        self._name = name
        self._workers = workers
        self._first = first
        self._lock = threading.Lock()
        self._begun: list[threading.Thread] = []
        self._left: deque[_T] = deque()  # while nobody is free
        self._free: list[SimpleQueue[_T | None]] = []
        self._closed = False

    def put(self, item: _T) -> None:
        """Whoever is free takes it. Raises RuntimeError when they were closed."""
        with self._lock:
            if self._closed:
                raise RuntimeError(f"{self._name} is closed")
            if self._free:
                self._free.pop().put(item)
            elif len(self._begun) < len(self._workers):
                worker = self._workers[len(self._begun)]
                thread = threading.Thread(
                    target=self._work, args=(worker, item), name=self._name, daemon=True
                )
                self._begun.append(thread)
                thread.start()
            else:
                self._left.append(item)

    def close(self) -> None:
        """Wait until all that was put is done."""
        with self._lock:
            self._closed = True
            for free in self._free:
                free.put(None)
        for thread in self._begun:
            thread.join()

    def _work(self, worker: Callable[[_T], None], item: _T | None) -> None:
        self._first()
        given: SimpleQueue[_T | None] = SimpleQueue()
        while item is not None:
            worker(item)
            del item  # what it holds is not kept until the next comes
            item = self._next(given)

    def _next(self, given: SimpleQueue[_T | None]) -> _T | None:
        with self._lock:
            if self._left:
                return self._left.popleft()
            if self._closed:
                return None
            self._free.append(given)
        return given.get()
