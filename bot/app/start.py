"""Start, serve and drain: Slack, HTTP and the clock around one conversation, in order."""

import asyncio
from collections import ChainMap
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

import aiohttp
import structlog
from slack_bolt.async_app import AsyncApp

from bot.app import rules
from bot.app.audit import audit_jobs
from bot.app.backend_kinds import Cluster
from bot.app.backend_selection import NO_PLAYBACK, Playback
from bot.app.build import Base, build_base
from bot.app.conversation import Conversation, build_conversation
from bot.app.due_jobs import due_jobs
from bot.app.http_api import Chats, http_api, open_chats
from bot.app.http_server import alerting, listen
from bot.app.live_config import SECTIONS
from bot.app.platforms import Platforms, RoutedSurface, routed_directory
from bot.app.stores import open_installations
from bot.app.telemetry import open_telemetry
from bot.app.worker import Times, Worker, count_of
from bot.app.workspace import SlackWorkspace, incoming, open_workspace
from bot.app.workspaces import Workspaces, install_routes
from bot.domain.ids import API
from bot.engine.config import EngineConfig
from bot.engine.engine import Engine, EngineRepositories
from bot.engine.records import EngineRecords
from bot.settings.model import Settings
from bot.slack.api.web_api import slack_session
from bot.slack.delivery.pacing import Rates
from bot.slack.delivery.scheduler import EditScheduler
from bot.slack.ingress.payloads import SlackIdentity
from bot.slack.ingress.startup import check_slack
from bot.slack.ingress.workspace_routing import TeamApps
from bot.slack.listeners.background_tasks import BackgroundTasks
from bot.store.address import is_behind_pgbouncer
from bot.store.database import Database
from bot.store.restore_guard import CopyInDoubt, CopyState, RestoreGuard
from bot.store.restored import close_restored
from bot.upkeep.jobs import running
from bot.upkeep.reload import ReadSettings, Reload, started
from tools.errors import ToolError

if TYPE_CHECKING:
    from bot.slack.ingress.socket_mode import SocketMode


log = structlog.stdlib.get_logger(__name__)

SOCKET_GRACE_S = 3.0
REVIEW_TIMEOUT_S = 5.0
# The tables of kortex.toml that a reload puts in force.
RELOADED: Final = (*SECTIONS, "plugins", "mcp", "policy")
_DOUBT = (
    "the database may be an older copy of itself: {why}, and {open} of its proposals could still be "
    "sent. Nothing was started. For a restored copy, run `kortex restored`: they end as unknown "
    "and nothing is sent. For the database itself, run `kortex restored --moved`."
)


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
    playback: Playback = NO_PLAYBACK,
    times: Times = Times(),  # noqa: B008 - frozen
    read: ReadSettings | None = None,
    worker: Worker | None = None,
) -> AsyncIterator[Service]:
    """Start everything, run until the body ends, then take nothing new and drain.

    `read` reads the settings again for a reload. A `worker` gets its part of every allowance. Raises
    ConfigurationError, StartupError, StorageUnavailable, SecondProcess before it acknowledges Slack.
    """
    async with AsyncExitStack() as stack:
        base = await build_base(settings, stack, playback=playback)
        identity = await check_slack(rules.slack_access(settings))
        session = await stack.enter_async_context(slack_session())
        engine = await asyncio.to_thread(_engine, base, times.lease_s, stack)
        pace = (rates or Rates.with_edits(settings.slack.edits_per_minute)).divided(
            count_of(worker)
        )
        workspaces = await _workspaces(base, engine, session, identity, pace, stack)
        own, chats = workspaces.home, await open_chats(base, stack)
        platforms, everywhere, conversation = _routed(base, engine, workspaces, chats, times)
        errands = BackgroundTasks()
        slack = await _incoming(base, conversation, engine, errands, workspaces, stack)
        witnesses = await asyncio.to_thread(
            audit_jobs, settings, base.stores.database, own.surface, identity.team, stack
        )
        # From here on, work that a dead process left goes on.
        await stack.enter_async_context(_engine_running(engine, conversation, platforms, times))
        socket = _socket(settings, slack)
        showing = alerting(base, own.outbox, engine, identity.team, times)
        alerts = await stack.enter_async_context(showing)
        api = http_api(base, conversation, engine, chats, own, count_of(worker))
        routes = [*install_routes(base, workspaces, session), *api.routes]
        way_in = (slack, socket, own.access, alerts.take, routes, api.streams.closing)
        port = await listen(base, stack, *way_in, worker=worker)
        connected = socket.is_connected if socket else None
        parts = (base, conversation, engine, workspaces, everywhere, alerts)
        due = await due_jobs(*parts, connected=connected, times=times, stack=stack)
        await stack.enter_async_context(running({**due, **witnesses}, base.metrics.job_failed))
        # From here on, Slack's events come in.
        await _open_for_slack(socket, errands, stack)
        await base.stores.audit.append(started(base.settings, identity.team))
        await warn_of_excess(base.cluster)
        reload = _reload(base, conversation, read, worker)
        yield Service(base, conversation, engine, own.scheduler, port, reload, workspaces)


