"""Paced calls of one method that shows live answers.

`bot.slack.delivery.pacing` decides; the queue adds a clock and an event loop. It holds only the
wish to call. The message is rendered at the time of the call.
"""

import asyncio
import math
from collections.abc import Awaitable, Callable
from contextvars import copy_context
from itertools import count

import structlog

from bot.ports.failures import SurfaceFailed, SurfaceGone
from bot.slack.api.web_api import RateLimited
from bot.slack.delivery.pacing import EditPlanner, Urgency
from bot.slack.delivery.posts import PostPlanner

_log = structlog.stdlib.get_logger(__name__)

# Shows the newest state; whether that took a call of the queue's method.
Edit = Callable[[], Awaitable[bool]]


class EditSlot:
    """One message's place in a queue. Made by `EditQueue.open`."""

    def __init__(self, queue: "EditQueue", key: int, edit: Edit | None) -> None:
        self.edit = edit
        self.permission: asyncio.Future[None] | None = None
        self.idle = asyncio.Event()
        self.idle.set()
        self._queue = queue
        self._key = key

    def changed(self, *, first: bool = False) -> None:
        """The message changed; `first`: it has text for the first time. O(1)."""
        self._queue.want(self._key, Urgency.FIRST if first else Urgency.PROGRESS)

    async def permit(self, urgency: Urgency = Urgency.FINAL) -> None:
        """Wait until this message may be shown by the caller, ahead of all that is less urgent.

        No edit of the queue's own is under way or begins until the caller gives the turn back
        with `done`. Raises SurfaceFailed once the slot is closed.
        """
        if not self._queue.is_open(self._key):
            raise SurfaceFailed("its place in the queue is closed", retryable=False)
        self.permission = asyncio.get_running_loop().create_future()
        self._queue.want(self._key, urgency)
        try:
            await self.permission
        finally:
            self.permission = None

    def done(self) -> None:
        """The call that `permit` allowed is over."""
        self._queue.done(self._key)

    def close(self) -> None:
        self._queue.close(self._key)


class EditQueue:
    """The calls of one method. They happen only while `run` runs."""

    def __init__(self, planner: EditPlanner | PostPlanner, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._planner = planner
        self._slots: dict[int, EditSlot] = {}
        self._keys = count()
        self._calls: asyncio.TaskGroup | None = None  # while it runs
        self._context = copy_context()
        self._next: asyncio.Handle | None = None
        self._due = math.inf  # when it looks next

    def open(self, edit: Edit | None = None, channel: str = "") -> EditSlot:
        """A live message. `edit` shows its newest state; it may raise SurfaceGone, SurfaceFailed."""
        key = next(self._keys)
        slot = self._slots[key] = EditSlot(self, key, edit)
        self._planner.open(key, channel)
        return slot

    @property
    def live(self) -> int:
        return len(self._slots)

    def is_open(self, key: int) -> bool:
        return key in self._slots

    def want(self, key: int, urgency: Urgency) -> None:
        now = self._clock()
        if self._planner.want(key, urgency, now):
            self._look_for(now)

    def done(self, key: int) -> None:
        now = self._clock()
        self._planner.finished(key, now)
        self._look_for(now)

    def close(self, key: int) -> None:
        self._planner.close(key)
        slot = self._slots.pop(key, None)
        if slot is not None and slot.permission is not None and not slot.permission.done():
            slot.permission.set_result(None)

    def hold(self, until: float, channel: str = "") -> None:
        """Slack answered 429: wait until then."""
        self._planner.hold(until, channel)

    def expected_s(self, channel: str, urgency: Urgency) -> float:
        """Expected wait of one more message, in seconds."""
        return self._planner.expected_s(channel, urgency, self._clock())

    async def run(self) -> None:
        """Call whenever it is allowed, until cancelled; calls under way are cancelled too."""
        self._context = copy_context()  # a context of its own, not that of the first caller
        async with asyncio.TaskGroup() as calls:
            self._calls = calls
            try:
                self._look()
                await asyncio.get_running_loop().create_future()
            finally:
                self._calls = None
                if self._next is not None:
                    self._next.cancel()

    def _look(self) -> None:
        if (calls := self._calls) is None:
            return
        self._next, self._due = None, math.inf
        now = self._clock()
        while (key := self._planner.grant(now)) is not None:
            self._start(key, calls)
        self._look_for(now)

    def _look_for(self, now: float) -> None:
        """Look when a call is due, if that is before the next look: one timer serves all."""
        if self._calls is None or self._due == -math.inf:
            return
        wait_s = self._planner.wait_s(now)
        if wait_s is None or (wait_s > 0 and now + wait_s >= self._due):
            return
        if self._next is not None:
            self._next.cancel()
        loop = asyncio.get_running_loop()
        if wait_s > 0:
            self._due = now + wait_s
            self._next = loop.call_later(wait_s, self._look, context=self._context)
        else:  # after this turn of the loop: a later caller may be more urgent
            self._due = -math.inf
            self._next = loop.call_soon(self._look, context=self._context)

    def _start(self, key: int, tasks: asyncio.TaskGroup) -> None:
        slot = self._slots[key]
        if slot.permission is not None:
            if not slot.permission.done():
                slot.permission.set_result(None)
        elif slot.edit is not None:
            slot.idle.clear()
            tasks.create_task(self._edit(key, slot, slot.edit))
        else:
            self._planner.unused(key)
            self.done(key)

    async def _edit(self, key: int, slot: EditSlot, edit: Edit) -> None:
        try:
            if not await edit():
                self._planner.unused(key)
        except RateLimited:
            self._planner.want(key, Urgency.PROGRESS, self._clock())
        except SurfaceGone:
            # The final will find out for itself; until then there is nothing to show it in.
            _log.info("slack.answer.gone")
            slot.edit = None
        except SurfaceFailed as error:
            _log.info("slack.edit.failed", error=str(error))
            if error.retryable:
                self._planner.want(key, Urgency.PROGRESS, self._clock())
        except Exception as error:  # noqa: BLE001 one answer's bug must not stop all others' edits
            _log.error("slack.edit.bug", error=type(error).__name__)
        finally:
            slot.idle.set()
            self.done(key)
