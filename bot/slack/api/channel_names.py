"""Channel names by id, which channel rules are written in. Cached; a rename shows after the TTL."""

from collections.abc import Callable

import structlog

from bot.domain.ids import ChannelId
from bot.ports import SurfaceFailed, SurfaceGone
from bot.slack.api.calls import SlackCalls
from bot.slack.api.fresh import Fresh

_log = structlog.stdlib.get_logger(__name__)
TTL_S = 300.0
RETRY_S = 10.0  # after a failure


class ChannelNames:
    """Asks `conversations.info` at most once per channel and TTL (Tier 3: 50 a minute)."""

    def __init__(self, api: SlackCalls, clock: Callable[[], float]) -> None:
        self._api = api
        self._clock = clock
        self._names = Fresh(self._ask, clock)
        self._last: dict[ChannelId, str] = {}
        self._silent_until: dict[ChannelId, float] = {}

    async def name(self, channel: ChannelId) -> str:
        """The name now; the last known one, or "", when Slack does not say."""
        if self._clock() < self._silent_until.get(channel, 0.0):
            return self._last.get(channel, "")
        try:
            name = await self._names.get(channel, TTL_S)
        except (SurfaceFailed, SurfaceGone, TimeoutError) as error:
            _log.warning("slack.channel_name.unknown", channel=channel, error=type(error).__name__)
            self._silent_until[channel] = self._clock() + RETRY_S
            return self._last.get(channel, "")
        self._last[channel] = name
        self._silent_until.pop(channel, None)
        return name

    async def _ask(self, channel: str) -> str:
        answer = await self._api.call("conversations.info", channel=channel)
        info = answer.get("channel")
        name = info.get("name") if isinstance(info, dict) else None
        return name if isinstance(name, str) else ""
