"""SIGTERM, SIGINT and SIGHUP of a process that serves: taken first, kept until it has ended.

Python's own handlers, not the loop's: a loop that closes puts the defaults back, and the default of
each of these is to die on the spot. Imports nothing slow: this runs before everything else.
"""

import signal
from collections.abc import Callable
from contextlib import suppress
from types import FrameType
from typing import Final

TAKEN: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


class Signals:
    """The requests so far. Their consumer registers with `tell`."""

    def __init__(self, *, hangup_stops: bool = False) -> None:
        """`hangup_stops`: SIGHUP is a terminal that was closed, not a configuration to read."""
        self._hangup_stops = hangup_stops
        self._told: Callable[[], object] | None = None
        self._reload = False
        self.stop_asked = False

    def take(self) -> None:
        """From now on no such signal kills. Nothing in a thread that is not the main one."""
        with suppress(ValueError):
            for number in TAKEN:
                signal.signal(number, self._on)

    def tell(self, told: Callable[[], object] | None) -> None:
        """Call that at every signal, between any two instructions of the main thread."""
        self._told = told

    def take_reload(self) -> bool:
        """Whether a reload was asked since the last call."""
        asked, self._reload = self._reload, False
        return asked

    def ignore(self) -> None:
        """The last thing of a process: the interpreter's end would put the other defaults back."""
        with suppress(ValueError):
            for number in TAKEN:
                signal.signal(number, signal.SIG_IGN)

    def _on(self, number: int, _frame: FrameType | None) -> None:
        if number == signal.SIGHUP and not self._hangup_stops:
            self._reload = True
        else:
            self.stop_asked = True
        if self._told is not None:
            self._told()


def heeding(signals: Signals, serve: Callable[[Signals], int]) -> int:
    """Serve with signals that are taken before the imports, which last a second, and to the end."""
    signals.take()
    try:
        return serve(signals)
    finally:
        signals.ignore()
