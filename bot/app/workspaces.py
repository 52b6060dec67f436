"""The workspaces that installed the app: opened on demand, closed when the app is removed.

Every replica follows the stored installations. At each tick, or when an event names a workspace, it
opens installations of other replicas, closes removed ones and reopens repeated ones.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Final

import aiohttp
import structlog
from aiohttp import web
from slack_bolt.async_app import AsyncApp

from bot.app.build import Base
from bot.app.platforms import Platform
from bot.app.workspace import SlackWorkspace, open_workspace
from bot.domain.ids import TeamId
from bot.domain.tenancy import HOME
from bot.engine.engine import Engine
from bot.ports.failures import StorageUnavailable, SurfaceFailed, SurfaceGone
from bot.ports.installations import Installations, Installed
from bot.slack.api.single_flight import KeyedLock
from bot.slack.api.web_api import LockedOut
from bot.slack.delivery.pacing import Rates
from bot.slack.ingress.denials import Denials
from bot.slack.ingress.payloads import SlackIdentity
from bot.store.installations import StoredOAuthStates

log = structlog.stdlib.get_logger(__name__)

# An answer that is under way when a workspace closes ends within the longest wait that Slack may ask
# of it (`bot.slack.api.web_api`), which its pace has to outlive.
CLOSING_S: Final = 600.0
# https://docs.slack.dev/reference/methods/auth.test: the app was removed, or its token taken back.
REMOVED: Final = frozenset({"account_inactive", "token_revoked"})
Incoming = Callable[[SlackWorkspace], AsyncApp]


@dataclass(frozen=True, slots=True)
class _Open:
    workspace: SlackWorkspace
    app: AsyncApp
    as_of: tuple[int, int]
    closed: asyncio.Event = field(default_factory=asyncio.Event)


class Workspaces:
    """Those of one process, `by_team` as conversations are routed; without `installations` home alone."""

    def __init__(
        self,
        base: Base,
        engine: Engine,
        session: aiohttp.ClientSession,
        rates: Rates,
        installations: Installations | None,
        home: SlackWorkspace,
    ) -> None:
        self._base = base
        self._engine = engine
        self._session = session
        self._rates = rates
        self.installations = installations
        self.home = home
        self.by_team: dict[TeamId, Platform] = {home.team: home.platform}
        self._open: dict[TeamId, _Open] = {}
        self._locks = KeyedLock()
        self._tasks: asyncio.TaskGroup | None = None
        self._serving: set[asyncio.Task[None]] = set()
        self._incoming: Incoming | None = None
        self._tried: dict[TeamId, int] = {}  # by the row's revision

    @asynccontextmanager
    async def running(self, incoming: Incoming) -> AsyncIterator[None]:
        """They are served while the body runs."""
        async with asyncio.TaskGroup() as tasks:
            self._tasks, self._incoming = tasks, incoming
            try:
                await self.catch_up()
                yield
            finally:
                self._tasks = None
                for each in self._serving:
                    each.cancel()

    def all(self) -> list[SlackWorkspace]:
        return [self.home, *(each.workspace for each in self._open.values())]

    async def app_of(self, team: TeamId) -> AsyncApp | None:
        """`bot.slack.ingress.workspace_routing.AppOf`; None for home too."""
        await self.reach(team)
        found = self._open.get(team)
        return found.app if found else None

    async def reach(self, team: TeamId) -> None:
        """Open it if it is installed. Raises StorageUnavailable."""
        rows, live_config = self.installations, self._base.live_config
        if rows is None or team in self._open or live_config.tenant_of(team) == HOME:
            return
        if not live_config.may_install(team):
            return
        async with self._locks.hold(team):
            if team not in self._open and (found := await rows.find(team)):
                await self._open_one(found)

    async def sync(self) -> None:
        if self.installations is None:
            return
        stored = {
            team: revision
            for team, revision in (await self.installations.revisions()).items()
            if self._base.live_config.may_install(team)
        }
        for team, one in [*self._open.items()]:
            if (stored.get(team), self._limit(team)) != one.as_of:
                await self._renew(team)
            elif one.workspace.access.refusal in REMOVED:
                await self.look_after(team, one.workspace.access.refusal)
        for team, revision in stored.items():
            if self._tried.get(team) != revision:  # what cannot be opened is not tried at each tick
                await self.reach(team)
                self._tried[team] = revision

    async def _renew(self, team: TeamId) -> None:
        """It was opened, or changed, since the rows were read: as its row is now."""
        async with self._locks.hold(team):
            one, rows = self._open.get(team), self.installations
            found = await rows.find(team) if rows else None
            if found is not None and not self._base.live_config.may_install(team):
                found = None
            now = (found.revision, self._limit(team)) if found else None
            if one is None or now == one.as_of:
                return
            if found is not None:
                await self._open_one(found)
            if self._open.get(team) is one:  # removed, or it could not be opened again
                self._close(team)
            else:
                one.closed.set()

    async def look_after(self, team: TeamId, why: str) -> None:
        """Slack reported that the app was removed: true if it no longer accepts the token.

        A report about an earlier installation does not count. Raises StorageUnavailable.
        """
        one, rows = self._open.get(team), self.installations
        if one is None or rows is None or not await _is_refused(one.workspace):
            return
        revision, _ = one.as_of
        if await rows.remove(team, why, revision):
            log.warning("workspace.removed", team=team, why=why)
        if self._open.get(team) is one:
            self._close(team)

    async def installed(self, team: TeamId) -> None:
        """Open a workspace that was just installed here, by its new token."""
        log.info("workspace.installed", team=team)
        await self.catch_up()

    async def catch_up(self) -> None:
        """As `sync`; a later tick reads what cannot be read now."""
        try:
            await self.sync()
        except StorageUnavailable:
            log.warning("workspaces.opening_delayed")

    def _limit(self, team: TeamId) -> int:
        return self._base.live_config.daily_usd_micros(team)

    async def _open_one(self, found: Installed) -> None:
        if self._tasks is None or self._incoming is None:
            return
        opened = asyncio.Event()  # the opening continues if its waiter gives up
        serving = self._serve(found, self._incoming, opened)
        task = self._tasks.create_task(serving, name=f"workspace {found.team}")
        self._serving.add(task)
        task.add_done_callback(self._serving.discard)
        await opened.wait()

    async def _serve(self, found: Installed, incoming: Incoming, opened: asyncio.Event) -> None:
        async with AsyncExitStack() as stack:
            try:
                one = await self._opened(found, incoming, stack)
            except Exception:  # the other workspaces still work
                log.exception("workspace.not_opened", team=found.team)
                opened.set()
                return
            self._open[found.team] = one
            self.by_team[found.team] = one.workspace.platform
            log.info("workspace.opened", team=found.team)
            opened.set()
            await one.closed.wait()
            await asyncio.sleep(CLOSING_S)

    async def _opened(self, found: Installed, incoming: Incoming, stack: AsyncExitStack) -> _Open:
        identity = SlackIdentity(
            team=found.team,
            bot_user=found.bot_user,
            bot_id=found.bot_id,
            app_id=found.app_id,
            enterprise=found.enterprise,
            site=found.site,
        )
        workspace = await open_workspace(
            self._base, self._engine, self._session, identity, found.token, self._rates, stack
        )
        return _Open(workspace, incoming(workspace), (found.revision, self._limit(found.team)))

    def _close(self, team: TeamId) -> None:
        one = self._open.pop(team, None)
        if one is not None:
            self.by_team.pop(team, None)
            self._tried.pop(team, None)
            one.closed.set()
            log.info("workspace.closed", team=team)


async def _is_refused(workspace: SlackWorkspace) -> bool:
    try:
        await workspace.access.call("auth.test")
    except LockedOut as locked:
        return locked.code in {*REMOVED, "invalid_auth"}
    except (SurfaceFailed, SurfaceGone):
        return False  # asked again when nothing was heard of it for a while
    return False


def install_routes(
    base: Base, workspaces: Workspaces, session: aiohttp.ClientSession
) -> Sequence[web.RouteDef]:
    """None without `[slack] client_id`."""
    if workspaces.installations is None:
        return ()
    # Slack's flow is a large part of its library, and only this needs it.
    from bot.slack.ingress.oauth import Installing, InstallRules

    slack, home = base.settings.slack, workspaces.home.identity
    judged_by = InstallRules(
        slack.client_id,
        slack.client_secret.get_secret_value(),
        slack.api_base_url,
        slack.redirect_url,
        home.team,
        home.app_id,
        base.live_config.may_install,
    )
    installing = Installing(
        judged_by,
        workspaces.installations,
        StoredOAuthStates(base.stores.database),
        Denials(base.stores.audit),
        session,
        workspaces.installed,
    )
    return installing.routes()
