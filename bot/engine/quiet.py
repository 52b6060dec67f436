"""The workflow library's clocks that keep time for what nothing here asks of it, stopped.

Each second it lists queues and schedules of the database, and writes twice for delayed and overdue
work; a hundred times a second it looks whether anybody is to be told of an event. There is none:
work is started at once, none has a deadline, and nobody waits for events. What is carried on after a
crash goes through the library's own queue, which is looked at often while something may be in it.
"""

import threading
import time
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Final

from dbos import DBOS
from dbos import _dbos as launching
from dbos._queue import queue_worker_thread
from dbos._sys_db import SystemDatabase

_OWN_QUEUE: Final = "queue_thread"
_NEVER_NEEDED: Final = ("background_jobs_thread", "dynamic_scheduler_loop")
_LISTENER, _NOTIFIER = "run_notification_listener", "run_notifier"
HURRIED_S: Final = 60.0
LATER_S: Final = 30.0


class OwnQueue(threading.Event):
    """When an engine looks at the library's own queue: it is what that thread waits for in between.

    As often as the library would, for `HURRIED_S` from the start and from when work is known to be
    in it; otherwise each `LATER_S`. Set, it ends the thread.
    """

    def __init__(self) -> None:
        super().__init__()
        self._hurried_at = time.monotonic()
        self._woken: SimpleQueue[None] = SimpleQueue()  # to put into it waits for no lock

    def hurry(self) -> None:
        """There is work in it: look now, and often. From any thread, and any event loop."""
        self._hurried_at = time.monotonic()
        self._wake()

    def set(self) -> None:
        """Look no more."""
        super().set()
        self._wake()

    def _wake(self) -> None:
        if self._woken.empty():
            self._woken.put(None)

    def wait(self, timeout: float | None = None) -> bool:
        """Until it is set or in a hurry, for `timeout` seconds or longer. Whether it is set."""
        if time.monotonic() - self._hurried_at >= HURRIED_S:
            timeout = max(timeout or 0.0, LATER_S)
        if not self.is_set():
            with suppress(Empty):
                self._woken.get(timeout=timeout)
        return self.is_set()

    def look_after(self, _: threading.Event, dbos: DBOS) -> None:
        """In place of a look each second for more queues, and a thread for this one beside it."""
        queue_worker_thread(self, dbos, dbos._registry.get_internal_queue())  # noqa: SLF001


def stop_needless_clocks(own_queue: OwnQueue, *, on_postgresql: bool) -> None:
    """For every engine that this process starts from now on.

    The library has no settings for them. A release of it that names them otherwise would have them
    run again, no more.
    """
    setattr(launching, _OWN_QUEUE, own_queue.look_after)
    for name in _NEVER_NEEDED:
        setattr(launching, name, _nothing)
    # Whoever waited for an event all the same would look for it each second.
    setattr(SystemDatabase, _LISTENER, _nothing)
    if on_postgresql:
        from dbos._sys_db_postgres import PostgresSystemDatabase

        setattr(PostgresSystemDatabase, _NOTIFIER, _nothing)


def _nothing(*_: object) -> None:
    """A thread that is started with it has ended."""
