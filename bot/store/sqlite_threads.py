"""SQLite transactions that run whole in a thread, and the gate at which their writers take turns.

Between two statements the one writer of the file waits for nobody, however busy the event loop is.
Writers that wait share one transaction: one wait for the file and one sync to the disk for all.

SQLite polls: a writer that finds the file locked sleeps and looks again, up to 100 ms each time
(https://www.sqlite.org/c3ref/busy_timeout.html), so under load writers starve while the file is free.
Here they wait for a lock and wake at once, first come first served, but those whom somebody waits
for (`urgent`) before all others, in the queue of work and at the gate: one with a queue of work would
otherwise enter again before the others have woken. Only speed depends on it: SQLite's own lock still
decides, also against other processes.
"""

import sqlite3
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from typing import Any, Final, TypeVar

import sqlalchemy as sa

from bot.store.dialect import Work
from bot.store.in_thread import Kept
from bot.store.sqlite_checkpoints import LOG_PAGES, Checkpoints
from bot.store.thread_jobs import GivenUp, Job, Limits, Threads, alone, closed

# After this long at the gate a writer leaves the decision to SQLite and its busy timeout.
GATE_TIMEOUT_S: Final = 30.0
_WRITES: Final = ("INSERT", "UPDATE", "DELETE", "REPLACE", "BEGIN IMMEDIATE")
_LONGEST: Final = max(map(len, _WRITES))

IsUrgent = Callable[[], bool]


def _never() -> bool:
    return False


def _always() -> bool:
    return True


# Asked whenever the file is free: who waits may become urgent meanwhile.
_urgent: ContextVar[IsUrgent] = ContextVar("urgent", default=_never)

_T = TypeVar("_T")
# A shared transaction takes no more along after this long: others wait for the file too.
SHARED_S: Final = 0.05


@contextmanager
def urgent(*, is_so: bool = True) -> Iterator[None]:
    """Writes of this context go first, those of tasks and threads begun in it as well."""
    before = _urgent.set(_always if is_so else _never)
    try:
        yield
    finally:
        _urgent.reset(before)


