"""A running bot: Slack, HTTP and the clock around one conversation, started and drained in order."""

import asyncio
from collections import ChainMap
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

import aiohttp
import structlog
from slack_bolt.async_app import AsyncApp

from bot.actions.decide import ExpirySweep
from bot.actions.display import CardSweep
from bot.actions.stranded import StrandedSweep
from bot.app import Base, Conversation, build_base, build_conversation
from bot.chat.delivery import Redelivery
from bot.domain.ids import API, TeamId
from bot.engine.config import EngineConfig
from bot.engine.engine import Engine, EngineRows
from bot.engine.records import EngineRecords
from bot.service.alerting import Alerting, alerting
from bot.service.api import http_api, open_chats
from bot.service.delivering import probe_jobs, redelivery_of
from bot.service.feeding import feed_jobs
from bot.service.incoming import incoming
from bot.service.installing import install_routes
from bot.service.keeping import settling
from bot.service.levels import level_jobs
from bot.service.listening import listen
from bot.service.routing import Platform, Platforms, RoutedSurface, routed_directory
from bot.service.sweeping import IDLE_S, budget_jobs, retention_jobs
from bot.service.times import Times
from bot.service.watching import watch_sweep
from bot.service.worker import Worker, count_of
from bot.service.workspace import SlackWorkspace, open_workspace
from bot.service.workspaces import Workspaces
from bot.settings.model import Settings
from bot.slack.api.web_api import slack_session
from bot.slack.delivery.pacing import Rates
from bot.slack.delivery.scheduler import EditScheduler
from bot.slack.ingress.payloads import SlackIdentity
from bot.slack.ingress.startup import check_slack
from bot.slack.ingress.workspace_routing import TeamApps
from bot.slack.listeners.background_tasks import BackgroundTasks
from bot.store.address import is_behind_pgbouncer
from bot.store.stranded import StrandedProposals
from bot.upkeep.jobs import Job, running
from bot.upkeep.reload import ReadSettings, Reload, started
from bot.wiring import rules
from bot.wiring.audit_outlets import audit_jobs
from bot.wiring.backends import Cluster
from bot.wiring.in_force import SECTIONS
from bot.wiring.observed import UNPLAYED, Played
from bot.wiring.telemetry import open_telemetry
from bot.wiring.workspace_rows import open_installations
from tools.errors import ToolError

if TYPE_CHECKING:
    from bot.slack.ingress.socket_mode import SocketMode

SOCKET_GRACE_S = 3.0
REVIEW_TIMEOUT_S = 5.0
STRANDED_S = 30.0
# The tables of kortex.toml that a reload puts in force.
RELOADED: Final = (*SECTIONS, "plugins", "mcp", "policy")


@dataclass(frozen=True, slots=True)
class Service:
    """What runs. `http_port` is where the web app listens."""

    base: Base
    conversation: Conversation
    engine: Engine
    scheduler: EditScheduler
    http_port: int
    reload: Reload
    workspaces: Workspaces


