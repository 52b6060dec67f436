"""The roles that a person was found to hold, and the connections to outside systems that are theirs.

Ids only; tokens stay with the settings.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

EVERYBODY = "*"


@dataclass(frozen=True, slots=True)
class HeldRoles:
    """Of those asked for: the ones held, and the ones of which it could not be told."""

    held: frozenset[str] = frozenset()
    unread: tuple[str, ...] = ()


NO_ROLES: Final = HeldRoles()


@dataclass(frozen=True, slots=True)
class ConnectionRule:
    """`id` names the system first, as in `platform:alice`. `users` are ids of people, or `*`."""

    id: str
    users: tuple[str, ...]

    @property
    def system(self) -> str:
        """What it leads to."""
        return self.id.partition(":")[0]


def connections_of(rules: Sequence[ConnectionRule], user: str) -> frozenset[str]:
    """Of each system one: the person's own, else the one that is everybody's, else none."""
    chosen: dict[str, str] = {}
    for wanted in (EVERYBODY, user):
        for rule in reversed(rules):
            if wanted and wanted in rule.users:
                chosen[rule.system] = rule.id
    return frozenset(chosen.values())
