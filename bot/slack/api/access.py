"""Whether Slack takes our token at all, learned from every call and asked when none is made."""

import time
from collections.abc import Callable, Mapping

import structlog
from pydantic import JsonValue

from bot.ports.failures import SurfaceFailed, SurfaceGone
from bot.slack.api.calls import SlackCalls
from bot.slack.api.web_api import LockedOut

_log = structlog.stdlib.get_logger(__name__)

# While nobody asks anything, a revoked token shows after this long.
_QUIET_S = 30.0


class WatchedCalls:
    """`SlackCalls` around another one."""

    def __init__(self, calls: SlackCalls, clock: Callable[[], float] = time.monotonic) -> None:
        self._calls = calls
        self._clock = clock
        self._heard_at = clock()
        self._refusal = ""

    @property
    def is_open(self) -> bool:
        """Whether anything can be sent, as far as is known."""
        return not self._refusal

    async def call(self, method: str, **arguments: JsonValue) -> Mapping[str, JsonValue]:
        """One call. Raises what the inner one raises."""
        try:
            answer = await self._calls.call(method, **arguments)
        except LockedOut as locked:
            if not self._refusal:
                _log.error("slack.locked_out", code=locked.code)
            self._refusal, self._heard_at = locked.code, self._clock()
            raise
        if self._refusal:
            _log.warning("slack.let_in_again", code=self._refusal)
        self._refusal, self._heard_at = "", self._clock()
        return answer

    async def probe(self) -> None:
        """Ask Slack when it refused us last, or was not heard of for a while."""
        if self.is_open and self._clock() - self._heard_at < _QUIET_S:
            return
        try:
            await self.call("auth.test")
        except (SurfaceFailed, SurfaceGone) as error:
            _log.info("slack.probe_failed", error=str(error))

    async def problem(self) -> str | None:
        """For `/readyz`."""
        if self.is_open:
            return None
        return f"Slack refuses the bot's token ({self._refusal}); answers are kept for an hour"
