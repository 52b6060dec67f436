"""Who may decide on a proposal now: the same checks for every press and request.

The card's state, its channel's current name, the roles of channel and action, four eyes, freezes.
The database decides races; here are only the immediate refusals.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from bot.domain.channel import Channel, ChannelNow, out_of_place
from bot.domain.ids import Person, UserId
from bot.domain.proposal import Proposal, ProposalState, too_late
from bot.ports.platform import RoleDirectory
from bot.ports.proposals import FreezeState

FROZEN: Final = "Nothing was started: {stopped}. The proposal stays open until it expires."
OUT_OF_PLACE: Final = "Nothing was started: {reason}."
FOUR_EYES: Final = (
    "You asked for this change, so someone else has to confirm it. Nothing was started."
)

# The roles that an action names itself, as it is declared now; none for one that is not declared.
ActionRoles: TypeAlias = Callable[[str], Sequence[str]]


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a decision did nothing: `code` for the audit log, `text` for the person."""

    code: str
    text: str
    may_retry: bool = False


class Judge:
    """Reads everything again each time; a failed look-up is a refusal."""

    def __init__(
        self,
        roles: RoleDirectory,
        channel_now: ChannelNow,
        action_roles: ActionRoles,
        freezes: FreezeState,
        name_of: Callable[[UserId], Awaitable[str]],
    ) -> None:
        self._roles = roles
        self._channel_now = channel_now
        self._action_roles = action_roles
        self._freezes = freezes
        self._name_of = name_of

    async def refusal(
        self, proposal: Proposal, person: Person, to: ProposalState
    ) -> Refusal | None:
        """None when that person may. Raises StorageUnavailable."""
        if proposal.state is not ProposalState.PENDING:
            by = await self._name_of(proposal.decided_by) if proposal.decided_by else "someone"
            return Refusal("already_decided", too_late(proposal, by))
        channel = await self._channel_now(proposal.place)
        if (refusal := _misplaced(channel, proposal, to)) is not None:
            return refusal
        if (lacking := await self._lacking(proposal, person, channel.rule.confirm)) is not None:
            return Refusal("role", lacking)
        own = person.user == proposal.asked_by.user
        if to is ProposalState.CONFIRMED and proposal.four_eyes and own:
            return Refusal("four_eyes", FOUR_EYES)
        if to is ProposalState.CONFIRMED:
            stopped = await self._freezes.refusal(proposal.action, proposal.product)
            if stopped is not None:
                return Refusal("frozen", FROZEN.format(stopped=stopped))
        return None

    async def _lacking(
        self, proposal: Proposal, person: Person, confirm: Sequence[str]
    ) -> str | None:
        declared = tuple(self._action_roles(proposal.action))
        for also in dict.fromkeys((proposal.action_roles, declared)):
            lacking = await self._roles.refusal(person, confirm, also)
            if lacking is not None:
                return lacking
        return None


def _misplaced(channel: Channel, proposal: Proposal, to: ProposalState) -> Refusal | None:
    """The channel that sets the roles must be known; otherwise a rejection is always allowed."""
    if channel.is_known and to is ProposalState.REJECTED:
        return None
    reason = out_of_place(channel, proposal.channel_name, proposal.product)
    if reason is None:
        return None
    text = OUT_OF_PLACE.format(reason=reason)
    return Refusal("channel", text, may_retry=not channel.is_known)
