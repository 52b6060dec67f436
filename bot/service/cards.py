"""Cards of proposals, put together: whom they call, and what is painted when they can be reached."""

import time

from bot.actions.display import CardSweep
from bot.app import Base, Conversation
from bot.domain.ids import ChannelId, MessageTs, ProposalId, TeamId
from bot.slack.api.calls import SlackCalls
from bot.slack.listeners.background_tasks import BackgroundTasks
from bot.slack.listeners.ports import CardPressed, ChannelReached
from bot.slack.roles.directory import SlackRoleDirectory
from bot.slack.roles.paging import Paging


def paging(base: Base, api: SlackCalls, team: TeamId) -> Paging | None:
    """None where cards call nobody.

    It has a directory of its own: what was read when a card was posted must not be what a press is
    judged by.
    """
    if not base.settings.proposals.mention:
        return None
    roles = base.in_force.roles_of(base.in_force.tenant_of(team))
    return Paging(roles, SlackRoleDirectory(api, team, roles, time.monotonic))


def card_pressed(base: Base, conversation: Conversation) -> CardPressed:
    """A press shows which message is the card, and that it can be reached."""

    async def pressed(proposal_id: ProposalId, ts: MessageTs) -> None:
        await base.stores.cards.pressed(proposal_id, ts)
        await conversation.display.refresh(proposal_id, ())

    return pressed


def channel_reached(
    base: Base, conversation: Conversation, errands: BackgroundTasks
) -> ChannelReached:
    """On record when it returns; painted at once, and by the sweeps should this process die."""
    sweep = CardSweep(base.stores.cards, conversation.display)

    async def reached(team: TeamId, channel: ChannelId) -> None:
        if dead := await sweep.in_reach(team, channel):
            errands.run("cards in reach", sweep.paint(dead))

    return reached
