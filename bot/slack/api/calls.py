"""Slack's Web API as a port, and two wrappers of it: redaction, and metrics with lock-out detection.

The client is `bot.slack.api.web_api`. Callers take `SlackCalls`. Redaction is the last check: a
call that cannot be redacted is not sent.
"""

import asyncio
import time
from collections.abc import Callable, Mapping
from typing import Final, Protocol

import structlog
from pydantic import BaseModel, ConfigDict, JsonValue

from bot.ports.failures import SurfaceFailed, SurfaceGone
from bot.slack.api.web_api import LockedOut, RateLimited, Unreachable
from bot.telemetry.metrics import Metrics
from tools.redactor import RedactionFailed

# What holds text for people. All else (ids, button values, metadata) is ours and comes back to us.
_CARRIERS: Final = ("text", "blocks", "view", "attachments", "chunks", "files", "alt_txt")
# Of these it is text in a stream's cards, which are no objects there, and in charts and tables.
_TEXTS: Final = frozenset(
    {
        "text", "alt_txt", "title", "details", "output", "caption", "categories", "label", "name", "x_label",
        "y_label",
    }
)  # fmt: skip
# A modal may hold 64 KiB of a result, which would hold up the event loop.
_LARGE: Final = "views."

_log = structlog.stdlib.get_logger(__name__)


class ApiObject(BaseModel):
    """A part of an answer. Unknown fields are ignored, and an error never quotes the input."""

    model_config = ConfigDict(
        frozen=True, extra="ignore", hide_input_in_errors=True, defer_build=True
    )


class SlackCalls(Protocol):
    async def call(self, method: str, **arguments: JsonValue) -> Mapping[str, JsonValue]:
        """One call, never repeated. Raises SurfaceGone, SurfaceFailed."""
        ...


class RedactedCalls:
    """`SlackCalls` with secrets masked. `redact` may raise RedactionFailed."""

    def __init__(self, calls: SlackCalls, redact: Callable[[str], str]) -> None:
        self._calls = calls
        self._redact = redact

    async def call(self, method: str, **arguments: JsonValue) -> Mapping[str, JsonValue]:
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
            name: self._texts(value, is_text=name in _TEXTS) if name in _CARRIERS else value
            for name, value in arguments.items()
        }

    def _texts(self, value: JsonValue, *, is_text: bool = False) -> JsonValue:
        if isinstance(value, str):
            return self._redact(value) if is_text and value else value
        if isinstance(value, list):
            return [self._texts(item, is_text=is_text) for item in value]
        if isinstance(value, dict):
            return {
                name: item
                if isinstance(item, str) and name not in _TEXTS
                else self._texts(item, is_text=name in _TEXTS)
                for name, item in value.items()
            }
        return value


class WatchedCalls:
    """`SlackCalls` that counts edits and rate limits, and knows whether Slack takes the token."""

    def __init__(
        self, calls: SlackCalls, metrics: Metrics, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._calls = calls
        self._metrics = metrics
        self._clock = clock
        self._heard_at = clock()
        self._refusal = ""
        self._away = ""

    @property
    def refusal(self) -> str:
        """Slack's error code for the refused token; empty if the token is accepted."""
        return self._refusal

    @property
    def is_open(self) -> bool:
        return not self._refusal

    async def call(self, method: str, **arguments: JsonValue) -> Mapping[str, JsonValue]:
        try:
            answer = await self._calls.call(method, **arguments)
        except RateLimited:
            self._metrics.rate_limited()
            raise
        except LockedOut as locked:
            if not self._refusal:
                _log.error("slack.token.refused", code=locked.code)
            self._refusal, self._away, self._heard_at = locked.code, "", self._clock()
            raise
        except Unreachable as away:  # says nothing about the token: its known state stays
            self._away, self._heard_at = str(away), self._clock()
            raise
        if self._refusal:
            _log.warning("slack.token.accepted", code=self._refusal)
        self._refusal, self._away, self._heard_at = "", "", self._clock()
        if method == "chat.update":
            self._metrics.edited()
        return answer

    async def probe(self, every_s: float) -> None:
        """Call `auth.test` if no answer came from Slack for `every_s` seconds."""
        if self._clock() - self._heard_at < every_s:
            return
        self._heard_at = self._clock()
        try:
            await self.call("auth.test")
        except (SurfaceFailed, SurfaceGone) as error:
            _log.info("slack.probe_failed", error=str(error))

    async def problem(self) -> str | None:
        """For `/readyz`: the refusal of the token, or None."""
        if self.is_open:
            return None
        return f"Slack refuses the bot's token ({self._refusal}); answers are kept for an hour"

    @property
    def note(self) -> str:
        """For `/readyz`: an outage that does not make this replica unready; empty without one."""
        return f"Slack cannot be reached now ({self._away})" if self._away else ""
