"""The HTTP application: probes, metrics, and the handlers it is given for Slack and for events."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final, TypeAlias

import structlog
from aiohttp import web
from aiohttp.http_exceptions import BadHttpMessage
from aiohttp.typedefs import Handler as AiohttpHandler
from aiohttp.web_protocol import RequestPayloadError
from prometheus_client import CONTENT_TYPE_PLAIN_0_0_4, CollectorRegistry, generate_latest

from bot.ports.failures import StorageUnavailable
from bot.store import schema
from bot.store.database import Database
from bot.store.schema import Writable
from bot.telemetry.metrics import Metrics
from bot.web.health import Check, healthz, readyz
from bot.web.ingest import IngestRefused, refusal


def metrics_endpoint(
    registry: CollectorRegistry,
) -> Callable[[web.Request], Awaitable[web.Response]]:
    """Reading /proc blocks: it is done beside the loop."""

    async def handle(_request: web.Request) -> web.Response:
        body = await asyncio.to_thread(generate_latest, registry)
        return web.Response(body=body, headers={"Content-Type": CONTENT_TYPE_PLAIN_0_0_4})

    return handle


def _metrics_hint(port: int) -> Callable[[web.Request], Awaitable[web.Response]]:
    async def handle(_request: web.Request) -> web.Response:
        message = f"Each worker has metrics on its own port; this worker has {port}."
        return refusal(IngestRefused(404, "not_found", message))

    return handle


log = structlog.stdlib.get_logger(__name__)

MAX_BODY_BYTES: Final = 1 << 20

Handler: TypeAlias = Callable[[web.Request], Awaitable[web.StreamResponse]]


def create_web_app(
    *,
    database: Database,
    slack_connected: Check | None = None,
    slack_access: Check | None = None,
    audit_sinks: Check | None = None,
    slack_events: Handler | None = None,
    ingest: Handler | None = None,
    metrics: Metrics | None = None,
    routes: Sequence[web.RouteDef] = (),
    metrics_port: int | None = None,
) -> web.Application:
    """The app, not yet listening. A handler that is None has no route.

    `slack_connected` None means that Slack connects to us, without a connection to watch.
    `metrics_port` of a worker: the shared port answers 404, because a scrape would reach any of the
    workers.
    """
    app = web.Application(client_max_size=MAX_BODY_BYTES, middlewares=[_refuse_unreadable])
    registry = (metrics or Metrics()).registry
    checks = dict(_checks(database, slack_connected, slack_access))
    if audit_sinks is not None:
        checks["audit sinks"] = audit_sinks
    app.router.add_get("/healthz", healthz)
    app.router.add_get("/readyz", readyz(checks))
    if metrics_port is None:
        app.router.add_get("/metrics", metrics_endpoint(registry))
    else:
        app.router.add_get("/metrics", _metrics_hint(metrics_port))
    if slack_events is not None:
        app.router.add_post("/slack/events", slack_events)
    if ingest is not None:
        app.router.add_post("/ingest/v1/events", ingest)
    app.router.add_routes(routes)
    return app


@web.middleware
async def _refuse_unreadable(request: web.Request, handler: AiohttpHandler) -> web.StreamResponse:
    """A body with a too large declared length is not read; other bodies are capped while being
    read.

    Refused in the usual form: `{"error": {"code", "message"}}`.
    """
    if (request.content_length or 0) > MAX_BODY_BYTES:
        return refusal(IngestRefused(413, "too_large", f"send at most {MAX_BODY_BYTES} bytes"))
    try:
        return await handler(request)
    except web.HTTPClientError as error:
        code = error.reason.lower().replace(" ", "_")
        refused = refusal(
            IngestRefused(error.status, code, f"{error.reason}: {request.method} here")
        )
        if isinstance(error, web.HTTPMethodNotAllowed):
            refused.headers["Allow"] = error.headers["Allow"]
        return refused
    except (RequestPayloadError, BadHttpMessage):
        # Not in the declared encoding, or cut off. The first reader of the body finds it, before
        # any signature.
        return refusal(
            IngestRefused(400, "unreadable", "the body is cut off, or does not match its headers")
        )


def _checks(
    database: Database,
    slack_connected: Check | None,
    slack_access: Check | None,
) -> Mapping[str, Check]:
    writable = Writable(database)

    async def usable() -> str | None:
        await database.ping()
        if (await schema.schema_state(database)).problem is not None:
            return None  # said below
        try:
            await writable.check()
        except StorageUnavailable as error:
            log.warning("readiness.cannot_write", error=str(error))
            return "answers reads and refuses writes: is its disk full, or is it read-only?"
        return None

    async def fits() -> str | None:
        return (await schema.schema_state(database)).problem

    checks: dict[str, Check] = {"database": usable, "schema": fits}
    if slack_connected is not None:
        checks["slack"] = slack_connected
    if slack_access is not None:
        checks["slack token"] = slack_access
    return checks
