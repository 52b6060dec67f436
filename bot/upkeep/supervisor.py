"""Runs worker processes: starts them, restarts one that dies, and ends them together.

The supervisor serves nothing itself. A pipe to each worker carries the start parameters to the worker
and the worker's state back. When the supervisor dies the pipe closes, and the worker stops as at SIGTERM.
"""

import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing import Pipe
from multiprocessing.connection import Connection, wait
from typing import Any, Final

import structlog

from bot.upkeep.signals import TAKEN, Signals

MOST_FAILURES: Final = 5  # in a row of one worker, while no other worker serves
FAILED: Final = 1
_LOOK_S: Final = 60.0  # the longest time between two looks for ended processes

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class RestartPolicy:
    """How long the supervisor waits, in seconds.

    A replica ends within 30 s (docs/operating.md). A worker that does not end within `stop_s` is
    killed. A worker that served for `steady_s` is restarted at once. Any other is restarted after
    `pause_s`, doubled for each failure in a row, up to `longest_pause_s`.
    """

    stop_s: float = 29.0
    steady_s: float = 60.0
    pause_s: float = 1.0
    longest_pause_s: float = 30.0

    def pause(self, failures: int) -> float:
        """The pause before a restart after so many failures in a row."""
        doubled = self.pause_s * 2.0 ** (failures - 1)
        return min(self.longest_pause_s, doubled) if failures else 0.0


@dataclass(slots=True, eq=False)
class _Slot:
    number: int
    pid: int = 0
    link: Connection | None = None
    serving_since: float | None = None
    failures: int = 0
    start_at: float = 0.0


