"""Whose a team is: the bot's own workspace's, or that of another one which installed the bot.

A tenant is the id of such another workspace. All else is `HOME`'s: its own team, conversations over
HTTP and on the command line.
"""

from collections.abc import Callable
from typing import Final, TypeAlias

from bot.domain.ids import TeamId

HOME: Final = ""
EVERY: Final = "*"  # where a rule names a tenant: each of them

TenantOf: TypeAlias = Callable[[TeamId], str]


def home_alone(_team: TeamId) -> str:
    """Where no other workspace can install the bot."""
    return HOME


def is_shared(team: TeamId) -> bool:
    """Whether who reads one thread of a channel there reads its others.

    A conversation over HTTP is its owner's, whoever else has one of the same channel.
    """
    return not team.startswith("@")


def tenant_of(team: TeamId, home: TeamId) -> str:
    """Whose that team is. Our own teams' names begin with @, and no platform's."""
    return HOME if team == home or team.startswith("@") else team


def scope_of(channel: str, tenant: str) -> str:
    """A channel among those of every workspace: its id may be another one's too."""
    return channel if tenant == HOME else f"{tenant}:{channel}"


def holds_in(workspace: str, tenant: str) -> bool:
    """Whether what names that workspace ("" home, `*` every one) holds for the tenant."""
    return workspace in (EVERY, tenant)
