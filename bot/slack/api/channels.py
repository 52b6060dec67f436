"""`conversations.info` of a channel: asked once for all who want to know something of it.

It is Tier 3 (50 a minute, https://docs.slack.dev/reference/methods/conversations.info), and a turn in
a new channel asks for its name and for who reads it.
"""

from collections.abc import Callable, Mapping
from typing import Final

from pydantic import JsonValue

from bot.ports.failures import SurfaceFailed
from bot.slack.api.calls import SlackCalls
from bot.slack.api.single_flight import SingleFlightCache

# What anybody reads of it; the rest, such as topics, is not kept.
_KEPT: Final = frozenset(
    {
        "id", "name", "is_im", "is_mpim", "is_ext_shared", "is_shared", "is_org_shared",
        "is_pending_ext_shared", "pending_shared",
    }
)  # fmt: skip

Told = Mapping[str, JsonValue]


class Channels:
    """Of one workspace. What is read of an answer is its reader's to validate."""

    def __init__(self, api: SlackCalls, clock: Callable[[], float]) -> None:
        self._api = api
        self._asked = SingleFlightCache(self._ask, clock)

    async def told(self, channel: str, max_age_s: float) -> Told:
        """Slack's `channel` object, read at most so long ago, or while this call waited.

        Raises SurfaceGone, SurfaceFailed, TimeoutError.
        """
        return await self._asked.get(channel, max_age_s)

    def forget(self, channel: str) -> None:
        """It changed: the next question is asked anew."""
        self._asked.forget(channel)

    async def _ask(self, channel: str) -> Told:
        found = (await self._api.call("conversations.info", channel=channel)).get("channel")
        if not isinstance(found, dict):
            raise SurfaceFailed("conversations.info: told of no channel", retryable=False)
        return {name: value for name, value in found.items() if name in _KEPT}
