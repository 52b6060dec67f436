"""The permissions of a turn: its channel's rule, and the asker's roles.

Deny by default. An unknown channel name is looked up again before each round. Roles are looked up
at the start and at each resume; a role that cannot be checked is not held. The model sees only
permitted tools, and the runner asks here again before each call.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Final, TypeAlias

from bot.chat.stopping import StoppedByPerson, unless_stopped
from bot.domain.channel import UNKNOWN, Channel, ChannelRule, channel_of
from bot.domain.ids import Person, Place
from bot.domain.roles import HeldRoles
from bot.ports.durability import Journal, StopSignal
from bot.ports.platform import ChannelNames
from tools.admission import Authoriser
from tools.capabilities import CallContext
from tools.contract import ToolContract
from tools.policy import ToolPolicy

# People wait with an empty answer before them, and a slow minute of the platform's is longer.
PATIENCE_S: Final = 4.0
UNKNOWN_NOTICE: Final = (
    "I could not read this channel's name, so the strictest rules apply. I use only the tools "
    "of every channel, and nothing can be confirmed here for now"
)

NO_RULES: Final = (
    "I do not answer here: no rule allows me to read anything in this workspace and channel. Ask "
    "an operator of Kortex."
)

# Never raises: a failure is reported as not read.
RolesOf: TypeAlias = Callable[[Place, Person], Awaitable[HeldRoles]]
NOT_YOURS: Final = "none of the asker's roles may use this tool; say so, and use another one"


@dataclass(slots=True, eq=False, repr=False)
class TurnPermissions:
    """Permissions of one turn. `channel` may change once, from unknown to known.

    `asks_again` is False for turns of the previous release: their record has no such step.
    """

    names: ChannelNames
    rules: Sequence[ChannelRule]
    place: Place
    channel: Channel
    _: KW_ONLY
    asks_again: bool = True

    async def learn(self, number: int, journal: Journal, stop: StopSignal) -> bool:
        """Ask before round `number`; True when the name has just become known.

        A step of the journal: taken up again after a crash, the turn knows it from the same round.
        """
        if self.channel.is_known or not self.asks_again:
            return False

        async def look() -> str:
            patience_s = PATIENCE_S if number == 1 else 0.0
            try:
                return await unless_stopped(stop, self._ask(patience_s))
            except StoppedByPerson:
                return UNKNOWN

        name = str(await journal.step(f"channel:{number}", look))
        self.channel = channel_of(self.rules, name)
        return self.channel.is_known

    async def _ask(self, patience_s: float) -> str:
        return await self.names.for_asking(self.place, patience_s)


def authority(policy: ToolPolicy) -> Authoriser:
    """The runner's question, answered by the roles that the call's context carries."""

    async def authorise(contract: ToolContract, context: CallContext) -> str | None:
        return None if policy.permits(contract, context) else NOT_YOURS

    return authorise


def unread_notice(roles: Sequence[str]) -> str:
    """The notice for people with roles that could not be checked."""
    return (
        f"I could not check whether you are in the role {' or '.join(roles)}, so I used only the "
        "tools that need no role"
    )
