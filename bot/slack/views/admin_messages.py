"""A direct message to everyone in the admin roles."""

from collections.abc import Sequence
from dataclasses import dataclass

import structlog

from bot.domain.ids import ChannelId, MessageTs, Place, TeamId
from bot.domain.markdown_blocks import without_bold
from bot.ports.failures import SurfaceFailed, SurfaceGone
from bot.slack.delivery.outbox import Outbox, note_mark
from bot.slack.roles.directory import SlackRoleDirectory
from bot.slack.text.blocks import Part, markdown

_log = structlog.stdlib.get_logger(__name__)


@dataclass(slots=True, eq=False, repr=False)
class AdminMessages:
    """Sends to each admin; a failure for one does not affect the rest."""

    outbox: Outbox
    roles: SlackRoleDirectory
    team: TeamId
    admin_roles: Sequence[str]

    async def tell(self, text: str) -> int:
        reached = 0
        part = Part(without_bold(text), (markdown(text),))
        for user in await self.roles.members(self.admin_roles):
            # chat.postMessage takes a person's id for the direct message with them.
            place = Place(self.team, ChannelId(user), MessageTs(""))
            try:
                await self.outbox.post(place, part, note_mark("admins"))
                reached += 1
            except (SurfaceGone, SurfaceFailed) as error:
                _log.warning("slack.admin.not_reached", error=str(error))
        return reached
