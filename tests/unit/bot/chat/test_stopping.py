"""A stop cancels the work and waits for it; errors come out as they are; nothing is left behind."""

import asyncio
import time
from collections.abc import Awaitable, Callable

import pytest

from bot.chat.stopping import Signal, StoppedByPerson, unless_stopped


class Work:
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


async def test_an_earlier_stop_cancels_the_work() -> None:
    stop, work = Signal(), Work()
    stop.set()

    with pytest.raises(StoppedByPerson):
        await unless_stopped(stop, work.run())

    assert work.cancelled


async def test_work_that_is_finished_when_the_stop_arrives_counts() -> None:
    stop = Signal()

    async def presses_last() -> str:
        stop.set()
        return "done"

    assert await unless_stopped(stop, presses_last()) == "done"


async def test_an_error_of_the_work_is_raised_unwrapped() -> None:
    async def breaks() -> None:
        raise LookupError("as it is")

    with pytest.raises(LookupError, match="as it is"):
        await unless_stopped(Signal(), breaks())


async def test_an_outside_cancellation_reaches_the_work_and_is_not_a_stop() -> None:
    work = Work()
    async with asyncio.timeout(5), asyncio.TaskGroup() as group:
        running = group.create_task(unless_stopped(Signal(), work.run()))
        await work.begun.wait()
        running.cancel()

    assert running.cancelled()
    assert work.cancelled


async def test_work_that_cancels_itself_is_a_bug_and_not_a_stop() -> None:
    async def leaks() -> None:
        raise asyncio.CancelledError

    with pytest.raises(RuntimeError, match="cancelled itself"):
        await unless_stopped(Signal(), leaks())


async def test_finished_work_is_removed_from_the_stop() -> None:
    held: list[Callable[[], object]] = []

    class Watched(Signal):
        def then(self, call: Callable[[], object]) -> Callable[[], None]:
            held.append(call)
            take_back = super().then(call)

            def taken_back() -> None:
                take_back()
                held.remove(call)

            return taken_back

    work = Work()
    work.go_on.set()

    await unless_stopped(Watched(), work.run())

    assert not held


async def test_one_stop_ends_all_current_and_later_work() -> None:
    stop, works = Signal(), [Work(), Work(), Work()]
    async with asyncio.timeout(5), asyncio.TaskGroup() as group:
        running = [group.create_task(_caught(unless_stopped(stop, w.run()))) for w in works[:2]]
        for work in works[:2]:
            await work.begun.wait()
        stop.set("U1")
        stop.set("U2")
    with pytest.raises(StoppedByPerson):
        await unless_stopped(stop, works[2].run())

    assert [isinstance(each.result(), StoppedByPerson) for each in running] == [True, True]
    assert all(work.cancelled for work in works)
    assert (stop.requested, stop.by) == (True, "U1")


async def test_a_stop_that_the_work_outlives_does_not_change_its_result() -> None:
    stop, begun = Signal(), asyncio.Event()

    async def ends_in_peace() -> str:
        begun.set()
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            await asyncio.sleep(0)
        return "done"

    async with asyncio.timeout(5), asyncio.TaskGroup() as group:
        running = group.create_task(unless_stopped(stop, ends_in_peace()))
        await begun.wait()
        stop.set()

    assert running.result() == "done"


async def test_an_outside_cancellation_is_raised_even_if_the_work_swallows_it() -> None:
    begun = asyncio.Event()

    async def swallows() -> str:
        begun.set()
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            return "swallowed"
        return "done"

    async with asyncio.timeout(5), asyncio.TaskGroup() as group:
        running = group.create_task(unless_stopped(Signal(), swallows()))
        await begun.wait()
        running.cancel()

    assert running.cancelled()


async def test_a_surrounding_timeout_is_a_timeout_and_not_a_stop() -> None:
    work = Work()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            await unless_stopped(Signal(), work.run())

    assert work.cancelled


async def _caught(work: Awaitable[object]) -> object:
    try:
        return await work
    except StoppedByPerson as stopped:
        return stopped
