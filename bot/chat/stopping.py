"""A person's stop, and a piece of work raced against it."""

import asyncio
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, TypeVar

from bot.ports.durability import StopSignal

T = TypeVar("T")


class StoppedByPerson(Exception):
    """Somebody pressed Stop before the work was done; the work was cancelled."""


async def unless_stopped(stop: StopSignal, work: Coroutine[Any, Any, T]) -> T:
    """The work's result. Raises StoppedByPerson when the stop came first, and what the work raised.

    The work is cancelled and awaited, so nothing of it goes on afterwards. Work that cancels itself
    is a bug, never a stop: RuntimeError.
    """
    own = asyncio.current_task()
    assert own is not None  # noqa: S101 - a coroutine is run by a task
    cancelled_before = own.cancelling()
    cut = _Cut(own)
    take_back = stop.then(cut.soon)
    try:
        result = await work
    except asyncio.CancelledError:
        was_cut = cut.take_back()
        if own.cancelling() > cancelled_before:
            raise
        if was_cut or stop.requested:
            raise StoppedByPerson from None
        raise RuntimeError("the work cancelled itself") from None
    finally:
        take_back()
        cut.take_back()
    if own.cancelling() > cancelled_before:  # and the work went on to its end all the same
        raise asyncio.CancelledError
    return result


class _Cut:
    """Cancels what a task is at, and is told from any other cancellation as `asyncio.timeout` tells its own.

    A task of its own for the work would cost two turns of the loop for each round and each call of a tool.
    """

    __slots__ = ("_handle", "_is_done", "_task")

    def __init__(self, task: "asyncio.Task[Any]") -> None:
        self._task = task
        self._handle: asyncio.Handle | None = None
        self._is_done = False

    def soon(self) -> None:
        """Not at once: what is on its way to its end comes to it, and what has not begun begins."""
        if self._handle is None:
            self._handle = self._task.get_loop().call_soon(self._now)

    def take_back(self) -> bool:
        """As if it had never been; whether it had. Harmless twice."""
        if self._handle is not None:
            self._handle.cancel()
        if was_done := self._is_done:
            self._is_done = False
            self._task.uncancel()
        return was_done

    def _now(self) -> None:
        self._is_done = True
        self._task.cancel()


class Signal:
    """A stop that was, or was not, asked for."""

    __slots__ = ("_calls", "by", "requested")

    def __init__(self) -> None:
        self._calls: list[Callable[[], object]] = []
        self.requested = False
        self.by = ""

    def then(self, call: Callable[[], object]) -> Callable[[], None]:
        """See `StopSignal`."""
        if self.requested:
            call()
        self._calls.append(call)
        return partial(self._calls.remove, call)

    def set(self, by: str = "") -> None:
        """Somebody asked the turn to stop; the first of them is named."""
        self.by = self.by or by
        if self.requested:
            return
        self.requested = True
        for call in list(self._calls):
            call()
