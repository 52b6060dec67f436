"""A request gate of the local workspace that refuses what Slack would: too many calls, and what it has not got."""

import math
import time
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, field

import orjson
from pydantic import JsonValue

from bot.demo.workspace.errors import RateLimited, SlackRefused
from bot.demo.workspace.json_access import JsonObject, objects_at, text_at
from bot.demo.workspace.state import RequestGate

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


@dataclass(slots=True)
class Counters:
    """How often each method was called and how often it was answered 429."""

    requests: Counter[str] = field(default_factory=Counter)
    limited: Counter[str] = field(default_factory=Counter)


class SlackRequestGate(RequestGate):
    """Counts and decides each request. A refused one does not use up the allowance.

    `limits` None: no limits. `refused` are the methods that the workspace has not got, each with the
    error it answers, and `unknown_blocks` the kinds of blocks: Slack brings new ones to workspaces
    one after the other.
    """

    def __init__(
        self,
        limits: RateLimits | None = None,
        now: Callable[[], float] = time.monotonic,
        *,
        refused: Mapping[str, str] | None = None,
        unknown_blocks: Collection[str] = (),
    ) -> None:
        self.limits = limits
        self.refused = {} if refused is None else refused
        self.unknown_blocks = unknown_blocks
        self.counters = Counters()
        self._now = now
        self._windows: defaultdict[str, deque[float]] = defaultdict(deque)
        self._buckets: dict[str, tuple[float, float]] = {}

    def enter(self, method: str, tier: int | None, sent: JsonObject) -> None:
        """Raises SlackRefused."""
        if refusal := self.refused.get(method):
            raise SlackRefused(refusal)
        self.take(method, tier, text_at(sent, "channel") or text_at(sent, "channel_id"))
        most = self.limits.history_page if self.limits else 0
        if most and method in ("conversations.history", "conversations.replies"):
            sent["limit"] = most
        read = {name: _parsed(sent.get(name)) for name in ("blocks", "chunks")}
        self._check_known(objects_at(read, "blocks"))
        for chunk in objects_at(read, "chunks"):
            self._check_known(objects_at(chunk, "blocks"))

    def _check_known(self, blocks: Collection[JsonObject]) -> None:
        problems = [
            f"[ERROR] unsupported type: {block['type']} [json-pointer:/blocks/{index}/type]"
            for index, block in enumerate(blocks)
            if block.get("type") in self.unknown_blocks
        ]
        if problems:
            raise SlackRefused("invalid_blocks", problems)

    def take(self, method: str, tier: int | None, channel: str) -> None:
        """Count one request. `tier` None is the posting rate. Raises RateLimited."""
        self.counters.requests[method] += 1
        if self.limits is None:
            return
        try:
            if tier is None:
                self._take_post(self.limits, method, channel)
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

    def _take_post(self, limits: RateLimits, method: str, channel: str) -> None:
        now = self._now()
        tokens, at = self._buckets.get(channel, (float(limits.post_burst), now))
        tokens = min(limits.post_burst, tokens + (now - at) * limits.post_per_s)
        if tokens < 1:
            raise RateLimited(max(1, math.ceil((1 - tokens) / limits.post_per_s)))
        self._take_window(method, limits.posts_per_minute)
        self._buckets[channel] = (tokens - 1, now)


def _parsed(value: JsonValue) -> JsonValue:
    """A form has lists as JSON texts; what is none is refused later."""
    with suppress(orjson.JSONDecodeError):
        return orjson.loads(value) if isinstance(value, str) else value
    return None
