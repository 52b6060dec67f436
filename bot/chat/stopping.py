"""A person's stop, and a piece of work raced against it."""

import asyncio
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, TypeVar

from bot.ports.durability import StopSignal

T = TypeVar("T")


class StoppedByPerson(Exception):
    """A person pressed Stop; the work was cancelled."""


async def unless_stopped(stop: StopSignal, work: Coroutine[Any, Any, T]) -> T:
    """The work's result. Raises StoppedByPerson when the stop came first, and what the work raised.

    The work is cancelled and awaited, so nothing of it goes on afterwards. Work that cancels itself
    is a bug, never a stop: RuntimeError.
    """
    own = asyncio.current_task()
    assert own is not None  # noqa: S101 - a coroutine is run by a task
    cancelled_before = own.cancelling()
    loop = asyncio.get_running_loop()
    working = loop.create_task(work)
    # Deferred: finished work completes, and unstarted work starts.
    take_back = stop.then(partial(loop.call_soon, working.cancel))
    try:
        result = await working
    except asyncio.CancelledError:
        if own.cancelling() > cancelled_before:
            raise
        if stop.requested:
            raise StoppedByPerson from None
        raise RuntimeError("the work cancelled itself") from None
    finally:
        take_back()
    if own.cancelling() > cancelled_before:  # and the work went on to its end all the same
        raise asyncio.CancelledError
    return result


class Signal:
    __slots__ = ("__weakref__", "_calls", "by", "requested")

    def __init__(self) -> None:
        self._calls: list[Callable[[], object]] = []
        self.requested = False
        self.by = ""

    def then(self, call: Callable[[], object]) -> Callable[[], None]:
        if self.requested:
            call()
        self._calls.append(call)
        return partial(self._calls.remove, call)

    def set(self, by: str = "") -> None:
        """A person asked for a stop; the first one is named."""
        self.by = self.by or by
        if self.requested:
            return
        self.requested = True
        for call in list(self._calls):
            call()
