"""The edit scheduler on a real loop: order, errors, cancellation."""

import asyncio
import time
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import replace

import pytest

from bot.ports.failures import SurfaceFailed, SurfaceGone
from bot.slack.api.web_api import RateLimited
from bot.slack.delivery.edit_queue import EditQueue, EditSlot
from bot.slack.delivery.pacing import EditPlanner, Rates, Urgency
from bot.slack.delivery.scheduler import EditScheduler

QUICK = Rates(message_gap_s=0.0, edits_per_minute=1e9)


class Message:
    """Something to edit: counts edits, can hold them and fail them."""

    def __init__(self) -> None:
        self.edits = 0
        self.calls_slack = True
        self.edited = asyncio.Event()
        self.gate = asyncio.Event()
        self.gate.set()
        self.begun = asyncio.Event()
        self.errors: list[Exception] = []

    async def edit(self) -> bool:
        """One edit."""
        self.begun.set()
        await self.gate.wait()
        self.edits += 1
        self.edited.set()
        if self.errors:
            raise self.errors.pop(0)
        return self.calls_slack

    async def until_edited(self) -> None:
        """Wait for the next edit."""
        async with asyncio.timeout(2):
            await self.edited.wait()
        self.edited.clear()


async def test_a_change_is_edited() -> None:
    message = Message()
    async with EditScheduler(QUICK).running() as scheduler:
        scheduler.open(message.edit).changed()
        await message.until_edited()

    assert message.edits == 1


async def test_a_final_waits_for_the_running_edit_and_is_the_last() -> None:
    message = Message()
    message.gate.clear()
    async with EditScheduler(QUICK).running() as scheduler:
        slot = scheduler.open(message.edit)
        slot.changed()
        async with asyncio.timeout(2):
            await message.begun.wait()
        slot.changed()
        waiting = asyncio.ensure_future(slot.permit())
        await asyncio.sleep(0)
        assert not waiting.done()
        message.gate.set()
        async with asyncio.timeout(2):
            await waiting
        slot.close()

    assert message.edits == 1


@pytest.mark.parametrize(
    "error", [SurfaceFailed("no", retryable=True), SurfaceFailed("no", retryable=False), KeyError("bug")]
)  # fmt: skip
async def test_a_failed_progress_edit_stops_no_message(
    error: Exception,
) -> None:
    failing, other = Message(), Message()
    failing.errors.append(error)
    async with EditScheduler(QUICK).running() as scheduler:
        slot = scheduler.open(failing.edit)
        slot.changed()
        await failing.until_edited()
        slot.changed()
        await failing.until_edited()
        scheduler.open(other.edit).changed()
        await other.until_edited()


async def test_a_gone_message_is_edited_only_for_its_final() -> None:
    message = Message()
    message.errors.append(SurfaceGone("gone"))
    async with EditScheduler(QUICK).running() as scheduler:
        slot = scheduler.open(message.edit)
        slot.changed()
        await message.until_edited()
        slot.changed()
        async with asyncio.timeout(2):
            await slot.permit()

    assert message.edits == 1


async def test_a_rate_limit_delays_all_edits_as_long_as_slack_says() -> None:
    loop = asyncio.get_running_loop()
    message = Message()
    scheduler = EditScheduler(QUICK)
    async with scheduler.running():
        began = loop.time()
        scheduler.rate_limited(RateLimited("chat.update", 0.2))
        scheduler.open(message.edit).changed()
        await message.until_edited()

    assert loop.time() - began >= 0.2


async def test_a_rate_limited_edit_is_repeated() -> None:
    message = Message()
    message.errors.append(RateLimited("chat.update", 0.01))
    async with EditScheduler(QUICK).running() as scheduler:
        scheduler.open(message.edit).changed()
        await message.until_edited()
        await message.until_edited()

    assert message.edits == 2


async def test_posts_of_one_channel_are_paced_and_those_of_another_are_not() -> None:
    loop = asyncio.get_running_loop()
    async with EditScheduler(Rates(post_burst=1, posts_per_s=10)).running() as scheduler:
        began = loop.time()
        await scheduler.post_permit("C1")
        await scheduler.post_permit("C2")
        between = loop.time() - began
        await scheduler.post_permit("C1")

    assert between < 0.1
    assert loop.time() - began >= 0.1