class Gate:
    """A lock that is handed over in the order of arrival, to the urgent first."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._held = False
        self._waiting: dict[threading.Lock, IsUrgent] = {}  # in the order of arrival

    def acquire(self, timeout_s: float) -> bool:
        """Whether it was had within that time."""
        with self._lock:
            if not self._held:
                self._held = True
                return True
            turn = threading.Lock()
            turn.acquire()
            self._waiting[turn] = _urgent.get()
        if turn.acquire(timeout=timeout_s):
            return True
        with self._lock:
            # Not there any more: it was handed over as the time ended.
            return self._waiting.pop(turn, None) is None

    def release(self) -> None:
        """Hand it to the one who waits longest."""
        with self._lock:
            if not self._waiting:
                self._held = False
                return
            oldest = next(iter(self._waiting))
            turn = next((turn for turn, urgent in self._waiting.items() if urgent()), oldest)
            del self._waiting[turn]
            turn.release()


_gates: dict[str, Gate] = {}
_gates_lock = threading.Lock()


class GatedConnection(sqlite3.Connection):
    """`sqlite3.connect(file, factory=GatedConnection)`: its cursors hold the gate while they write."""

    def __init__(self, database: str, *arguments: Any, **options: Any) -> None:
        super().__init__(database, *arguments, **options)
        with _gates_lock:
            self._gate = _gates.setdefault(str(database), Gate())
        self._holds = False
        self.execute(f"PRAGMA wal_autocheckpoint = {LOG_PAGES}").close()

    def cursor(self, factory: Any = None) -> Any:
        """A cursor that comes through the gate."""
        return super().cursor(factory or _GatedCursor)

    def commit(self) -> None:
        """Commit and let the next one in."""
        try:
            super().commit()
        finally:
            self.let_in()

    def rollback(self) -> None:
        """Roll back and let the next one in."""
        try:
            super().rollback()
        finally:
            self.let_in()

    def close(self) -> None:
        """Close and let the next one in."""
        try:
            super().close()
        finally:
            self._release()

    def enter(self, sql: str) -> None:
        """Wait for the gate if that statement begins a transaction that writes."""
        if (
            self._holds
            or self.in_transaction
            or not sql.lstrip()[:_LONGEST].upper().startswith(_WRITES)
        ):
            return
        self._holds = self._gate.acquire(GATE_TIMEOUT_S)

    def let_in(self) -> None:
        """Give the gate up unless a transaction is still open."""
        if self._holds and not self.in_transaction:
            self._release()

    def _release(self) -> None:
        if self._holds:
            self._holds = False
            self._gate.release()


class _GatedCursor(sqlite3.Cursor):
    connection: GatedConnection

    def execute(self, sql: str, parameters: Any = ()) -> "_GatedCursor":
        self.connection.enter(sql)
        try:
            super().execute(sql, parameters)
        finally:
            self.connection.let_in()
        return self

    def executemany(self, sql: str, parameters: Iterable[Any]) -> "_GatedCursor":
        self.connection.enter(sql)
        try:
            super().executemany(sql, parameters)
        finally:
            self.connection.let_in()
        return self


class SqliteThreads:
    """One thread that writes and `readers` beside it: the urgent first, else who came first.

    Any event loop may ask.
    """

    def __init__(self, writer: sa.Engine, reader: sa.Engine, readers: int) -> None:
        self._writer, self._reader = writer, reader
        self._written = Kept(writer)
        self._read = [Kept(reader) for _ in range(readers)]
        self._checkpoints = Checkpoints(reader)
        self._waiting: deque[Job[Any]] = deque()
        self._urgent: deque[Job[Any]] = deque()
        self._writing = Threads(
            "sqlite-writer", [self._write], lambda: _urgent.set(self._is_waited_for)
        )
        self._reading = Threads("sqlite-reader", [partial(_fetch, kept) for kept in self._read])

    async def transact(self, work: Work[_T], limits: Limits) -> _T:
        """Run `work` in one transaction: committed at the end, rolled back by any exception.

        It may share the transaction with others that wait; each has its own result, and when one
        fails the others are run again without it. Cancelled while it waits, it is not run. Cancelled
        while it runs, it ends by itself soon and is rolled back, unless its commit has begun.
        Raises TimeoutError, and StorageUnavailable when it was not begun in time.
        """
        job = Job(work, limits, urgent=_urgent.get()())
        (self._urgent if job.urgent else self._waiting).append(job)
        self._writing.put(job)
        return await job.outcome()

    async def fetch(self, work: Work[_T], limits: Limits) -> _T:
        """Run reading `work`; every statement sees what is committed when it starts."""
        job = Job(work, limits)
        self._reading.put(job)
        return await job.outcome()

    async def close(self) -> None:
        """Wait for what still runs and give the connections back."""
        await closed(self._close)

    def _close(self) -> None:
        self._writing.close()
        self._reading.close()
        self._checkpoints.close()
        for kept in (self._written, *self._read):
            kept.close()
        self._writer.dispose()
        self._reader.dispose()

    def _write(self, _one: Job[Any]) -> None:
        """Everything that waits now, in turn; nothing if an earlier call took it along."""
        jobs: list[Job[Any]] = []
        try:
            self._share(jobs)
        except _Failed as failed:
            if len(jobs) == 1:
                jobs[0].tell(failed.error)
                return
            for job in jobs:
                alone(job, self._written.writing)
        except BaseException as error:  # noqa: BLE001 - raised where the work was asked for
            first = [] if jobs else [self._next()]  # the file was not to be had
            for job in filter(None, [*jobs, *first]):
                job.tell(error)
        else:
            for job in jobs:
                job.tell()
            if jobs:
                self._checkpoints.wrote()

    def _is_waited_for(self) -> bool:
        return bool(self._urgent)

    def _share(self, jobs: list[Job[Any]]) -> None:
        """Run what waits in one transaction and add it to `jobs`.

        Raises _Failed when one of them failed, and what the transaction itself failed with.
        """
        if not (self._urgent or self._waiting):
            return
        with self._written.writing() as connection:
            ends_at = time.monotonic() + SHARED_S
            # The first only now: who came meanwhile may be urgent. Those let nobody else delay them.
            while job := self._next(only_urgent=any(each.urgent for each in jobs)):
                jobs.append(job)
                try:
                    job.run(connection)
                except BaseException as error:
                    raise _Failed(error) from error
                if time.monotonic() >= ends_at:
                    break
            if any(each.given_up for each in jobs):
                raise _Failed(GivenUp())

    def _next(self, *, only_urgent: bool = False) -> Job[Any] | None:
        for waiting in (self._urgent,) if only_urgent else (self._urgent, self._waiting):
            while waiting:
                job = waiting.popleft()
                if not job.given_up:
                    return job
        return None


def _fetch(kept: Kept, job: Job[Any]) -> None:
    if not job.given_up:
        alone(job, kept.reading)


class _Failed(Exception):
    """One of those that shared a transaction raised `error`."""

    def __init__(self, error: BaseException) -> None:
        super().__init__()
        self.error = error
