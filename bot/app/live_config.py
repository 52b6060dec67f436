"""The settings that a reload replaces: alerts, channels, roles, admins, actions and freeze windows.

Every part reads them at each use, so a reload needs no restart."""

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar, assert_never, overload

from adapters.on_call.port import OnCall
from bot.actions.catalog import ActionCatalog
from bot.app import rules
from bot.app.backend_selection import named_tables
from bot.app.http_access import route_of
from bot.app.rules import USD_MICROS
from bot.chat.turn_request import TurnConfig
from bot.domain.alerts import AlertLimits
from bot.domain.channel import ChannelRule, rules_for
from bot.domain.ids import TeamId
from bot.domain.tenancy import EVERY, HOME, holds_in, tenant_of
from bot.settings.model import Settings
from bot.settings.policy import OnCallSettings
from bot.slack.roles.directory import RoleMembers
from bot.upkeep.reload import Prepared

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class TenantRule:
    """`[workspaces.T0123]`, in micro-dollars."""

    daily_usd_micros: int = 0
    admins: tuple[str, ...] = ()


def tenant_rules(settings: Settings) -> Mapping[str, TenantRule]:
    return {
        team: TenantRule(round(own.daily_usd_limit * USD_MICROS), own.admins)
        for team, own in settings.workspaces.items()
    }


class Live(Sequence[T]):
    """What a look-up gives at each use."""

    def __init__(self, now: Callable[[], Sequence[T]]) -> None:
        self._now = now

    @overload
    def __getitem__(self, index: int) -> T: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[T]: ...

    def __getitem__(self, index: int | slice) -> T | Sequence[T]:
        return self._now()[index]

    def __len__(self) -> int:
        return len(self._now())

    def __iter__(self) -> Iterator[T]:
        return iter(tuple(self._now()))


class LiveMapping(Mapping[str, T]):
    """What a look-up gives at each use, by name."""

    def __init__(self, now: Callable[[], Mapping[str, T]]) -> None:
        self._now = now

    def __getitem__(self, key: str) -> T:
        return self._now()[key]

    def __len__(self) -> int:
        return len(self._now())

    def __iter__(self) -> Iterator[str]:
        return iter(tuple(self._now()))


def roles_in(roles: Mapping[str, RoleMembers], tenant: str) -> Mapping[str, RoleMembers]:
    """The roles of one workspace: a role exists only where its ids belong."""
    return {name: role for name, role in roles.items() if holds_in(role.workspace, tenant)}


SECTIONS = (
    "alerts", "channels", "roles", "admins", "workspaces", "actions", "reflexes", "freeze",
    "llm.tools",
)  # fmt: skip


def role_members(settings: Settings) -> Mapping[str, RoleMembers]:
    """`[roles.NAME]`. Reads certificates. Raises ConfigurationError."""
    return {
        name: RoleMembers(role.usergroups, role.users, _rota(name, role.oncall), role.workspace)
        for name, role in settings.roles.items()
    }


def _rota(role: str, settings: OnCallSettings | None) -> OnCall | None:
    if settings is None:
        return None
    timeout_s, token = settings.timeout.total_seconds(), settings.token.get_secret_value()
    route = route_of(settings, f"roles.{role}.oncall")
    match settings.kind:
        case "pagerduty":
            from adapters.on_call.pagerduty import PagerDutyOnCall

            return PagerDutyOnCall(settings.url, settings.schedules, timeout_s, token, route)
        case "json":
            from adapters.on_call.json_endpoint import JsonOnCall

            return JsonOnCall(settings.url, settings.path, timeout_s, route)
        case _:
            assert_never(settings.kind)


class _Reading:
    def __init__(self, settings: Settings) -> None:
        self.tenants = tenant_rules(settings)
        self.channels = rules.channel_rules(settings)
        self.alerts = rules.alert_rules(settings)
        self.alert_limits = rules.alert_limits(settings)
        self.roles = role_members(settings)
        self.admin_roles = settings.admins.roles
        self.actions = ActionCatalog(rules.action_rules(settings))
        self.action_lines = rules.action_lines(self.actions)
        self.windows = rules.freeze_windows(settings)
        self.order_tokens = rules.order_tokens(settings)
        self.reading_tokens = rules.reading_tokens(settings)
        self.tool_timeouts = rules.tool_timeouts(settings)


class LiveConfig:
    """The newest reading, which a reload replaces whole; every attribute is read through at each use.

    Reads certificates when it is made. Raises CatalogError for an action that cannot work,
    ConfigurationError.

    `home` is the workspace of `[slack] bot_token` once it is known; until then there is no other.
    `check` raises ConfigurationError for edited settings that may not be put in force.
    """

    def __init__(
        self, settings: Settings, check: Callable[[Settings], None] = lambda _: None
    ) -> None:
        self._check = check
        self._allowed = settings.slack.allowed_workspaces
        self._now = _Reading(settings)
        self.home: TeamId | None = None
        self.actions = self._now.actions
        self.channels = Live(lambda: self._now.channels)
        self.alerts = Live(lambda: self._now.alerts)
        self.admin_roles = Live(lambda: self._now.admin_roles)
        self.action_lines = Live(lambda: self._now.action_lines)
        self.windows = Live(lambda: self._now.windows)
        self.roles = LiveMapping(lambda: self._now.roles)
        self.order_tokens = LiveMapping(lambda: self._now.order_tokens)
        self.reading_tokens = LiveMapping(lambda: self._now.reading_tokens)
        self.tool_timeouts = LiveMapping(lambda: self._now.tool_timeouts)

    @property
    def alert_limits(self) -> AlertLimits:
        return self._now.alert_limits

    def tenant_of(self, team: TeamId) -> str:
        return HOME if self.home is None else tenant_of(team, self.home)

    def channels_of(self, tenant: str) -> Sequence[ChannelRule]:
        return Live(lambda: rules_for(self.channels, tenant))

    def may_install(self, team: TeamId) -> bool:
        """Whether the settings name that workspace, or all of them. A reload may revoke it."""
        return team in self._now.tenants or team in self._allowed or EVERY in self._allowed

    def channels_at(self, team: TeamId) -> Sequence[ChannelRule]:
        return rules_for(self.channels, self.tenant_of(team))

    def turn_config(self, settings: Settings) -> TurnConfig:
        config = rules.turn_config(settings, self.channels, self.action_lines, self.tenant_of)
        return replace(config, tables_of=partial(named_tables, settings.observe))

    def admin_roles_of(self, tenant: str) -> Sequence[str]:
        """The admin roles of a workspace; one that the settings do not name has none."""
        if tenant == HOME:
            return self.admin_roles
        return Live(lambda: self._now.tenants.get(tenant, TenantRule()).admins)

    def roles_of(self, tenant: str) -> Mapping[str, RoleMembers]:
        return LiveMapping(lambda: roles_in(self._now.roles, tenant))

    def daily_usd_micros(self, tenant: str) -> int:
        """The workspace's own limit; 0 for none."""
        return self._now.tenants.get(tenant, TenantRule()).daily_usd_micros

    async def prepare(self, settings: Settings) -> Prepared:
        """The same of other settings, checked whole. Raises CatalogError, ConfigurationError."""
        self._check(settings)
        new = await asyncio.to_thread(_Reading, settings)

        def put_in_force() -> None:
            self.actions.replace(new.actions)
            self._now = new

        return Prepared(put_in_force)
