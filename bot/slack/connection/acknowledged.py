"""Bolt's app, which knows how long Slack waited for each acknowledgement, in either mode."""

import time
from collections.abc import Callable

from slack_bolt.async_app import AsyncApp, AsyncBoltRequest
from slack_bolt.response import BoltResponse

from bot.slack.connection.ahead import Messages


def _nobody(_seconds: float) -> None:
    """Nobody counts how long it took."""


class AcknowledgedApp(AsyncApp):
    """`acknowledged` is told of every request, whatever became of it.

    `messages` takes in what people write, where that is done ahead of the app.
    """

    messages: Messages | None = None
    acknowledged: Callable[[float], None] = staticmethod(_nobody)

    async def async_dispatch(self, req: AsyncBoltRequest) -> BoltResponse:
        """Listeners run before the response, so what they take is what Slack waits."""
        begun = time.monotonic()
        try:
            return await super().async_dispatch(req)
        finally:
            self.acknowledged(time.monotonic() - begun)