async def test_posts_of_all_channels_together_are_paced() -> None:
    loop = asyncio.get_running_loop()
    rates = Rates(all_posts_burst=2, all_posts_per_minute=600)
    async with EditScheduler(rates).running() as scheduler:
        began = loop.time()
        for channel in ("C1", "C2", "C3"):
            await scheduler.post_permit(channel)

    assert loop.time() - began >= 0.1


async def test_a_post_s_rate_limit_delays_its_channel() -> None:
    loop = asyncio.get_running_loop()
    async with EditScheduler().running() as scheduler:
        began = loop.time()
        scheduler.rate_limited(RateLimited("chat.postMessage", 0.15), "C1")
        await scheduler.post_permit("C1")

    assert loop.time() - began >= 0.15


async def test_a_cancelled_wait_for_a_final_does_not_affect_other_waits() -> None:
    scheduler = EditScheduler(Rates(edit_burst=1, edits_per_minute=1_200, message_gap_s=0))
    async with scheduler.running():
        await scheduler.edit_permit()
        waiting = asyncio.ensure_future(scheduler.edit_permit())
        await asyncio.sleep(0)
        waiting.cancel()
        async with asyncio.timeout(2):
            await scheduler.edit_permit()


async def test_the_end_cancels_a_hanging_edit() -> None:
    message = Message()
    message.gate.clear()
    scheduler = EditScheduler(QUICK)
    async with asyncio.timeout(2), scheduler.running():
        scheduler.open(message.edit).changed()
        await message.begun.wait()

    assert message.edits == 0


async def test_an_empty_edit_uses_no_permit() -> None:
    message = Message()
    message.calls_slack = False
    once_an_hour = Rates(edit_burst=1, edits_per_minute=1 / 60, message_gap_s=0, progress_share=1e9)
    async with EditScheduler(once_an_hour).running() as scheduler:
        slot = scheduler.open(message.edit)
        slot.changed()
        await message.until_edited()
        slot.changed()
        await message.until_edited()

    assert message.edits == 2


METHODS = {"chat.update", "chat.appendStream", "chat.startStream", "chat.stopStream", "chat.postMessage"}  # fmt: skip


async def allowed(scheduler: EditScheduler) -> set[str]:
    """The methods that may be called now."""
    may = {"chat.startStream"} if scheduler.take_stream() else set()
    edit, append = Message(), Message()
    scheduler.open(edit.edit).changed()
    scheduler.open_stream(append.edit).changed()
    waits = {
        "chat.update": edit.until_edited(),
        "chat.appendStream": append.until_edited(),
        "chat.stopStream": scheduler.stop_permit(),
        "chat.postMessage": scheduler.post_permit("C1"),
    }
    tasks = {name: asyncio.ensure_future(wait) for name, wait in waits.items()}
    await asyncio.wait(tasks.values(), timeout=0.02)
    may |= {name for name, task in tasks.items() if task.done()}
    for task in tasks.values():
        task.cancel()
    await asyncio.wait(tasks.values())
    return may


@pytest.mark.parametrize("limited", sorted(METHODS))
async def test_a_429_delays_only_its_own_method(limited: str) -> None:
    async with EditScheduler(QUICK, lambda: 1000.0).running() as scheduler:
        scheduler.rate_limited(RateLimited(limited, 60.0), "C1")

        assert await allowed(scheduler) == METHODS - {limited}


async def test_the_number_of_streams_started_is_limited() -> None:
    clock = [1000.0]
    async with EditScheduler(Rates(), lambda: clock[0]).running() as scheduler:
        begun = [scheduler.take_stream() for _ in range(12)]
        clock[0] += 60
        later = [scheduler.take_stream() for _ in range(12)]

    assert (begun.count(True), later.count(True)) == (8, 8)


async def test_the_number_of_open_streams_is_limited() -> None:
    async with EditScheduler(QUICK, lambda: 1000.0).running() as scheduler:
        slots = [scheduler.open_stream(Message().edit) for _ in range(Rates().streams_at_once)]
        full = scheduler.take_stream()
        slots[0].close()

        assert (full, scheduler.take_stream()) == (False, True)


async def test_a_wait_for_a_closed_place_ends() -> None:
    async with EditScheduler(Rates(edit_burst=1), lambda: 1000.0).running() as scheduler:
        await scheduler.edit_permit()
        slot = scheduler.open()
        waiting = asyncio.ensure_future(slot.permit())
        await asyncio.sleep(0)
        slot.close()
        async with asyncio.timeout(2):
            await waiting


async def _no_edit() -> bool:
    return False


