"""One scheduler per workspace: it decides when each rate-limited call may be made.

Live answers go through one queue per method (`bot.slack.delivery.edit_queue`). Posts, look-ups and
Slack's own streams have allowances here.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Self

from pydantic import JsonValue

from bot.slack.api.calls import SlackCalls
from bot.slack.api.web_api import RateLimited
from bot.slack.delivery.edit_queue import Edit, EditQueue, EditSlot
from bot.slack.delivery.pacing import Bucket, EditPlanner, Rates, Urgency
from bot.slack.delivery.posts import PostPlanner

_CHANNEL, _PERSON = "conversations.info", "users.info"
_STARTS, _STOPS, _DELETES = "chat.startStream", "chat.stopStream", "chat.delete"
_READS = "read"  # every method that only reads and is no look-up


class EditScheduler:
    """Paces one workspace. Posts, edits and appends happen only inside `running`."""

    def __init__(
        self, rates: Rates | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        own = self.rates = rates or Rates()
        self.clock = clock
        self._edits = EditQueue(EditPlanner(own), clock)
        self._appends = EditQueue(EditPlanner(own.of_appends()), clock)
        self._posts = EditQueue(PostPlanner(own), clock)
        self._queues = {
            "chat.update": self._edits,
            "chat.appendStream": self._appends,
            "chat.postMessage": self._posts,
        }
        self._buckets = {
            _DELETES: Bucket(own.delete_burst, own.deletes_per_minute / 60),
            _READS: Bucket(own.read_burst, own.reads_per_minute / 60),
            _CHANNEL: Bucket(own.info_burst, own.infos_per_minute / 60),
            _PERSON: Bucket(own.person_burst, own.persons_per_minute / 60),
            _STARTS: Bucket(own.stream_burst, own.streams_per_minute / 60),
            _STOPS: Bucket(own.stream_burst, own.streams_per_minute / 60),
        }
        self._held: dict[str, float] = {}

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Self]:
        """Edit while the body runs; edits under way are cancelled at its end."""
        async with asyncio.TaskGroup() as tasks:
            pumps = [
                tasks.create_task(queue.run(), name=f"slack {method}")
                for method, queue in self._queues.items()
            ]
            try:
                yield self
            finally:
                for pump in pumps:
                    pump.cancel()

    def open(self, edit: Edit | None = None) -> EditSlot:
        return self._edits.open(edit)

    def open_stream(self, append: Edit) -> EditSlot:
        return self._appends.open(append)

    def open_post(self, channel: str, post: Edit) -> EditSlot:
        """A live message that is still to be posted."""
        return self._posts.open(post, channel)

    async def edit_permit(self) -> None:
        """Wait until a message without a slot, such as a card, may be edited once."""
        await _permit(self.open(), Urgency.FINAL)

    async def post_permit(self, channel: str, urgency: Urgency = Urgency.FINAL) -> None:
        """Wait until a message may be posted to the channel."""
        await _permit(self._posts.open(channel=channel), urgency)

    def is_posted_sooner(self, channel: str, count: int = 1) -> bool:
        """Whether a final is there much sooner as so many new messages than as an edit of the first."""
        posted_s = self._posts.expected_s(channel, Urgency.FIRST)
        posted_s += (count - 1) / self.rates.posts_per_s
        return self._edits.expected_s(channel, Urgency.FINAL) > posted_s + self.rates.sooner_s

    async def delete_permit(self) -> None:
        await self._paced(_DELETES)

    async def read_permit(self) -> None:
        await self._paced(_READS)

    def is_look_up(self, method: str) -> bool:
        return method in (_CHANNEL, _PERSON)

    def take_look_up(self, method: str, leaves: int = 0) -> float:
        """Seconds until the look-up is allowed; 0 takes the allowance now.

        `leaves` calls stay reserved. The caller has a deadline and must not wait here.
        """
        now, bucket = self.clock(), self._buckets[method]
        held_s = self._held.get(method, 0.0) - now
        if held_s > 0 or not bucket.take_of(1 + leaves, now):
            return max(held_s, bucket.wait_s(now, 1 + leaves))
        return 0.0

    def take_stream(self) -> bool:
        """Whether a stream may begin now; True takes its allowance.

        An answer without a stream is edited. The limit of open streams keeps their ends close
        together.
        """
        now = self.clock()
        is_held = self._held.get(_STARTS, 0.0) > now
        if is_held or self._appends.live >= self.rates.streams_at_once:
            return False
        return self._buckets[_STARTS].take_of(1, now)

    async def stop_permit(self) -> None:
        await self._paced(_STOPS)

    def stop_wait_s(self) -> float:
        now = self.clock()
        return max(self._buckets[_STOPS].wait_s(now, 1), self._held.get(_STOPS, 0.0) - now)

    def rate_limited(self, error: RateLimited, channel: str = "") -> None:
        """Slack answered 429 all the same: wait as long as it says, for that method."""
        until = self.clock() + error.retry_after_s
        if queue := self._queues.get(error.method):
            queue.hold(until, channel)
        else:
            self._held[error.method if error.method in self._buckets else _READS] = until

    async def _paced(self, key: str) -> None:
        bucket = self._buckets[key]
        while True:
            held_s = self._held.get(key, 0.0) - self.clock()
            if held_s > 0:
                await asyncio.sleep(held_s)
                continue  # it may be held longer by now
            wait_s = bucket.draw(self.clock())
            if wait_s > 0:
                await asyncio.sleep(wait_s)
            if self._held.get(key, 0.0) <= self.clock():
                return
            # Delayed in the meantime: callers released together would exceed the limit again.
            bucket.give_back()


async def _permit(slot: EditSlot, urgency: Urgency) -> None:
    try:
        await slot.permit(urgency)
    finally:
        slot.close()


class BackoffCalls(SlackCalls):
    """`SlackCalls` that reports each 429 to the scheduler."""

    def __init__(self, api: SlackCalls, scheduler: EditScheduler) -> None:
        self._api = api
        self._scheduler = scheduler

    async def call(self, method: str, **arguments: JsonValue) -> Mapping[str, JsonValue]:
        try:
            return await self._api.call(method, **arguments)
        except RateLimited as limited:
            self._scheduler.rate_limited(limited, str(arguments.get("channel", "")))
            raise


class LookupCalls(SlackCalls):
    """`SlackCalls` that raises RateLimited when the look-up allowance is used up, without a call.

    `leaves` calls stay reserved for more important callers.
    """

    def __init__(self, api: SlackCalls, scheduler: EditScheduler, leaves: int = 0) -> None:
        self._api = api
        self._heeding = BackoffCalls(api, scheduler)
        self._scheduler = scheduler
        self._leaves = leaves

    async def call(self, method: str, **arguments: JsonValue) -> Mapping[str, JsonValue]:
        """See `SlackCalls.call`. Raises RateLimited."""
        if not self._scheduler.is_look_up(method):
            return await self._api.call(method, **arguments)
        if wait_s := self._scheduler.take_look_up(method, self._leaves):
            raise RateLimited(method, wait_s)
        return await self._heeding.call(method, **arguments)
