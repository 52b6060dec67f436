"""The roles that a person was found to hold, and the connections to outside systems that are theirs.

Ids only; tokens stay with the settings.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from bot.domain.tenancy import HOME, holds_in

EVERYBODY = "*"


@dataclass(frozen=True, slots=True)
class HeldRoles:
    """Of the requested roles: the held ones, and the unreadable ones."""

    held: frozenset[str] = frozenset()
    unread: tuple[str, ...] = ()


NO_ROLES: Final = HeldRoles()
_ON_CALL: Final = frozenset({"on-call", "on_call", "oncall", "on call"})


def also_words(roles: Sequence[str]) -> str:
    """What a person has to be as well: `on call`, `an sre-lead or on call`. Roles have people's names."""
    return " or ".join("on call" if r.lower() in _ON_CALL else with_article(r) for r in roles)


def with_article(role: str) -> str:
    """`a responder`, `an sre-lead`."""
    spelt = role[:3].lower() == "sre" or role[:1].lower() in "aeiou"
    return f"{'an' if spelt else 'a'} {role}"


@dataclass(frozen=True, slots=True)
class ConnectionRule:
    """`id` names the system first, as in `platform:alice`.

    `users` are ids of people of that `workspace` (a tenant, or `*`), or `*`.
    """

    id: str
    users: tuple[str, ...]
    workspace: str = HOME

    @property
    def system(self) -> str:
        return self.id.partition(":")[0]


def connections_of(
    rules: Sequence[ConnectionRule], user: str, tenant: str = HOME
) -> frozenset[str]:
    """Of each system one: the person's own, else the one that is everybody's, else none."""
    chosen: dict[str, str] = {}
    for wanted in (EVERYBODY, user):
        for rule in reversed(rules):
            if wanted and wanted in rule.users and holds_in(rule.workspace, tenant):
                chosen[rule.system] = rule.id
    return frozenset(chosen.values())
