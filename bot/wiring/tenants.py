"""What is in force for one tenant: live views of what is in force for all, without a copy that could be stale."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar, overload

from bot.domain.tenancy import holds_in
from bot.settings.model import Settings
from bot.slack.roles.directory import RoleMembers
from bot.wiring.rules import USD_MICROS

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
