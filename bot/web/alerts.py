"""`POST /alerts/v1/<sender>`: alerts of Alertmanager, Grafana, PagerDuty and further senders.

A sender is admitted if its secret is configured. An answer of 200 means stored; senders repeat
unanswered requests, and repeating is harmless.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import Final

import structlog
from aiohttp import web

from bot.alerts.intake import IntakeCounts
from bot.alerts.wire import AlertWire, Unreadable
from bot.domain.alerts import Alert
from bot.ports.failures import StorageUnavailable
from bot.web.ingest import MAX_BYTES, IngestRefused, read_body, refusal, switched_off
from tools.capabilities import Clock
from tools.redactor import RedactionFailed

PATH = "/alerts/v1/"
# By the sender, the setting of `[http]` that opens its path.
_SETTINGS: Final = {
    "alertmanager": "alertmanager_token",
    "grafana": "grafana_token",
    "pagerduty": "pagerduty_secret",
    "cloudevents": "cloudevents_token",
}
_log = structlog.stdlib.get_logger(__name__)
_UNAVAILABLE = "alerts cannot be stored now; send again"


# Stores them. Raises StorageUnavailable, RedactionFailed: then nothing is stored.
TakeAlerts = Callable[[Sequence[Alert]], Awaitable[IntakeCounts]]


def alert_routes(
    wires: Sequence[AlertWire], take: TakeAlerts, clock: Clock, max_bytes: int = MAX_BYTES
) -> list[web.RouteDef]:
    """A route of each sender. One that is not among `wires` answers 503 and names its setting."""
    open_to = {wire.source for wire in wires}
    return [
        *(web.post(PATH + wire.source, _handler(wire, take, clock, max_bytes)) for wire in wires),
        *(
            web.post(PATH + source, switched_off(setting))
            for source, setting in _SETTINGS.items()
            if source not in open_to
        ),
    ]


def _handler(
    wire: AlertWire, take: TakeAlerts, clock: Clock, max_bytes: int
) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
    async def handle(request: web.Request) -> web.StreamResponse:
        try:
            taken = await take(await _read(wire, request, clock, max_bytes))
        except IngestRefused as refused:
            _log.info("alerts.refused", sender=wire.source, why=refused.code)
            return refusal(refused)
        except (StorageUnavailable, RedactionFailed):
            return refusal(IngestRefused(503, "unavailable", _UNAVAILABLE))
        return web.json_response({"taken": taken.taken, "unmatched": taken.unmatched})

    return handle


async def _read(
    wire: AlertWire, request: web.Request, clock: Clock, max_bytes: int
) -> Sequence[Alert]:
    body = await read_body(request, max_bytes)
    headers = {name.lower(): value for name, value in request.headers.items()}
    if not wire.admits(headers, body):
        raise IngestRefused(401, "unauthorized", "the token or the signature is wrong")
    try:
        return wire.read(headers, body, clock.now())
    except Unreadable as error:
        raise IngestRefused(400, "invalid", str(error)) from error
