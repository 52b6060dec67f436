"""Slack's Web API as a port: a method, its arguments, its parsed answer.

The client is `bot.slack.api.web_api`; whoever only calls takes this.
"""

from collections.abc import Mapping
from typing import Protocol

from pydantic import JsonValue


class SlackCalls(Protocol):
    """The Web API."""

    async def call(self, method: str, **arguments: JsonValue) -> Mapping[str, JsonValue]:
        """One call, never repeated. Raises SurfaceGone, SurfaceFailed."""
        ...
