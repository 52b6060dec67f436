"""The workflow library's clocks that keep time for what nothing here asks of it, stopped.

Each second it lists queues and schedules of the database, and writes twice for delayed and overdue
work. There is none: work is started at once, none has a deadline, and what is carried on after a
crash goes through the library's own queue, which is still looked at.
"""

import threading
import time
from typing import Final

from dbos import DBOS
from dbos import _dbos as launching
from dbos._queue import queue_worker_thread

_OWN_QUEUE: Final = "queue_thread"
_NEVER_NEEDED: Final = ("background_jobs_thread", "dynamic_scheduler_loop")
# On SQLite a start alone puts anything into the queue: what this process left when it died.
STARTING_S: Final = 60.0
LATER_S: Final = 10.0


def stop_needless_clocks() -> None:
    """For every engine that this process starts from now on.

    The library has no settings for them. A release of it that names them otherwise would have them
    run again, no more.
    """
    setattr(launching, _OWN_QUEUE, _own_queue)
    for name in _NEVER_NEEDED:
        setattr(launching, name, _nothing)


def _own_queue(stop: threading.Event, dbos: DBOS) -> None:
    """In place of a look each second for more queues, and a thread for this one beside it."""
    alone = dbos._sys_db.engine.dialect.name == "sqlite"  # noqa: SLF001
    queue = dbos._registry.get_internal_queue()  # noqa: SLF001
    queue_worker_thread(Unhurried(stop) if alone else stop, dbos, queue)


def _nothing(*_: object) -> None:
    """A thread that is started with it has ended."""


class Unhurried(threading.Event):
    """`stop` for a thread that polls: after a while it waits longer than it was asked to."""

    def __init__(self, stop: threading.Event) -> None:
        super().__init__()
        self._stop = stop
        self._since = time.monotonic()

    def is_set(self) -> bool:
        """Whether `stop` is."""
        return self._stop.is_set()

    def wait(self, timeout: float | None = None) -> bool:
        """Until `stop` is set, for `timeout` seconds; later for `LATER_S`."""
        if timeout is not None and time.monotonic() - self._since >= STARTING_S:
            timeout = max(timeout, LATER_S)
        return self._stop.wait(timeout)
