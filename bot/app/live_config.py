"""The settings that a reload replaces: alerts, channels, roles, admins, actions and freeze windows.

Held by everything that goes by them, and read anew at each use."""

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Generic, TypeVar, assert_never, overload

from adapters.on_call.port import OnCall
from bot.actions.catalog import ActionCatalog
from bot.app import rules
from bot.app.backend_selection import named_tables
from bot.app.http_access import route_of
from bot.app.rules import USD_MICROS
from bot.chat.turn_request import TurnConfig
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
    """By the workspace's id."""
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


class RolesOfTenant(Mapping[str, RoleMembers]):
    """A role names ids of its own workspace: for any other one it does not exist."""

    def __init__(self, roles: Mapping[str, RoleMembers], tenant: str) -> None:
        self._roles = roles
        self._tenant = tenant

    def __getitem__(self, name: str) -> RoleMembers:
        role = self._roles[name]
        if not holds_in(role.workspace, self._tenant):
            raise KeyError(name)
        return role

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __iter__(self) -> Iterator[str]:
        return iter([n for n, r in self._roles.items() if holds_in(r.workspace, self._tenant)])


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


class ReplaceableSequence(Sequence[T], Generic[T]):
    """A sequence whose items are all replaced at once."""

    def __init__(self, items: Iterable[T] = ()) -> None:
        self._items = tuple(items)

    def replace(self, items: Iterable[T]) -> None:
        """From here on, these."""
        self._items = tuple(items)

    @overload
    def __getitem__(self, index: int) -> T: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[T]: ...

    def __getitem__(self, index: int | slice) -> T | Sequence[T]:
        return self._items[index]

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator[T]:
        return iter(self._items)  # of one moment, even when it is replaced in the middle


class ReplaceableMapping(Mapping[str, T], Generic[T]):
    """A mapping whose entries are all replaced at once."""

    def __init__(self, entries: Mapping[str, T]) -> None:
        self._entries = dict(entries)

    def replace(self, entries: Mapping[str, T]) -> None:
        """From here on, these."""
        self._entries = dict(entries)

    def __getitem__(self, key: str) -> T:
        return self._entries[key]

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)


class LiveConfig:
    """Read through at each use. Reads certificates when it is made. Raises CatalogError for an action
    that cannot work, ConfigurationError.

    `home` is the workspace of `[slack] bot_token` once it is known; until then there is no other.

    `check` raises ConfigurationError for edited settings that may not be put in force.
    """

    def __init__(
        self, settings: Settings, check: Callable[[Settings], None] = lambda _: None
    ) -> None:
        self._check = check
        self.home: TeamId | None = None
        self._allowed = settings.slack.allowed_workspaces
        self.tenants = ReplaceableMapping(tenant_rules(settings))
        self.channels = ReplaceableSequence(rules.channel_rules(settings))
        self.alerts = ReplaceableSequence(rules.alert_rules(settings))
        self.alert_limits = rules.alert_limits(settings)
        self.roles = ReplaceableMapping(role_members(settings))
        self.admin_roles = ReplaceableSequence(settings.admins.roles)
        self.actions = ActionCatalog(rules.action_rules(settings))
        self.action_lines = ReplaceableSequence(rules.action_lines(self.actions))
        self.windows = ReplaceableSequence(rules.freeze_windows(settings))
        self.order_tokens = ReplaceableMapping(rules.order_tokens(settings))
        self.reading_tokens = ReplaceableMapping(rules.reading_tokens(settings))
        self.tool_timeouts = ReplaceableMapping(rules.tool_timeouts(settings))

    def tenant_of(self, team: TeamId) -> str:
        """`bot.domain.tenancy.TenantOf`."""
        return HOME if self.home is None else tenant_of(team, self.home)

    def channels_of(self, tenant: str) -> Sequence[ChannelRule]:
        """The rules that hold there."""
        return Live(lambda: rules_for(self.channels, tenant))

    def may_install(self, team: TeamId) -> bool:
        """Whether somebody named that workspace, or every one. A reload may take that back."""
        return team in self.tenants or team in self._allowed or EVERY in self._allowed

    def channels_at(self, team: TeamId) -> Sequence[ChannelRule]:
        """The rules that a place of that team stands under."""
        return rules_for(self.channels, self.tenant_of(team))

    def turn_config(self, settings: Settings) -> TurnConfig:
        """What every turn goes by."""
        config = rules.turn_config(settings, self.channels, self.action_lines, self.tenant_of)
        return replace(config, tables_of=partial(named_tables, settings.observe))

    def admin_roles_of(self, tenant: str) -> Sequence[str]:
        """Who administers it; a workspace of which nothing is said has no admins."""
        if tenant == HOME:
            return self.admin_roles
        return Live(lambda: self.tenants.get(tenant, TenantRule()).admins)

    def roles_of(self, tenant: str) -> Mapping[str, RoleMembers]:
        """Those whose ids are its own."""
        return RolesOfTenant(self.roles, tenant)

    def daily_usd_micros(self, tenant: str) -> int:
        """Its own limit; 0: none."""
        return self.tenants.get(tenant, TenantRule()).daily_usd_micros

    async def prepare(self, settings: Settings) -> Prepared:
        """The same of other settings, checked whole. Raises CatalogError, ConfigurationError."""
        self._check(settings)
        new = await asyncio.to_thread(LiveConfig, settings)

        def put_in_force() -> None:
            self.channels.replace(new.channels)
            self.alerts.replace(new.alerts)
            self.alert_limits = new.alert_limits
            self.roles.replace(new.roles)
            self.admin_roles.replace(new.admin_roles)
            self.tenants.replace(new.tenants)
            self.actions.replace(new.actions)
            self.action_lines.replace(new.action_lines)
            self.windows.replace(new.windows)
            self.order_tokens.replace(new.order_tokens)
            self.reading_tokens.replace(new.reading_tokens)
            self.tool_timeouts.replace(new.tool_timeouts)

        return Prepared(put_in_force)
