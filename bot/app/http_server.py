"""The HTTP port: probes, webhooks, alerts, and the routes of Slack, the API and the page."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import structlog
from aiohttp import web

from bot.alerts.intake import AlertIntake, IntakeCounts
from bot.alerts.threads import AlertThreads
from bot.app.audit import sinks_behind
from bot.app.build import Base
from bot.app.rules import alert_wires
from bot.app.worker import Times, Worker
from bot.domain.alerts import Alert, FiledAlert, ProductOf
from bot.domain.ids import TeamId
from bot.engine.engine import Engine
from bot.ports.failures import StorageUnavailable
from bot.settings.http import HttpSettings
from bot.settings.model import Settings
from bot.settings.reading import ConfigurationError
from bot.slack.api.calls import WatchedCalls
from bot.slack.delivery.outbox import Outbox
from bot.slack.ingress.http_mode import create_http_handler
from bot.slack.ingress.workspace_routing import TeamApps
from bot.slack.views.alert_posts import AlertPosts
from bot.store.database import Database
from bot.web.alerts import TakeAlerts, alert_routes
from bot.web.health import Check, Note
from bot.web.ingest import ingest_handler, switched_off
from bot.web.listener import bind_problem, serving
from bot.web.server import create_web_app
from bot.web.webhooks import SenderSecrets, webhook_routes
from tools.product_names import product_in

if TYPE_CHECKING:
    from bot.slack.ingress.socket_mode import SocketMode


log = structlog.get_logger(__name__)

CALLS = 2  # a message, and the line about its end


def alert_products(settings: Settings) -> ProductOf:
    """The channels' product that an alert's labels hold, in any letter case."""
    named = dict.fromkeys(one for channel in settings.channels for one in channel.products)
    products = tuple(one for one in named if one != "*")
    # Senders write a service's name as people do; two spellings are not two incidents.
    folded = {one.casefold(): one for one in reversed(products)}
    found_in = partial(product_in, products=products, preferred=settings.observe.product_labels)

    def product_of(labels: Mapping[str, str]) -> str:
        found = found_in(labels)
        return found if found in products else folded.get(found.strip().casefold(), found)

    return product_of


async def listen(
    base: Base,
    stack: AsyncExitStack,
    slack: TeamApps,
    socket: "SocketMode | None",
    access: WatchedCalls,
    take_alerts: TakeAlerts,
    routes: Sequence[web.RouteDef],
    closing: asyncio.Event,
    *,
    worker: Worker | None = None,
) -> int:
    """The port. Without `[http] api_token` no event is ingested. `closing` is set when it closes.

    A `worker` shares the port with other workers, and serves its probes and metrics on its own.
    Raises ConfigurationError when the address cannot be listened on.
    """
    settings = base.settings
    secret = settings.slack.signing_secret.get_secret_value()
    token = settings.http.api_token.get_secret_value()
    app_with = partial(
        create_web_app,
        database=base.stores.database,
        slack_connected=_connected(socket) if socket else None,
        slack_access=partial(_slack_token, access),
        audit_sinks=partial(_audit_sinks, settings, base.stores.database),
        metrics=base.metrics,
    )
    app = app_with(
        slack_events=create_http_handler(slack, secret) if socket is None else None,
        ingest=ingest_handler(base.stores.events, token, base.clock)
        if token
        else switched_off("api_token"),
        routes=[*_alert_and_webhook_routes(base, take_alerts), *routes],
        metrics_port=worker.own_port if worker else None,
    )

    async def close(_app: web.Application) -> None:
        closing.set()

    app.on_shutdown.append(close)
    host, port = settings.http.host, worker.port if worker else settings.http.port
    try:
        if worker:
            own = serving(app_with(), host, worker.own_port, is_shared=True)
            await stack.enter_async_context(own)
        listening = serving(app, host, port, is_shared=worker is not None)
        return await stack.enter_async_context(listening)
    except OSError as error:
        raise ConfigurationError(f"http.port: {bind_problem(error, host, port)}") from error


def _connected(socket: "SocketMode") -> Check:
    """Without Slack the page and the API still work: that alone is no reason to close them."""

    async def socket_state() -> str | Note | None:
        if await socket.is_connected():
            return None
        if socket.refusal:
            return f"not connected: Slack refuses the app's token ({socket.refusal})"
        return Note("not connected, retrying; page, API and alerts are served")

    return socket_state


async def _audit_sinks(settings: Settings, database: Database) -> Note | None:
    """Questions are answered all the same, so a stalled sink is a note: it takes no replica away."""
    behind = await sinks_behind(settings, database)
    return Note("; ".join(behind)) if behind else None


def _alert_and_webhook_routes(base: Base, take_alerts: TakeAlerts) -> Sequence[web.RouteDef]:
    settings = base.settings
    secrets, product_of = _sender_secrets(settings.http), alert_products(settings)
    return [
        *webhook_routes(base.stores.events, base.clock, secrets, product_of),
        *alert_routes(alert_wires(settings), take_alerts, base.clock),
    ]


async def _slack_token(access: WatchedCalls) -> str | Note | None:
    """In both modes: without a usable token nothing can be answered, however events come in."""
    return await access.problem() or (Note(access.note) if access.note else None)


def _sender_secrets(http: HttpSettings) -> SenderSecrets:
    return SenderSecrets(
        http.api_token.get_secret_value(),
        http.flux_secret.get_secret_value(),
        http.github_secret.get_secret_value(),
        http.gitlab_token.get_secret_value(),
    )


@dataclass(frozen=True, slots=True)
class Alerting:
    """`take` stores a request's alerts and has them shown; `show` shows the pending ones."""

    take: Callable[[Sequence[Alert]], Awaitable[IntakeCounts]]
    show: Callable[[], Awaitable[None]]


@asynccontextmanager
async def alerting(
    base: Base, outbox: Outbox, engine: Engine, team: TeamId, times: Times
) -> AsyncIterator[Alerting]:
    """Over this process's Slack and engine; shown by a task of its own while the body runs.

    A storm is posted at Slack's pace, which neither a sender's request nor the clock waits for.
    """
    threads = AlertThreads(
        base.stores.alerts,
        AlertPosts(outbox),
        engine,
        team,
        base.redactor,
        base.metrics.alert_thread,
        call_timeout_s=CALLS * times.card_call_s,
        gather_s=times.gather_s,
    )
    due = asyncio.Event()

    async def wake() -> None:
        due.set()

    async def file(found: Sequence[FiledAlert]) -> None:
        await base.stores.alerts.file(found, base.live_config.alert_limits)
        due.set()

    products, received = alert_products(base.settings), base.metrics.alerts_received
    intake = AlertIntake(base.live_config.alerts, products, base.redactor, file, received)
    async with asyncio.TaskGroup() as tasks:
        showing = tasks.create_task(_show(threads, due), name="alerts")
        try:
            yield Alerting(intake.take, wake)
        finally:
            showing.cancel()


async def _show(threads: AlertThreads, due: asyncio.Event) -> None:
    while True:
        await due.wait()
        due.clear()
        try:
            with suppress(StorageUnavailable):  # a later run does it; the jobs report the outage
                await threads.run()
        except Exception:  # a bug in one thread must not end the showing of all
            log.exception("alerts.failed")
