"""An event loop with a settable clock: the next due callback is due now."""

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class _NoWait(selectors.DefaultSelector):
    """Moves the clock on instead of waiting."""

    moved: Callable[[float], None]

    def select(self, timeout: float | None = None) -> Any:
        ready = super().select(0)
        if not ready and timeout:
            self.moved(timeout)
        return ready


class SetTimeLoop(asyncio.SelectorEventLoop):
    """Begins at 0 seconds. Nothing in it may wait for the world outside."""

    def __init__(self) -> None:
        selector = _NoWait()
        selector.moved = self._move
        self._now_s = 0.0
        super().__init__(selector)

    def time(self) -> float:
        return self._now_s

    def _move(self, seconds: float) -> None:
        self._now_s += seconds


def in_set_time(work: Coroutine[Any, Any, T]) -> T:
    """Run it to its end, however long that takes there."""
    with asyncio.Runner(loop_factory=SetTimeLoop) as runner:
        return runner.run(work)