@asynccontextmanager
async def serving(
    settings: Settings,
    rates: Rates | None = None,
    *,
    played: Played = UNPLAYED,
    times: Times = Times(),  # noqa: B008 - frozen
    read: ReadSettings | None = None,
    worker: Worker | None = None,
) -> AsyncIterator[Service]:
    """Start everything, run until the body ends, then take nothing new and drain.

    `read` gives the settings as they are now, for a reload. A `worker` shares the port, and gets its
    part of every allowance. Raises ConfigurationError, StartupError, StorageUnavailable,
    SecondProcess before anything of Slack's is acknowledged.
    """
    async with AsyncExitStack() as stack:
        base = await build_base(settings, stack, played=played)
        identity = await check_slack(rules.slack_access(settings))
        session = await stack.enter_async_context(slack_session())
        engine = await asyncio.to_thread(_engine, base, times.lease_s, stack)
        pace = _pace(settings, rates, worker)
        workspaces = await _workspaces(base, engine, session, identity, pace, stack)
        own, chats = workspaces.home, await open_chats(base, stack)
        served = ChainMap(workspaces.by_team, {API: chats.platform})
        platforms = Platforms(served, identity.team, workspaces.reach)
        everywhere = RoutedSurface(platforms, own.surface.traits)
        conversation = _conversation(base, platforms, everywhere, own.platform, engine, times)
        errands = BackgroundTasks()
        slack = await _incoming(base, conversation, engine, errands, workspaces, stack)
        witnesses = await asyncio.to_thread(
            audit_jobs, settings, base.stores.database, own.surface, identity.team, stack
        )
        await stack.enter_async_context(_engine_running(engine, conversation, platforms, times))
        socket = _socket(settings, slack)
        showing = alerting(base, own.outbox, engine, identity.team, times)
        alerts = await stack.enter_async_context(showing)
        api = http_api(base, conversation, engine, chats, own, count_of(worker))
        routes = [*install_routes(base, workspaces, session), *api.routes]
        way_in = (slack, socket, own.access, alerts.take, routes, api.streams.closing)
        port = await listen(base, stack, *way_in, worker=worker)
        due = _jobs(base, conversation, workspaces, times)
        due |= level_jobs(base, own.access, socket.is_connected if socket else None)
        due |= await feed_jobs(base, stack)
        redelivery = redelivery_of(base, workspaces.all, everywhere)
        due |= _sweeps(base, conversation, engine, redelivery, alerts, times.tick_s)
        await stack.enter_async_context(running({**due, **witnesses}, base.metrics.job_failed))
        await _open_for_slack(socket, errands, stack)
        await _tell_of_start(base, identity.team)
        reload = _reload(base, conversation, read, worker)
        yield Service(base, conversation, engine, own.scheduler, port, reload, workspaces)


def _pace(settings: Settings, rates: Rates | None, worker: Worker | None) -> Rates:
    whole = rates or Rates.with_edits(settings.slack.edits_per_minute)
    return whole.divided(count_of(worker))


def _conversation(
    base: Base,
    platforms: Platforms,
    everywhere: RoutedSurface,
    home: Platform,
    engine: Engine,
    times: Times,
) -> Conversation:
    directory = routed_directory(platforms, home.directory)
    card_call_s = times.card_call_s
    return build_conversation(base, everywhere, engine, directory, card_call_s=card_call_s)


def _reload(
    base: Base, conversation: Conversation, read: ReadSettings | None, worker: Worker | None
) -> Reload:
    number = worker.number if worker else None
    reload = Reload(base.settings, read, base.stores.audit, number)
    reload.add("rules", SECTIONS, base.in_force.prepare)
    reload.add("plugins", ("plugins",), base.plugins.prepare)
    reload.add("mcp", ("mcp",), base.mcp.prepare)
    reload.add("policy", ("policy",), conversation.toolboxes.prepare)
    return reload


async def _tell_of_start(base: Base, team: TeamId) -> None:
    await base.stores.audit.append(started(base.settings, team))
    await warn_of_excess(base.cluster)


async def warn_of_excess(cluster: Cluster | None) -> None:
    """Say loudly when the cluster would let this identity write or read secrets."""
    if cluster is None:
        return
    log = structlog.get_logger("kortex.kubernetes")
    try:
        async with asyncio.timeout(REVIEW_TIMEOUT_S):
            excess = await cluster.api.excess(cluster.reader.namespaces)
    except (ToolError, TimeoutError) as error:
        log.warning("permissions could not be checked", reason=str(error) or "no answer")
        return
    if excess:
        log.error("this identity may do more than read", may=excess)


def _engine(base: Base, lease_s: float, stack: AsyncExitStack) -> Engine:
    """The engine, its turns traced. Reads certificates."""
    traces = open_telemetry(base.settings.otel, base.redactor, base.metrics, stack)
    path, database = rules.sqlite_file(base.settings), base.stores.database
    url = base.settings.database.url.get_secret_value()
    address, pgbouncer = rules.engine_database(url), is_behind_pgbouncer(url)
    config = EngineConfig(address, path, lease_s, base.settings.turns.max_live, pgbouncer=pgbouncer)
    records = EngineRecords(address, pgbouncer=pgbouncer)
    settle = settling(base.stores.origin, database, records, lease_s)
    return Engine(config, EngineRows.of(database, config.version), settle, traces)


