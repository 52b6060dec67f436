"""A person's stop, and a piece of work raced against it."""

import asyncio
from collections.abc import Coroutine
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
    async with asyncio.TaskGroup() as group:
        working = group.create_task(_caught(work))
        stopping = group.create_task(stop.wait())
        await asyncio.wait({working, stopping}, return_when=asyncio.FIRST_COMPLETED)
        stopped = stopping.done()
        stopping.cancel()
        working.cancel()
    if working.cancelled():
        raise StoppedByPerson if stopped else RuntimeError("the work cancelled itself")
    result = working.result()
    if isinstance(result, _Raised):
        raise result.error
    return result


class _Raised:
    """An error carried past the task group, which would wrap it in a group of its own."""

    def __init__(self, error: Exception) -> None:
        self.error = error


async def _caught(work: Coroutine[Any, Any, T]) -> T | _Raised:
    try:
        return await work
    except Exception as error:  # noqa: BLE001 - re-raised by unless_stopped, unwrapped
        return _Raised(error)


class Signal:
    """A stop that was, or was not, asked for."""

    def __init__(self) -> None:
        self._event = asyncio.Event()
        self.by = ""

    @property
    def requested(self) -> bool:
        """Whether somebody asked."""
        return self._event.is_set()

    async def wait(self) -> None:
        """Until somebody asks."""
        await self._event.wait()

    def set(self, by: str = "") -> None:
        """Somebody asked the turn to stop; the first of them is named."""
        self.by = self.by or by
        self._event.set()
