"""One scheduler per workspace: it decides when each call that Slack counts may be made.

`bot.slack.sending.pacing` decides about edits; this gives it a clock and an event loop, and paces posts
and look-ups. Nothing is queued here but the wish to edit: what is shown is rendered at the moment
of the edit.
"""

import asyncio
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from itertools import count
from typing import Self

import structlog

from bot.ports.failures import SurfaceFailed, SurfaceGone
from bot.slack.api.web_api import RateLimited
from bot.slack.sending.pacing import Bucket, EditPlanner, Rates, Urgency

_log = structlog.stdlib.get_logger(__name__)

# Shows the newest state; whether that took a call of chat.update.
Edit = Callable[[], Awaitable[bool]]
# Above this many idle channels their posting allowances, long refilled, are forgotten.
_CHANNELS_KEPT = 1_000


class EditSlot:
    """One message's place in the scheduler. Made by `EditScheduler.open`."""

    def __init__(self, scheduler: "EditScheduler", key: int, edit: Edit | None) -> None:
        self.edit = edit
        self.permission: asyncio.Future[None] | None = None
        self.idle = asyncio.Event()
        self.idle.set()
        self._scheduler = scheduler
        self._key = key

    def changed(self, *, first: bool = False) -> None:
        """The message looks different now; `first` when text is there for the first time. O(1)."""
        self._scheduler.want(self._key, Urgency.FIRST if first else Urgency.PROGRESS)

    async def final(self) -> None:
        """Wait until this message may be edited by the caller, ahead of all progress.

        No edit of the scheduler's own is under way or begins until the caller gives the turn back
        with `done`.
        """
        self.permission = asyncio.get_running_loop().create_future()
        self._scheduler.want(self._key, Urgency.FINAL)
        try:
            await self.permission
        finally:
            self.permission = None

    def done(self) -> None:
        """The edit that `final` allowed is over."""
        self._scheduler.done(self._key)

    def close(self) -> None:
        """No more edits."""
        self._scheduler.close(self._key)


class EditScheduler:
    """Paces one workspace. Edits happen only inside `running`."""

    def __init__(
        self, rates: Rates | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.rates = rates or Rates()
        self._clock = clock
        self._planner = EditPlanner(self.rates)
        self._slots: dict[int, EditSlot] = {}
        self._keys = count()
        self._wake = asyncio.Event()
        self._posts: defaultdict[str, Bucket] = defaultdict(self._post_bucket)
        self._all_posts = Bucket(self.rates.all_posts_burst, self.rates.all_posts_per_minute / 60)
        self._reads = Bucket(self.rates.read_burst, self.rates.reads_per_minute / 60)
        self._held: dict[str, float] = {}

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Self]:
        """Edit while the body runs; edits under way are cancelled at its end."""
        async with asyncio.TaskGroup() as tasks:
            pump = tasks.create_task(self._run(), name="slack-edits")
            try:
                yield self
            finally:
                pump.cancel()

    def open(self, edit: Edit | None = None) -> EditSlot:
        """A live message. `edit` shows its newest state; it may raise SurfaceGone, SurfaceFailed."""
        key = next(self._keys)
        slot = self._slots[key] = EditSlot(self, key, edit)
        self._planner.open(key)
        return slot

    def want(self, key: int, urgency: Urgency) -> None:
        """The message with that key looks different now; wakes the pump where an edit is due sooner."""
        if self._planner.want(key, urgency, self._clock()):
            self._wake.set()

    def done(self, key: int) -> None:
        """The edit that was granted to that key is over."""
        self._planner.finished(key, self._clock())
        self._wake.set()

    def close(self, key: int) -> None:
        """Forget that key: its message is edited no more."""
        self._planner.close(key)
        self._slots.pop(key, None)

    async def edit_permit(self) -> None:
        """Wait until a message without a slot, such as a card, may be edited once."""
        slot = self.open()
        try:
            await slot.final()
        finally:
            slot.close()

    async def post_permit(self, channel: str) -> None:
        """Wait until a message may be posted to the channel."""
        if len(self._posts) > _CHANNELS_KEPT:
            self._posts.clear()
        await self._paced(f"chat.postMessage {channel}", self._posts[channel], self._all_posts)

    async def read_permit(self) -> None:
        """Wait until a thread may be read."""
        await self._paced("read", self._reads)

    def rate_limited(self, error: RateLimited, channel: str = "") -> None:
        """Slack answered 429 all the same: wait as long as it says, for that method."""
        until = self._clock() + error.retry_after_s
        if error.method == "chat.update":
            self._planner.hold(until)
            self._wake.set()
        elif error.method == "chat.postMessage":
            self._held[f"{error.method} {channel}"] = until
        else:
            self._held["read"] = until

    async def _paced(self, key: str, *buckets: Bucket) -> None:
        now = self._clock()
        wait_s = max(bucket.wait_s(now, 1) for bucket in buckets)
        for bucket in buckets:
            bucket.take(now)
        if wait_s > 0:
            await asyncio.sleep(wait_s)
        await self._until_released(key)

    async def _until_released(self, key: str) -> None:
        held_s = self._held.get(key, 0.0) - self._clock()
        if held_s <= 0:
            self._held.pop(key, None)
            return
        await asyncio.sleep(held_s)
        await self._until_released(key)  # it may have been held again meanwhile

    def _post_bucket(self) -> Bucket:
        return Bucket(self.rates.post_burst, self.rates.posts_per_s)

    async def _run(self) -> None:
        async with asyncio.TaskGroup() as edits:
            await self._pump(edits)

    async def _pump(self, tasks: asyncio.TaskGroup) -> None:
        while True:
            self._wake.clear()
            now = self._clock()
            while (key := self._planner.grant(now)) is not None:
                self._start(key, tasks)
            try:
                async with asyncio.timeout(self._planner.wait_s(now)):
                    await self._wake.wait()
            except TimeoutError:
                continue

    def _start(self, key: int, tasks: asyncio.TaskGroup) -> None:
        slot = self._slots[key]
        if slot.permission is not None:
            if not slot.permission.done():
                slot.permission.set_result(None)
        elif slot.edit is not None:
            slot.idle.clear()
            tasks.create_task(self._edit(key, slot, slot.edit))
        else:
            self._planner.unused()
            self.done(key)

    async def _edit(self, key: int, slot: EditSlot, edit: Edit) -> None:
        try:
            if not await edit():
                self._planner.unused()
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