@asynccontextmanager
async def _engine_running(
    engine: Engine, conversation: Conversation, platforms: Platforms, times: Times
) -> AsyncIterator[None]:
    async with asyncio.TaskGroup() as background:
        await engine.start(
            background,
            conversation.turns.answer,
            conversation.decide.run,
            conversation.turns.end_lost,
            platforms.show_waiting,
            platforms.show_in_line,
            platforms.leave,
        )
        try:
            yield
        finally:
            await engine.stop(times.grace_s)


async def _workspaces(
    base: Base,
    engine: Engine,
    session: aiohttp.ClientSession,
    identity: SlackIdentity,
    rates: Rates,
    stack: AsyncExitStack,
) -> Workspaces:
    base.in_force.home = identity.team
    token = base.settings.slack.bot_token.get_secret_value()
    home = await open_workspace(base, engine, session, identity, token, rates, stack)
    rows = await open_installations(base.settings, base.stores.database)
    return Workspaces(base, engine, session, rates, rows, home)


async def _incoming(
    base: Base,
    conversation: Conversation,
    engine: Engine,
    errands: BackgroundTasks,
    workspaces: Workspaces,
    stack: AsyncExitStack,
) -> TeamApps:
    def of(one: SlackWorkspace) -> AsyncApp:
        removed = partial(workspaces.look_after, one.team)
        return incoming(base, conversation, engine, one, errands, removed)

    await stack.enter_async_context(workspaces.running(of))
    home = incoming(base, conversation, engine, workspaces.home, errands)
    return TeamApps(home, workspaces.app_of, base.metrics.acknowledged)


def _socket(settings: Settings, slack: TeamApps) -> "SocketMode | None":
    if settings.slack.mode != "socket":
        return None
    from bot.slack.ingress.socket_mode import SocketMode

    token = settings.slack.app_token.get_secret_value()
    return SocketMode(slack, token, settings.slack.api_base_url)


async def _open_for_slack(
    socket: "SocketMode | None", errands: BackgroundTasks, stack: AsyncExitStack
) -> None:
    stack.push_async_callback(errands.drain, SOCKET_GRACE_S)
    if socket is not None:
        stack.push_async_callback(socket.stop, SOCKET_GRACE_S)
        await socket.start()


def _jobs(
    base: Base, conversation: Conversation, workspaces: Workspaces, times: Times
) -> dict[str, Job]:
    tick_s = times.tick_s
    stranded = StrandedSweep(
        StrandedProposals(base.stores.database).find,
        base.stores.proposals,
        conversation.display,
        on_state=base.metrics.proposal_became,
    )
    return {
        "freeze": Job(tick_s, base.freezes.switch.sync),
        "origin": Job(tick_s, base.stores.origin.note),
        "idle sessions": Job(IDLE_S, base.stores.sessions.close_idle),
        "stranded": Job(STRANDED_S, stranded.run),
        **retention_jobs(base),
        "workspaces": Job(tick_s, workspaces.sync),
        **probe_jobs(workspaces.all, times),
        **budget_jobs(base, workspaces.all, tick_s),
    }


def _sweeps(
    base: Base,
    conversation: Conversation,
    engine: Engine,
    redelivery: Redelivery,
    alerts: Alerting,
    tick_s: float,
) -> dict[str, Job]:
    """Jobs over rows of proposals, threads, alerts and answers that could not be shown."""
    stores = base.stores
    return {
        "cards": Job(tick_s, CardSweep(stores.cards, conversation.display).run),
        "expiry": Job(tick_s, ExpirySweep(stores.proposals, engine).run),
        "watches": Job(tick_s, watch_sweep(base, conversation).run),
        "alerts": Job(tick_s, alerts.show),
        "delivery": Job(tick_s, redelivery.run),
        "threads": Job(tick_s, engine.look_after_threads),
    }