@pytest.mark.parametrize(
    "opened",
    [
        lambda scheduler: scheduler.open(),
        lambda scheduler: scheduler.open(_no_edit),
        lambda scheduler: scheduler.open_stream(_no_edit),
        lambda scheduler: scheduler.open_post("C1", _no_edit),
    ],
    ids=["a message without edits", "an edited message", "a stream", "a post"],
)
@pytest.mark.parametrize("urgency", Urgency)
async def test_a_closed_place_is_refused_and_never_awaited(
    opened: Callable[[EditScheduler], EditSlot], urgency: Urgency
) -> None:
    async with EditScheduler(QUICK).running() as scheduler:
        slot = opened(scheduler)
        slot.close()
        async with asyncio.timeout(5):
            with pytest.raises(SurfaceFailed) as refused:
                await slot.permit(urgency)
        assert not refused.value.retryable
        slot.done()  # a caller's `finally` disturbs no other message
        async with asyncio.timeout(5):
            await scheduler.edit_permit()


async def test_calls_delayed_by_a_429_are_not_released_all_at_once() -> None:
    rates = Rates(post_burst=2, posts_per_s=1e-6)
    async with EditScheduler(rates).running() as scheduler:
        scheduler.rate_limited(RateLimited("chat.postMessage", 0.02), "C1")
        posts = [asyncio.ensure_future(scheduler.post_permit("C1")) for _ in range(5)]
        async with asyncio.timeout(10):
            await asyncio.wait(posts, return_when=asyncio.FIRST_COMPLETED)
        await asyncio.wait(posts, timeout=0.1)

        assert [post.done() for post in posts].count(True) == 2
        for post in posts:
            post.cancel()
        await asyncio.wait(posts)


class Counting(EditPlanner):
    """Knows how often it was asked who goes next."""

    asked = 0

    def grant(self, now: float) -> int | None:
        self.asked += 1
        return super().grant(now)


async def test_one_timer_serves_all_answers() -> None:
    planner = Counting(replace(Rates.unlimited(), message_gap_s=60.0))
    queue = EditQueue(planner, time.monotonic)
    messages = [Message() for _ in range(20)]
    slots = [queue.open(each.edit) for each in messages]
    running = asyncio.create_task(queue.run())
    for slot, message in zip(slots, messages, strict=True):
        slot.changed()
        await message.until_edited()
        await slot.idle.wait()
    slots[0].changed()
    await asyncio.sleep(0)
    before = planner.asked
    for slot in slots[1:]:
        slot.changed()
        await asyncio.sleep(0)
    after = planner.asked
    running.cancel()

    assert [each.edits for each in messages] == [1] * 20
    assert after == before


async def test_a_change_due_before_the_timer_is_shown_on_time() -> None:
    planner = EditPlanner(replace(Rates.unlimited(), message_gap_s=60.0))
    queue = EditQueue(planner, time.monotonic)
    waiting, new = Message(), Message()
    slot, sooner = queue.open(waiting.edit), queue.open(new.edit)
    running = asyncio.create_task(queue.run())
    slot.changed()
    await waiting.until_edited()
    slot.changed()
    await asyncio.sleep(0)
    sooner.changed()
    await new.until_edited()
    running.cancel()

    assert (waiting.edits, new.edits) == (1, 1)


async def test_a_call_does_not_belong_to_its_waiter() -> None:
    of: ContextVar[str] = ContextVar("of", default="")
    seen: list[str] = []
    queue = EditQueue(EditPlanner(Rates.unlimited()), time.monotonic)

    async def edit() -> bool:
        seen.append(of.get())
        return True

    slots = [queue.open(edit), queue.open(edit)]
    running = asyncio.create_task(queue.run())
    await asyncio.sleep(0)
    of.set("somebody's session")
    for slot in slots:
        slot.changed()
        await asyncio.sleep(0.01)
    running.cancel()

    assert seen == ["", ""]


async def test_nothing_starts_after_the_scheduler_ends() -> None:
    queue = EditQueue(EditPlanner(Rates.unlimited()), time.monotonic)
    begun: list[str] = []

    async def slow() -> bool:
        begun.append("slow")
        try:
            await asyncio.sleep(60)
        finally:
            later.changed()
        return True

    async def other() -> bool:
        begun.append("other")
        return True

    first, later = queue.open(slow), queue.open(other)
    running = asyncio.create_task(queue.run())
    first.changed()
    await asyncio.sleep(0.01)
    running.cancel()
    await asyncio.wait([running])
    await asyncio.sleep(0.01)

    assert begun == ["slow"]
    assert first.idle.is_set()