def _routed(
    base: Base, engine: Engine, workspaces: Workspaces, chats: Chats, times: Times
) -> tuple[Platforms, RoutedSurface, Conversation]:
    home, served = workspaces.home, ChainMap(workspaces.by_team, {API: chats.platform})
    platforms = Platforms(served, home.team, workspaces.reach)
    surface = RoutedSurface(platforms, home.surface.traits)
    directory, card_call_s = routed_directory(platforms, home.directory), times.card_call_s
    conversation = build_conversation(base, surface, engine, directory, card_call_s=card_call_s)
    return platforms, surface, conversation


def _reload(
    base: Base, conversation: Conversation, read: ReadSettings | None, worker: Worker | None
) -> Reload:
    number = worker.number if worker else None
    reload = Reload(base.settings, read, base.stores.audit, number)
    reload.add("rules", SECTIONS, base.live_config.prepare)
    reload.add("plugins", ("plugins",), base.plugins.prepare)
    reload.add("mcp", ("mcp",), base.mcp.prepare)
    reload.add("policy", ("policy",), conversation.toolboxes.prepare)
    return reload


async def warn_of_excess(cluster: Cluster | None) -> None:
    """Say loudly when the cluster would let this identity write or read secrets."""
    if cluster is None:
        return
    log = structlog.get_logger("kortex.kubernetes")
    try:
        async with asyncio.timeout(REVIEW_TIMEOUT_S):
            excess = await cluster.api.excess(cluster.reader.namespaces)
    except (ToolError, TimeoutError) as error:
        log.warning("kubernetes.permissions_unreadable", reason=str(error) or "no answer")
        return
    if excess:
        log.error("kubernetes.identity_can_write", may=excess)


def _engine(base: Base, lease_s: float, stack: AsyncExitStack) -> Engine:
    traces = open_telemetry(base.settings.otel, base.redactor, base.metrics, stack)
    path, database = rules.sqlite_file(base.settings), base.stores.database
    url = base.settings.database.url.get_secret_value()
    address, pgbouncer = rules.engine_database(url), is_behind_pgbouncer(url)
    config = EngineConfig(address, path, lease_s, base.settings.turns.max_live, pgbouncer=pgbouncer)
    records = EngineRecords(address, pgbouncer=pgbouncer)
    settle = restore_check(base.stores.restore_guard, database, records, lease_s)
    return Engine(config, EngineRepositories.of(database, config.version), settle, traces)


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
            platforms.stop_edits,
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
    base.live_config.home = identity.team
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


def restore_check(
    guard: RestoreGuard, database: Database, records: EngineRecords, lease_s: float
) -> Callable[[], Coroutine[None, None, None]]:
    """What to do before anything of that database is resumed.

    It raises CopyInDoubt, StorageUnavailable.
    """

    async def settle() -> None:
        async with guard.alone():
            copy_state = await guard.judge()
            if copy_state is CopyState.ITSELF:
                await guard.settle()
                return
            if await guard.is_served(lease_s):
                await _beside_others(guard, copy_state)
                return
            if copy_state is CopyState.COPY:
                ended = await records.end_unfinished()
                closed = await close_restored(database)
                log.warning(
                    "database.restored",
                    workflows=ended,
                    proposals=closed.proposals,
                    turns=closed.turns,
                )
            elif open_ := await guard.at_stake():
                raise CopyInDoubt(_DOUBT.format(why=guard.why_in_doubt, open=open_))
            await guard.settle()

    return settle


async def _beside_others(guard: RestoreGuard, copy_state: CopyState) -> None:
    if copy_state is CopyState.COPY:
        raise CopyInDoubt(
            "the database was restored from a copy while other replicas ran on it. Nothing was "
            "started. Stop all of them, then start one: it closes what the copy had open."
        )
    await guard.settle()
