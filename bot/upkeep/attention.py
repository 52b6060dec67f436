"""What a running loop does about signals: a stop ends the start or begins the drain."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

import structlog

from bot.upkeep.signals import Signals

_log = structlog.get_logger(__name__)


class StoppedEarly(Exception):
    """The stop came during the start; the open parts were closed again."""


class Attention:
    """Signals as events of one loop, including earlier ones."""

    def __init__(self, signals: Signals) -> None:
        self._signals = signals
        self._starting: asyncio.Task[object] | None = None
        self.stop = asyncio.Event()
        self.reload = asyncio.Event()

    @contextmanager
    def paid(self) -> Iterator[None]:
        """Heed signals until the context ends. Afterwards they are noted and change nothing."""
        loop = asyncio.get_running_loop()
        self._signals.tell(lambda: loop.call_soon_threadsafe(self._look))
        self._look()
        try:
            yield
        finally:
            self._signals.tell(None)

    @contextmanager
    def starting(self) -> Iterator[None]:
        """A stop cancels what runs in here, which closes what it has opened. Raises StoppedEarly."""
        task = self._starting = asyncio.current_task()
        if self.stop.is_set():
            raise StoppedEarly
        try:
            yield
        except asyncio.CancelledError:
            if self._starting is None and task is not None and task.uncancel() == 0:
                raise StoppedEarly from None
            raise
        finally:
            self._starting = None

    def _look(self) -> None:
        if self._signals.stop_asked:
            self.stop.set()
            if (task := self._starting) is not None:
                self._starting = None
                task.cancel()
        if not self._signals.take_reload():
            return
        if self.stop.is_set():
            _log.info("config.reload.refused", why="stopping", kept="what was in force")
        else:
            self.reload.set()
