"""Socket Mode: the connection, its state, and a shutdown that loses no acknowledgement.

Imported only in that mode: Slack's client has 40 modules.
"""

import asyncio
import logging
import re
import time
from collections.abc import Callable
from typing import Final, cast

import structlog
from slack_bolt.adapter.socket_mode.aiohttp import AsyncSocketModeHandler
from slack_bolt.async_app import AsyncApp
from slack_sdk.errors import SlackApiError
from slack_sdk.socket_mode.aiohttp import SocketModeClient
from slack_sdk.socket_mode.request import SocketModeRequest
from slack_sdk.web.async_client import AsyncWebClient
from slack_sdk.web.async_slack_response import AsyncSlackResponse

from adapters.http.tls import ssl_context
from bot.slack.api.web_api import framework_logger, refusal_of
from bot.slack.ingress.access import StartupError
from bot.slack.ingress.workspace_routing import Dispatches

_log = structlog.stdlib.get_logger(__name__)
_AGAIN_S: Final = 300.0  # a long outage is reported again
# slack_sdk.socket_mode.aiohttp, of a connection that broke off and of one that is not made again.
_AWAY: Final = (
    "Failed to receive or enqueue a message",
    "Failed to check the current session",
    "Failed to connect (error",
    "Failed to retrieve WSS URL",
    "Failed to send a ping message",
)
_SESSION: Final = re.compile(r" ?\(s_\d+\)")  # of every try another one


class Outage(logging.Filter):
    """Of one connection. A filter of the libraries' logger, for as long as that is kept."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._clock = clock
        self._since: float | None = None
        self._told_at = 0.0
        self._told: set[str] = set()
        self._tries = 0

    def filter(self, record: logging.LogRecord) -> bool:
        """False for repeated outage lines of the library, which are counted in a line of ours."""
        words = record.getMessage()
        if not words.startswith(_AWAY):
            return True
        now = self._clock()
        self._tries += 1
        why = _SESSION.sub("", words)
        if self._since is None:
            self._since = now
        if why not in self._told or now - self._told_at >= _AGAIN_S:
            self._told.add(why)
            self._told_at = now
            _log.warning(
                "slack.socket.disconnected",
                why=why,
                away_s=round(now - self._since),
                tries=self._tries,
            )
        return False

    def over(self) -> None:
        """Slack greeted a connection."""
        if self._since is None:
            return
        away_s = round(self._clock() - self._since)
        _log.info("slack.socket.reconnected", away_s=away_s, tries=self._tries)
        self._since, self._tries = None, 0
        self._told.clear()


_CONNECT_TIMEOUT_S = 30.0
_CLOSE_TIMEOUT_S = 3.0


class _Opening(AsyncWebClient):
    refusal = ""

    async def apps_connections_open(self, *, app_token: str, **more: object) -> AsyncSlackResponse:
        try:
            opened = await self.api_call(
                "apps.connections.open", params={**more, "token": app_token}
            )
        except SlackApiError as error:
            # A failed call says nothing about the token: its known state stays.
            self.refusal = refusal_of(error) or self.refusal
            raise
        self.refusal = ""
        return opened


class _Handler(AsyncSocketModeHandler):
    def __init__(
        self, app: Dispatches, app_token: str, client: AsyncWebClient, ping_s: float
    ) -> None:
        # Given a logger and a client, the handler asks its app only to dispatch.
        only_dispatches = cast("AsyncApp", app)
        logger = framework_logger()
        super().__init__(only_dispatches, app_token, logger, client, ping_interval=ping_s)
        self.stopping = False
        self.in_flight: set[asyncio.Task[object]] = set()

    async def handle(self, client: SocketModeClient, req: SocketModeRequest) -> None:  # type: ignore[override]
        if self.stopping:
            return  # not acknowledged: Slack delivers it to another connection
        task = asyncio.current_task()
        assert task is not None  # noqa: S101 - the client runs listeners in tasks
        self.in_flight.add(task)
        try:
            await super().handle(client, req)
        finally:
            self.in_flight.discard(task)


class SocketMode:
    """One Socket Mode connection; `app` handles its deliveries."""

    def __init__(
        self, app: Dispatches, app_token: str, api_base_url: str, ping_interval_s: float = 10.0
    ) -> None:
        self._app = app
        self._app_token = app_token
        self._base_url = api_base_url.rstrip("/") + "/"
        self._ping_interval_s = ping_interval_s
        self._handler: _Handler | None = None
        self._opening: _Opening | None = None
        self._outage = Outage()

    async def start(self) -> None:
        """Connect; the library reconnects from then on.

        Raises StartupError when there is no connection after 30 s.
        """
        tls = await asyncio.to_thread(ssl_context)  # reads files
        opening = _Opening(base_url=self._base_url, logger=framework_logger(), ssl=tls)
        self._opening = opening
        self._handler = _Handler(self._app, self._app_token, opening, self._ping_interval_s)
        self._handler.client.message_listeners.append(self._heard)  # type: ignore[arg-type]
        framework_logger().addFilter(self._outage)
        try:
            async with asyncio.timeout(_CONNECT_TIMEOUT_S):
                await self._handler.connect_async()  # type: ignore[no-untyped-call]
        except TimeoutError as error:
            await self.stop(0.0)
            raise StartupError(
                "slack.app_token", "Socket Mode did not connect within 30 s; see the log"
            ) from error
        _log.info("slack.socket.connected")

    async def is_connected(self) -> bool:
        """Whether envelopes can arrive now."""
        return self._handler is not None and await self._handler.client.is_connected()

    @property
    def refusal(self) -> str:
        """Slack's code for why it takes the app's token for no new connection; empty while it does."""
        return self._opening.refusal if self._opening else ""

    async def _heard(
        self, _client: SocketModeClient, message: dict[str, object], _raw: str
    ) -> None:
        if message.get("type") == "hello":
            self._outage.over()

    async def stop(self, grace_s: float) -> None:
        """Accept no more, acknowledge running deliveries within `grace_s`, then disconnect."""
        framework_logger().removeFilter(self._outage)
        handler, self._handler = self._handler, None
        if handler is None:
            return
        handler.stopping = True
        client = handler.client
        client.auto_reconnect_enabled = False
        if handler.in_flight:
            await asyncio.wait(set(handler.in_flight), timeout=grace_s)
        rest = [client.message_processor, client.current_session_monitor, client.message_receiver]
        pending = [task for task in (*rest, *handler.in_flight) if task is not None]
        for task in pending:
            task.cancel()
        await asyncio.gather(*pending, return_exceptions=True)
        try:
            async with asyncio.timeout(_CLOSE_TIMEOUT_S):
                await handler.close_async()  # type: ignore[no-untyped-call]
        except TimeoutError:
            _log.warning("slack.socket.close_timed_out")
