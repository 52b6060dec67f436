"""A stop cancels the work and waits for it; errors come out as they are; nothing is left behind."""

import asyncio
import time
from collections.abc import Awaitable

import pytest

from bot.chat.stopping import Signal, StoppedByPerson, unless_stopped


class Work:
    """Begins, waits to be told, and remembers how it ended."""

    def __init__(self) -> None:
        self.begun = asyncio.Event()
        self.go_on = asyncio.Event()
        self.cancelled = False

    async def run(self) -> str:
        self.begun.set()
        try:
            await self.go_on.wait()
        except asyncio.CancelledError:
            self.cancelled = True
            raise
        return "done"


@pytest.fixture(autouse=True)
async def _no_task_is_left():  # type: ignore[no-untyped-def]
    before = asyncio.all_tasks()
    yield
    assert asyncio.all_tasks() - before <= {asyncio.current_task()}


async def test_work_that_ends_first_gives_its_result() -> None:
    work = Work()
    work.go_on.set()

    assert await unless_stopped(Signal(), work.run()) == "done"


async def test_a_stop_cancels_the_work_within_100_ms() -> None:
    stop, work = Signal(), Work()
    async with asyncio.timeout(5), asyncio.TaskGroup() as group:
        running = group.create_task(_caught(unless_stopped(stop, work.run())))
        await work.begun.wait()
        pressed = time.monotonic()
        stop.set()

    assert isinstance(running.result(), StoppedByPerson)
    assert work.cancelled
    assert time.monotonic() - pressed < 0.1


async def test_a_stop_that_came_before_lets_nothing_finish() -> None:
    stop, work = Signal(), Work()
    stop.set()

    with pytest.raises(StoppedByPerson):
        await unless_stopped(stop, work.run())

    assert work.cancelled


async def test_work_that_is_done_when_the_stop_comes_counts() -> None:
    stop = Signal()

    async def presses_last() -> str:
        stop.set()
        return "done"

    assert await unless_stopped(stop, presses_last()) == "done"


async def test_an_error_of_the_work_comes_out_unwrapped() -> None:
    async def breaks() -> None:
        raise LookupError("as it is")

    with pytest.raises(LookupError, match="as it is"):
        await unless_stopped(Signal(), breaks())


async def test_a_cancellation_from_outside_reaches_the_work_and_is_no_stop() -> None:
    work = Work()
    async with asyncio.timeout(5), asyncio.TaskGroup() as group:
        running = group.create_task(unless_stopped(Signal(), work.run()))
        await work.begun.wait()
        running.cancel()

    assert running.cancelled()
    assert work.cancelled


async def test_work_that_cancels_itself_is_a_bug_and_no_stop() -> None:
    async def leaks() -> None:
        raise asyncio.CancelledError

    with pytest.raises(RuntimeError, match="cancelled itself"):
        await unless_stopped(Signal(), leaks())


async def test_when_the_work_is_done_the_stop_is_not_waited_for_any_longer() -> None:
    let_go = asyncio.Event()

    class Watched(Signal):
        async def wait(self) -> None:
            try:
                await super().wait()
            finally:
                let_go.set()

    work = Work()
    work.go_on.set()

    await unless_stopped(Watched(), work.run())

    assert let_go.is_set()


async def _caught(work: Awaitable[object]) -> object:
    try:
        return await work
    except StoppedByPerson as stopped:
        return stopped
