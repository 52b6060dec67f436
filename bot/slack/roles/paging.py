"""Groups and people that a new card mentions: by role, and on call now."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import structlog

from bot.domain.proposal import Proposal
from bot.slack.roles.directory import RoleMembers, SlackRoleDirectory

_log = structlog.stdlib.get_logger(__name__)

# A card does not wait longer for a rota; one rota and its accounts take 2 s at most each.
LOOK_UP_S = 4.0
UNREAD = "The on-call rota could not be read, so no one was mentioned."


@dataclass(frozen=True, slots=True)
class Paged:
    """Ids of user groups and people to mention, and in words who could not be looked up."""

    ids: Sequence[str] = ()
    unread: str = ""


NOBODY = Paged()


class Paging:
    """`roles` are the ones in force, by name."""

    def __init__(
        self,
        roles: Mapping[str, RoleMembers],
        directory: SlackRoleDirectory,
        look_up_s: float = LOOK_UP_S,
    ) -> None:
        self._roles = roles
        self._directory = directory
        self._look_up_s = look_up_s

    def listed(self, row: Proposal) -> Paged:
        """Groups and people of the roles that may decide. Nothing is asked."""
        known = [self._roles[one] for one in row.confirm_roles if one in self._roles]
        return Paged(_once([each for one in known for each in (*one.usergroups, *one.users)]))

    async def called(self, row: Proposal) -> Paged:
        """The people on call, then the listed groups and people. Never raises."""
        listed = self.listed(row).ids
        try:
            async with asyncio.timeout(self._look_up_s):
                on_duty, whole = await self._directory.on_duty(row.confirm_roles, row.action_roles)
        except TimeoutError:
            _log.warning("proposal.card.on_call_unreadable", proposal=row.id)
            on_duty, whole = frozenset[str](), False
        return Paged(_once([*sorted(on_duty), *listed]), "" if whole else UNREAD)


def _once(ids: Sequence[str]) -> Sequence[str]:
    return list(dict.fromkeys(ids))
