"""Slack's Web API as a port: a method, its arguments, its parsed answer.

The client is `bot.slack.api.web_api`; whoever only calls takes this.
"""

from collections.abc import Mapping
from typing import Protocol

from pydantic import JsonValue

from bot.slack.api.web_api import RateLimited
from bot.telemetry.metrics import Metrics


class SlackCalls(Protocol):
    """The Web API."""

    async def call(self, method: str, **arguments: JsonValue) -> Mapping[str, JsonValue]:
        """One call, never repeated. Raises SurfaceGone, SurfaceFailed."""
        ...


class CountedCalls:
    """`SlackCalls` around another one."""

    def __init__(self, calls: SlackCalls, metrics: Metrics) -> None:
        self._calls = calls
        self._metrics = metrics

    async def call(self, method: str, **args: JsonValue) -> Mapping[str, JsonValue]:
        """One call, counted. Raises what the inner one raises."""
        try:
            answer = await self._calls.call(method, **args)
        except RateLimited:
            self._metrics.rate_limited()
            raise
        if method == "chat.update":
            self._metrics.edited()
        return answer
