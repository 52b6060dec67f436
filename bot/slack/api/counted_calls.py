"""The Web API with what operators watch counted: edits of answers, and 429s."""

from collections.abc import Mapping

from pydantic import JsonValue

from bot.slack.api.calls import SlackCalls
from bot.slack.api.web_api import RateLimited
from bot.telemetry.metrics import Metrics


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
