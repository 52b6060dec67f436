"""One scheduler per workspace: it decides when each call that Slack counts may be made.

What shows live answers goes through a lane for each method (`bot.slack.sending.lane`); posts,
look-ups, and the beginning and end of Slack's own streams have their allowances here.
"""

import asyncio
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Self

from bot.slack.api.web_api import RateLimited
from bot.slack.sending.lane import Edit, EditSlot, Lane
from bot.slack.sending.pacing import Bucket, Rates

# Above this many idle channels their posting allowances, long refilled, are forgotten.
_CHANNELS_KEPT = 1_000
_STARTS, _STOPS = "chat.startStream", "chat.stopStream"


class EditScheduler:
    """Paces one workspace. Edits and appends happen only inside `running`."""

    def __init__(
        self, rates: Rates | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.rates = rates or Rates()
        self.clock = clock
        self._edits = Lane(self.rates, clock)
        self._appends = Lane(self.rates.of_appends(), clock)
        self._posts: defaultdict[str, Bucket] = defaultdict(self._post_bucket)
        self._all_posts = Bucket(self.rates.all_posts_burst, self.rates.all_posts_per_minute / 60)
        self._reads = Bucket(self.rates.read_burst, self.rates.reads_per_minute / 60)
        self._starts = Bucket(self.rates.stream_burst, self.rates.streams_per_minute / 60)
        self._stops = Bucket(self.rates.stream_burst, self.rates.streams_per_minute / 60)
        self._held: dict[str, float] = {}

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Self]:
        """Edit while the body runs; edits under way are cancelled at its end."""
        async with asyncio.TaskGroup() as tasks:
            pumps = [
                tasks.create_task(self._edits.run(), name="slack-edits"),
                tasks.create_task(self._appends.run(), name="slack-appends"),
            ]
            try:
                yield self
            finally:
                for pump in pumps:
                    pump.cancel()

    def open(self, edit: Edit | None = None) -> EditSlot:
        """A live message that is edited."""
        return self._edits.open(edit)

    def open_stream(self, append: Edit) -> EditSlot:
        """A live message that is appended to."""
        return self._appends.open(append)

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

    def take_stream(self) -> bool:
        """Whether one of Slack's streams may begin now, which takes its allowance.

        Nobody waits for it: an answer that is not streamed is edited. No more are open at once than
        can end soon after each other.
        """
        now = self.clock()
        is_held = self._held.get(_STARTS, 0.0) > now
        if (
            is_held
            or self._appends.live >= self.rates.streams_at_once
            or self._starts.level(now) < 1
        ):
            return False
        self._starts.take(now)
        return True

    async def stop_permit(self) -> None:
        """Wait until one of Slack's streams may end."""
        await self._paced(_STOPS, self._stops)

    def stop_wait_s(self) -> float:
        """Seconds until one of Slack's streams may end, as things stand."""
        now = self.clock()
        return max(self._stops.wait_s(now, 1), self._held.get(_STOPS, 0.0) - now)

    def rate_limited(self, error: RateLimited, channel: str = "") -> None:
        """Slack answered 429 all the same: wait as long as it says, for that method."""
        until = self.clock() + error.retry_after_s
        match error.method:
            case "chat.update":
                self._edits.hold(until)
            case "chat.appendStream":
                self._appends.hold(until)
            case "chat.postMessage":
                self._held[f"{error.method} {channel}"] = until
            case "chat.startStream" | "chat.stopStream":
                self._held[error.method] = until
            case _:
                self._held["read"] = until

    async def _paced(self, key: str, *buckets: Bucket) -> None:
        while True:
            await self._until_released(key)
            now = self.clock()
            wait_s = max(bucket.wait_s(now, 1) for bucket in buckets)
            for bucket in buckets:
                bucket.take(now)
            if wait_s > 0:
                await asyncio.sleep(wait_s)
            if self._held.get(key, 0.0) <= self.clock():
                return
            # Held up meanwhile: who was let go together would be too many at once again.
            for bucket in buckets:
                bucket.give_back()

    async def _until_released(self, key: str) -> None:
        held_s = self._held.get(key, 0.0) - self.clock()
        if held_s <= 0:
            self._held.pop(key, None)
            return
        await asyncio.sleep(held_s)
        await self._until_released(key)  # it may have been held again meanwhile

    def _post_bucket(self) -> Bucket:
        return Bucket(self.rates.post_burst, self.rates.posts_per_s)
