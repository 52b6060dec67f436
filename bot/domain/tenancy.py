"""The tenant of a team: the bot's own workspace, or another one that installed the bot.

A tenant is the id of such another workspace. Everything else is `HOME`: its own team, conversations
over HTTP and on the command line.
"""

from collections.abc import Callable
from typing import Final, TypeAlias

from bot.domain.ids import TeamId

HOME: Final = ""
EVERY: Final = "*"  # where a rule names a tenant: each of them

TenantOf: TypeAlias = Callable[[TeamId], str]


def single_tenant(_team: TeamId) -> str:
    """Where no other workspace can install the bot."""
    return HOME


def is_shared(team: TeamId) -> bool:
    """Whether the readers of one thread can read the channel's other threads.

    A conversation over HTTP is only its owner's, even if other callers use the same channel.
    """
    return not team.startswith("@")


def tenant_of(team: TeamId, home: TeamId) -> str:
    """The team's tenant. Our own teams' names begin with @, which no platform uses."""
    return HOME if team == home or team.startswith("@") else team


def scope_of(channel: str, tenant: str) -> str:
    """A channel among those of every workspace: its id may be another one's too."""
    return channel if tenant == HOME else f"{tenant}:{channel}"


def holds_in(workspace: str, tenant: str) -> bool:
    """Whether what names that workspace ("" home, `*` every one) holds for the tenant."""
    return workspace in (EVERY, tenant)