class Supervisor:
    """Keeps `count` workers running until a stop signal. The caller has taken `signals` already.

    `command` starts a worker in `environment`; the number of the worker's end of the pipe is appended. `parameters`
    gives what a worker receives first, by its number. `on_ready` is called once all workers serve,
    `on_stop` at the first stop signal, `on_reload` with the state of a worker that has reloaded.
    """

    def __init__(
        self,
        count: int,
        command: Sequence[str],
        environment: Mapping[str, str],
        parameters: Callable[[int], object],
        signals: Signals,
        *,
        on_ready: Callable[[], None],
        on_stop: Callable[[], None],
        on_reload: Callable[[Any], None],
        policy: RestartPolicy = RestartPolicy(),
    ) -> None:
        self._slots = [_Slot(number) for number in range(count)]
        self._command = command
        self._environment = environment
        self._parameters = parameters
        self._signals = signals
        self._on_ready = on_ready
        self._on_stop = on_stop
        self._on_reload = on_reload
        self._policy = policy
        self._was_served = self._was_ready = self._is_reloading = False
        self._kill_at: float | None = None
        self._code = 0

    def run(self) -> int:
        """Run until all workers have ended; returns the exit code.

        While one worker serves, a failing worker is restarted with growing pauses. The run ends with
        the failing worker's exit code when no worker has ever served, or when none serves and one has
        failed `MOST_FAILURES` times in a row.
        """
        with _signal_socket() as woken:
            while True:
                self._reap()
                self._handle_signals()
                if self._kill_at is not None and not self._running():
                    return self._code
                for slot in self._due():
                    self._start(slot)
                self._wait(woken)

    def _running(self) -> list[_Slot]:
        return [slot for slot in self._slots if slot.pid]

    def _reap(self) -> None:
        """Collect ended workers; as PID 1 of a container, also the orphans of a dead worker."""
        with suppress(ChildProcessError):
            while (ended := os.waitpid(-1, os.WNOHANG))[0]:
                for slot in self._running():
                    if slot.pid == ended[0]:
                        self._ended(slot, os.waitstatus_to_exitcode(ended[1]))

    def _ended(self, slot: _Slot, code: int) -> None:
        while slot.link is not None and slot.link.poll():
            self._receive(slot)  # it may have served for a moment
        now, since = time.monotonic(), slot.serving_since
        _close(slot)
        slot.pid, slot.serving_since = 0, None
        if self._kill_at is not None:
            self._code = self._code or (FAILED if code else 0)
            return
        is_steady = since is not None and now - since >= self._policy.steady_s
        slot.failures = 0 if is_steady else slot.failures + 1
        pause_s = self._policy.pause(slot.failures)
        slot.start_at = now + pause_s
        others_serve = any(each.serving_since is not None for each in self._slots)
        if not self._was_served or (slot.failures >= MOST_FAILURES and not others_serve):
            _log.error("worker.abandoned", worker=slot.number, code=code)
            self._code = code if code > 0 else FAILED
            self._stop()
        else:
            _log.error("worker.ended", worker=slot.number, code=code, again_in_s=pause_s)

    def _handle_signals(self) -> None:
        """Forward a stop or a reload; kill the workers that outlast the stop."""
        now = time.monotonic()
        if self._signals.stop_asked and self._kill_at is None:
            self._on_stop()
            self._stop()
        if self._signals.take_reload() and self._kill_at is None:
            self._is_reloading = True
            self._send(signal.SIGHUP)
        if self._kill_at is not None and now >= self._kill_at:
            _log.error("worker.killed", workers=[slot.number for slot in self._running()])
            self._send(signal.SIGKILL)
            self._kill_at = now + self._policy.stop_s

    def _stop(self) -> None:
        self._kill_at = time.monotonic() + self._policy.stop_s
        self._send(signal.SIGTERM)

    def _send(self, number: int) -> None:
        for slot in self._running():
            os.kill(slot.pid, number)  # not reaped yet, so the pid is still the worker's

    def _due(self) -> Sequence[_Slot]:
        if self._kill_at is not None or (not self._was_served and self._running()):
            return ()
        now = time.monotonic()
        due = [slot for slot in self._slots if not slot.pid and slot.start_at <= now]
        return due if self._was_served else due[:1]

    def _start(self, slot: _Slot) -> None:
        ours, theirs = Pipe()
        os.set_inheritable(theirs.fileno(), True)
        command = [*self._command, str(theirs.fileno())]
        try:
            # The worker takes the held signals once it has handlers for them (`Link.watch`).
            slot.pid = os.posix_spawn(command[0], command, self._environment, setsigmask=TAKEN)
        except OSError as error:
            _log.error("worker.not_started", why=error.strerror)
            ours.close()
            self._ended(slot, FAILED)
            return
        finally:
            theirs.close()
        slot.link = ours
        with suppress(OSError):  # it died at once, which is noticed by its exit code
            ours.send(self._parameters(slot.number))
        if self._is_reloading:  # its parameters may be those of before the reload
            os.kill(slot.pid, signal.SIGHUP)

    def _wait(self, woken: socket.socket) -> None:
        """Until a signal, a message, or the next start or kill is due."""
        if self._kill_at is not None:
            times = [self._kill_at]
        else:
            times = [slot.start_at for slot in self._slots if self._was_served and not slot.pid]
        wait_s = max(0.0, min([*times, time.monotonic() + _LOOK_S]) - time.monotonic())
        links = {slot.link: slot for slot in self._running() if slot.link is not None}
        ready = wait([woken, *links], wait_s)
        if woken in ready:
            woken.recv(4096)
        for link, slot in links.items():
            if link in ready:
                self._receive(slot)

    def _receive(self, slot: _Slot) -> None:
        """The first message says that the worker serves, each further one that it has reloaded."""
        if slot.link is None:
            return
        try:
            state = slot.link.recv()
        except (EOFError, OSError):
            _close(slot)
            return
        if slot.serving_since is None:
            slot.serving_since, self._was_served = time.monotonic(), True
            if not self._was_ready and all(each.serving_since for each in self._slots):
                self._was_ready = True
                self._on_ready()
        else:
            self._is_reloading = False
            self._on_reload(state)


class Link:
    """A worker's end of the pipe to its supervisor."""

    def __init__(self, descriptor: int) -> None:
        self._pipe = Connection(descriptor)
        os.set_inheritable(descriptor, False)

    def parameters(self) -> Any:
        """What the supervisor gave this worker. Raises SystemExit when the supervisor is gone."""
        try:
            return self._pipe.recv()
        except EOFError:
            sys.exit(FAILED)

    def watch(self) -> None:
        """Let held signals through, and stop as at SIGTERM when the supervisor dies."""
        signal.pthread_sigmask(signal.SIG_UNBLOCK, TAKEN)
        threading.Thread(target=self._stop_without_supervisor, daemon=True).start()

    def report(self, state: object = None) -> None:
        """Report to the supervisor that this worker serves, later that it has reloaded, and its
        state.
        """
        with suppress(OSError):  # a dead supervisor is noticed by `watch`
            self._pipe.send(state)

    def _stop_without_supervisor(self) -> None:
        with suppress(EOFError, OSError):
            self._pipe.recv()
        os.kill(os.getpid(), signal.SIGTERM)


@contextmanager
def _signal_socket() -> Iterator[socket.socket]:
    """A socket that becomes readable at every signal that has a handler."""
    woken, wake = socket.socketpair()
    with woken, wake:
        wake.setblocking(False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(wake.fileno(), warn_on_full_buffer=False)
        try:
            yield woken
        finally:
            signal.set_wakeup_fd(-1)


def _close(slot: _Slot) -> None:
    if slot.link is not None:
        slot.link.close()
    slot.link = None
