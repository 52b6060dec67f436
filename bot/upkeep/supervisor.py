"""Several processes of one service: forked when it is imported, watched, and ended together.

The supervisor answers nothing: no event loop, no thread, no connection. It waits for signals and for
processes that end. A worker whose supervisor is gone does as at SIGTERM.
"""

import gc
import os
import select
import signal
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

import structlog

from bot.upkeep.signals import TAKEN, Signals

MOST_FAILURES: Final = 5  # in a row of one worker, while no other one serves
_LOOK_S: Final = (
    60.0  # for processes that nobody waits for any more: in a container we are their parent
)
_FAILED: Final = 1
_SERVES: Final = b"."
_RELOADED: Final = b"r"

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Patience:
    """In seconds.

    A replica ends within 30 s (docs/operating.md); one that does not within `stop_s` is killed, as
    by a crash. Who served for `steady_s` was well, and is started again at once; else after
    `pause_s`, twice as long each time, up to `longest_pause_s`.
    """

    stop_s: float = 29.0
    steady_s: float = 60.0
    pause_s: float = 1.0
    longest_pause_s: float = 30.0

    def pause(self, failures: int) -> float:
        """After so many in a row."""
        doubled = self.pause_s * 2.0 ** (failures - 1)
        return min(self.longest_pause_s, doubled) if failures else 0.0


@dataclass(frozen=True, slots=True)
class Worker:
    """This process, one of those forked: which, from 0, and how it says how it does."""

    number: int
    _told: int

    def serves(self) -> None:
        """Let the supervisor know. One that is gone already will be noticed otherwise."""
        self._say(_SERVES)

    def reloaded(self) -> None:
        """Let the supervisor know that what SIGHUP asked for is in force here."""
        self._say(_RELOADED)

    def _say(self, what: bytes) -> None:
        with suppress(BrokenPipeError):
            os.write(self._told, what)


@dataclass(slots=True)
class _Place:
    """One of the workers there are to be, whichever process it is now."""

    number: int
    pid: int = 0
    told: int = -1
    served_at: float | None = None
    failures: int = 0
    next_at: float = 0.0
    missed: bool = False  # a reload that was passed on before it was started


