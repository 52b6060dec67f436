"""Slack's published rates, kept per method over a sliding minute, and counted."""

import math
import time
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from bot.demo.workspace.errors import RateLimited

WINDOW_S = 60.0

# Requests per minute by tier, https://docs.slack.dev/apis/web-api/rate-limits (the "+" is not
# to be relied on).
TIER_PER_MINUTE: Mapping[int, int] = {1: 1, 2: 20, 3: 50, 4: 100}


@dataclass(frozen=True, slots=True)
class RateLimits:
    """The allowances. `per_minute` overrides a method's tier; 0 there means no limit.

    Posts: one per second and channel with short bursts, and "several hundred" a minute over the
    workspace (same page; the burst and the hundreds are not published).
    """

    per_minute: Mapping[str, int] = field(default_factory=dict)
    post_per_s: float = 1.0
    post_burst: int = 5
    posts_per_minute: int = 300
    history_page: int = 0  # the most messages of a page of a thread or channel; 0: as asked for

    @classmethod
    def outside_marketplace(cls) -> "RateLimits":
        """Of an app that is sold outside Slack's Marketplace, since 2025-05-29 (same page)."""
        once = {"conversations.history": 1, "conversations.replies": 1}
        return cls(per_minute=once, history_page=15)

    @classmethod
    def unlimited(cls) -> "RateLimits":
        """For tests of everything else."""
        return _Unlimited()


@dataclass(frozen=True, slots=True)
class _Unlimited(RateLimits):
    pass


@dataclass(slots=True)
class Counters:
    """How often each method was called and how often it was answered 429."""

    requests: Counter[str] = field(default_factory=Counter)
    limited: Counter[str] = field(default_factory=Counter)


class RateLimiter:
    """Decides each request. A refused one does not use up the allowance."""

    def __init__(self, limits: RateLimits, now: Callable[[], float] = time.monotonic) -> None:
        self.limits = limits
        self.counters = Counters()
        self._now = now
        self._windows: defaultdict[str, deque[float]] = defaultdict(deque)
        self._buckets: dict[str, tuple[float, float]] = {}

    def take(self, method: str, tier: int | None, channel: str) -> None:
        """Count one request. `tier` None is the posting rate. Raises RateLimited."""
        self.counters.requests[method] += 1
        if isinstance(self.limits, _Unlimited):
            return
        try:
            if tier is None:
                self._take_post(method, channel)
            else:
                allowed = self.limits.per_minute.get(method, TIER_PER_MINUTE[tier])
                self._take_window(method, allowed)
        except RateLimited:
            self.counters.limited[method] += 1
            raise

    def _take_window(self, key: str, allowed: int) -> None:
        if allowed == 0:
            return
        now, window = self._now(), self._windows[key]
        while window and window[0] <= now - WINDOW_S:
            window.popleft()
        if len(window) >= allowed:
            raise RateLimited(max(1, math.ceil(window[0] + WINDOW_S - now)))
        window.append(now)

    def _take_post(self, method: str, channel: str) -> None:
        now = self._now()
        tokens, at = self._buckets.get(channel, (float(self.limits.post_burst), now))
        tokens = min(self.limits.post_burst, tokens + (now - at) * self.limits.post_per_s)
        if tokens < 1:
            raise RateLimited(max(1, math.ceil((1 - tokens) / self.limits.post_per_s)))
        self._take_window(method, self.limits.posts_per_minute)
        self._buckets[channel] = (tokens - 1, now)
