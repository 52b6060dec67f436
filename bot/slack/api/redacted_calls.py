"""The last net before Slack: every text of a call is redacted, and what cannot be is not sent."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Final

from pydantic import JsonValue

from bot.ports.failures import SurfaceFailed
from bot.slack.api.calls import SlackCalls
from tools.redactor import RedactionFailed

# What holds text for people. All else (ids, button values, metadata) is ours and comes back to us.
_CARRIERS: Final = ("text", "blocks", "view", "attachments")
# A modal may hold 64 KiB of a result, which would hold up the event loop.
_LARGE: Final = "views."


class RedactedCalls:
    """`SlackCalls` around another one. `redact` may raise RedactionFailed."""

    def __init__(self, calls: SlackCalls, redact: Callable[[str], str]) -> None:
        self._calls = calls
        self._redact = redact

    async def call(self, method: str, **arguments: JsonValue) -> Mapping[str, JsonValue]:
        """One call with its texts redacted. Raises what the inner one raises, and SurfaceFailed."""
        try:
            if method.startswith(_LARGE):
                safe = await asyncio.to_thread(self._safe, arguments)
            else:
                safe = self._safe(arguments)
        except RedactionFailed as error:
            raise SurfaceFailed(f"{method}: could not be redacted", retryable=False) from error
        return await self._calls.call(method, **safe)

    def _safe(self, arguments: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
        return {
            name: self._texts(value, is_text=name == "text") if name in _CARRIERS else value
            for name, value in arguments.items()
        }

    def _texts(self, value: JsonValue, *, is_text: bool = False) -> JsonValue:
        if isinstance(value, str):
            return self._redact(value) if is_text and value else value
        if isinstance(value, list):
            return [self._texts(item) for item in value]
        if isinstance(value, dict):
            return {name: self._texts(item, is_text=name == "text") for name, item in value.items()}
        return value