@dataclass(slots=True)
class Supervisor:
    """Keeps `count` workers. `signals` are taken already.

    `ready` is called once all of them serve, `stopping` when that was asked for.

    As long as one serves, one that does not is started again and again, with longer and longer
    pauses. When none has ever served, or none does and one fails time after time, all is ended with
    the exit code of who failed. `reloading` is called before SIGHUP is passed on, `reloaded` when a
    worker has taken it.
    """

    count: int
    signals: Signals
    ready: Callable[[], None]
    stopping: Callable[[], None]
    patience: Patience = Patience()
    reloading: Callable[[], None] = lambda: None
    reloaded: Callable[[], None] = lambda: None
    _places: Sequence[_Place] = field(init=False)
    _wake: tuple[int, int] = field(init=False)
    _alive: tuple[int, int] = field(init=False)
    _has_served: bool = False
    _was_ready: bool = False
    _is_reloading: bool = False
    _kill_at: float | None = None
    _code: int = 0

    def run(self) -> Worker | int:
        """In each worker who it is; in the supervisor, once all have ended, the exit code.

        Called without threads and before any loop, as for every fork.
        """
        self._places = [_Place(number) for number in range(self.count)]
        self._wake, self._alive = os.pipe(), os.pipe()
        for end in self._wake:
            os.set_blocking(end, False)
        self.signals.tell(self._woken)
        signal.signal(signal.SIGCHLD, lambda *_: self._woken())
        gc.freeze()  # a collection writes to every object that it looks at: pages are shared no more
        while True:
            self._reap()
            self._heed()
            if self._kill_at is not None and not self._running():
                return self._code
            for place in self._due():
                if (worker := self._start(place)) is not None:
                    return worker
            self._wait()

    def _woken(self) -> None:
        with suppress(BlockingIOError):  # woken already, and often
            os.write(self._wake[1], b".")

    def _running(self) -> list[_Place]:
        return [place for place in self._places if place.pid]

    def _reap(self) -> None:
        """Take note of who ended, and of orphans that ended here."""
        with suppress(ChildProcessError):
            while (ended := os.waitpid(-1, os.WNOHANG))[0]:
                for place in self._running():
                    if place.pid == ended[0]:
                        self._ended(place, os.waitstatus_to_exitcode(ended[1]))

    def _ended(self, place: _Place, code: int) -> None:
        self._hear(place)  # it may have served for a moment
        _close(place)
        now, served_at = time.monotonic(), place.served_at
        place.pid, place.served_at = 0, None
        if self._kill_at is not None:
            self._code = self._code or (_FAILED if code else 0)
            return
        steady = served_at is not None and now - served_at >= self.patience.steady_s
        place.failures = 0 if steady else place.failures + 1
        pause_s = self.patience.pause(place.failures)
        place.next_at = now + pause_s
        others = any(each.served_at is not None for each in self._places)
        if not self._has_served or (place.failures >= MOST_FAILURES and not others):
            _log.error("worker.given_up", worker=place.number, code=code)
            self._code = code if code > 0 else _FAILED
            self._stop()
        else:
            _log.error("worker.ended", worker=place.number, code=code, again_in_s=pause_s)

    def _heed(self) -> None:
        """Pass on what was asked for; kill who does not end."""
        now = time.monotonic()
        if self.signals.stop_asked and self._kill_at is None:
            self.stopping()
            self._stop()
        if self.signals.take_reload() and self._kill_at is None:
            self.reloading()
            self._is_reloading = True
            for place in self._running():
                place.missed = False
            self._send(signal.SIGHUP)
        if self._kill_at is not None and now >= self._kill_at:
            _log.error("worker.killed", workers=[place.number for place in self._running()])
            self._send(signal.SIGKILL)
            self._kill_at = now + self.patience.stop_s

    def _stop(self) -> None:
        self._kill_at = time.monotonic() + self.patience.stop_s
        self._send(signal.SIGTERM)

    def _send(self, number: int) -> None:
        for place in self._running():
            os.kill(place.pid, number)  # not reaped yet, so it is nobody else's

    def _due(self) -> Sequence[_Place]:
        """Who is to be started: one by one until the first has served, which finds what is wrong."""
        if self._kill_at is not None or (not self._has_served and self._running()):
            return ()
        now = time.monotonic()
        due = [place for place in self._places if not place.pid and place.next_at <= now]
        return due if self._has_served else due[:1]

    def _start(self, place: _Place) -> Worker | None:
        """In the new process, who it is."""
        ours, theirs = os.pipe()
        sys.stdout.flush()
        # What comes in between is held back until the new process knows what to do about it.
        signal.pthread_sigmask(signal.SIG_BLOCK, (*TAKEN, signal.SIGCHLD))
        try:
            pid = _forked()
            if pid == 0:
                os.close(ours)
                return self._as_worker(Worker(place.number, theirs))
        finally:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, (*TAKEN, signal.SIGCHLD))
        os.close(theirs)
        place.told = ours
        if pid is None:
            self._ended(place, _FAILED)
        else:
            place.pid, place.missed = pid, self._is_reloading
        return None

    def _as_worker(self, worker: Worker) -> Worker:
        self.signals.tell(None)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        for end in (*self._wake, self._alive[1]):
            os.close(end)
        for place in self._places:
            _close(place)
        watch = threading.Thread(target=_stop_without, args=(self._alive[0],), daemon=True)
        watch.start()
        return worker

    def _wait(self) -> None:
        """Until something is heard or due."""
        if self._kill_at is not None:
            times = [self._kill_at]
        else:
            times = [each.next_at for each in self._places if self._has_served and not each.pid]
        wait_s = max(0.0, min([*times, time.monotonic() + _LOOK_S]) - time.monotonic())
        told = {place.told: place for place in self._running() if place.told >= 0}
        heard, _, _ = select.select([self._wake[0], *told], [], [], wait_s)
        if self._wake[0] in heard:
            os.read(self._wake[0], 4096)
        for place in (told[each] for each in heard if each in told):
            self._hear(place)

    def _hear(self, place: _Place) -> None:
        """What it says, if it does."""
        if place.told < 0:
            return
        os.set_blocking(place.told, False)
        try:
            said = os.read(place.told, 4096)
        except BlockingIOError:
            return
        if not said:
            _close(place)
        if _SERVES in said:
            self._serves(place)
        if _RELOADED in said:
            self._taken()

    def _taken(self) -> None:
        self.reloaded()
        self._is_reloading = False
        for place in self._running():
            if place.missed:  # it began with what was held before
                place.missed = False
                os.kill(place.pid, signal.SIGHUP)

    def _serves(self, place: _Place) -> None:
        place.served_at, self._has_served = time.monotonic(), True
        if not self._was_ready and all(each.served_at is not None for each in self._places):
            self._was_ready = True
            self.ready()


def _forked() -> int | None:
    """As `os.fork`; None where the machine has no room for another process now."""
    try:
        return os.fork()
    except OSError as error:
        _log.error("worker.not_forked", why=error.strerror)
        return None


def _close(place: _Place) -> None:
    if place.told >= 0:
        os.close(place.told)
    place.told = -1


def _stop_without(supervisor: int) -> None:
    """Ask this process to stop when the other end of that pipe is closed: only the supervisor has it."""
    while os.read(supervisor, 1):
        pass
    os.kill(os.getpid(), signal.SIGTERM)
