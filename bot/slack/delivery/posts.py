"""The next message to post, over all channels of a workspace. No clock, no loop.

The most urgent goes first, then the longest waiting. A waiting message may become more urgent.
"""

import heapq
import math
from collections import defaultdict
from dataclasses import dataclass, field

from bot.slack.delivery.pacing import Bucket, Rates, Urgency

# Above this many channels those in which nothing waits, long refilled, are forgotten.
_CHANNELS_KEPT = 1_000


@dataclass(slots=True)
class _Wish:
    channel: str
    asked: int = 0  # its place among equals, kept when it becomes more urgent
    wants: Urgency | None = None
    in_flight: bool = False


@dataclass(slots=True)
class _Channel:
    bucket: Bucket
    queue: list[tuple[int, int, int]] = field(default_factory=list)  # urgency, place, key
    held_until: float = -math.inf


@dataclass(slots=True)
class PostPlanner:
    """The messages to post, by the methods of `EditPlanner`; each channel has its allowance."""

    rates: Rates
    _all: Bucket = field(init=False)
    _channels: defaultdict[str, _Channel] = field(init=False)
    _wishes: dict[int, _Wish] = field(default_factory=dict)
    _asked: int = 0

    def __post_init__(self) -> None:
        rates = self.rates
        self._all = Bucket(rates.all_posts_burst, rates.all_posts_per_minute / 60)
        self._channels = defaultdict(lambda: _Channel(Bucket(rates.post_burst, rates.posts_per_s)))

    def open(self, key: int, channel: str = "") -> None:
        self._wishes[key] = _Wish(channel)

    def close(self, key: int) -> None:
        self._wishes.pop(key, None)

    def want(self, key: int, urgency: Urgency, now: float) -> bool:
        wish = self._wishes.get(key)
        if wish is None or (wish.wants is not None and wish.wants >= urgency):
            return False
        if wish.wants is None:
            self._forget_idle(now)
            self._asked += 1
            wish.asked = self._asked
        wish.wants = urgency
        if not wish.in_flight:
            self._enqueue(key, wish)
        return True

    def grant(self, now: float) -> int | None:
        heads = [
            (head, channel)
            for channel in self._channels.values()
            for head in self._head(channel)
            if now >= channel.held_until and channel.bucket.level(now) >= 1
        ]
        if not heads or not self._all.take_of(1, now):
            return None
        _, channel = min(heads, key=lambda each: each[0])
        channel.bucket.take_of(1, now)
        key = heapq.heappop(channel.queue)[2]
        wish = self._wishes[key]
        wish.wants, wish.in_flight = None, True
        return key

    def unused(self, key: int) -> None:
        if (wish := self._wishes.get(key)) is not None:
            self._channels[wish.channel].bucket.give_back()
            self._all.give_back()

    def finished(self, key: int, _now: float) -> None:
        wish = self._wishes.get(key)
        if wish is None:
            return
        wish.in_flight = False
        if wish.wants is not None:
            self._enqueue(key, wish)

    def hold(self, until: float, channel: str = "") -> None:
        """Slack asked to wait: nothing is granted in that channel before."""
        held = self._channels[channel]
        held.held_until = max(held.held_until, until)

    def wait_s(self, now: float) -> float | None:
        times = [
            max(channel.bucket.wait_s(now, 1), channel.held_until - now)
            for channel in self._channels.values()
            for _ in self._head(channel)
        ]
        return max(0.0, min(times), self._all.wait_s(now, 1)) if times else None

    def expected_s(self, channel: str, urgency: Urgency, now: float) -> float:
        ahead = [
            wish.channel
            for wish in self._wishes.values()
            if wish.wants is not None and wish.wants >= urgency and not wish.in_flight
        ]
        here = self._channels[channel]
        return max(
            here.bucket.wait_s(now, 1 + ahead.count(channel)),
            self._all.wait_s(now, 1 + len(ahead)),
            here.held_until - now,
        )

    def _enqueue(self, key: int, wish: _Wish) -> None:
        if wish.wants is None:
            return
        channel = self._channels[wish.channel]
        heapq.heappush(channel.queue, (-wish.wants, wish.asked, key))

    def _head(self, channel: _Channel) -> list[tuple[int, int, int]]:
        while channel.queue:
            level, _, key = channel.queue[0]
            wish = self._wishes.get(key)
            if wish is not None and not wish.in_flight and wish.wants == -level:
                return channel.queue[:1]
            heapq.heappop(channel.queue)
        return []

    def _forget_idle(self, now: float) -> None:
        if len(self._channels) <= _CHANNELS_KEPT:
            return
        idle = [
            name
            for name, each in self._channels.items()
            if not each.queue
            and each.held_until <= now
            and each.bucket.level(now) >= self.rates.post_burst
        ]
        for name in idle:
            del self._channels[name]
