"""SQLite writers of this process take turns at a gate, in place of SQLite's polling.

A writer that finds the file locked sleeps and looks again, up to 100 ms each time
(https://www.sqlite.org/c3ref/busy_timeout.html), so under load writers starve while the file is free.
Here they wait for a lock and wake at once, first come first served, but those whom somebody waits
for (`urgent`) before all others: one with a queue of work would otherwise enter again before the
others have woken. Only speed depends on it: SQLite's own lock still
decides, also against other processes.
"""

import sqlite3
import threading
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final

# After this long at the gate a writer leaves the decision to SQLite and its busy timeout.
GATE_TIMEOUT_S: Final = 30.0
_WRITES: Final = ("INSERT", "UPDATE", "DELETE", "REPLACE", "BEGIN IMMEDIATE")


_urgent: ContextVar[bool] = ContextVar("urgent", default=False)


@contextmanager
def urgent(*, is_so: bool = True) -> Iterator[None]:
    """Writes of this context go first, those of tasks and threads begun in it as well."""
    before = _urgent.set(is_so)
    try:
        yield
    finally:
        _urgent.reset(before)


class Gate:
    """A lock that is handed over in the order of arrival, to the urgent first."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._held = False
        self._waiting: deque[threading.Lock] = deque()
        self._urgent: deque[threading.Lock] = deque()

    def acquire(self, timeout_s: float) -> bool:
        """Whether it was had within that time."""
        with self._lock:
            if not self._held:
                self._held = True
                return True
            turn = threading.Lock()
            turn.acquire()
            waiting = self._urgent if _urgent.get() else self._waiting
            waiting.append(turn)
        if turn.acquire(timeout=timeout_s):
            return True
        with self._lock:
            if turn in waiting:
                waiting.remove(turn)
                return False
            return True  # handed over as the time ended

    def release(self) -> None:
        """Hand it to the one who waits longest."""
        with self._lock:
            if waiting := self._urgent or self._waiting:
                waiting.popleft().release()
            else:
                self._held = False


_gates: dict[str, Gate] = {}
_gates_lock = threading.Lock()


class GatedConnection(sqlite3.Connection):
    """`sqlite3.connect(file, factory=GatedConnection)`: its cursors hold the gate while they write."""

    def __init__(self, database: str, *arguments: Any, **options: Any) -> None:
        super().__init__(database, *arguments, **options)
        with _gates_lock:
            self._gate = _gates.setdefault(str(database), Gate())
        self._holds = False

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
        if self._holds or self.in_transaction or not sql.lstrip().upper().startswith(_WRITES):
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
