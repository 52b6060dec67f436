"""What one turn goes by: its channel, as far as the name is known, asked for again while it is not."""

from collections.abc import Sequence
from typing import Final

from bot.chat.stopping import StoppedByPerson, unless_stopped
from bot.domain.channel import UNKNOWN, Channel, ChannelRule, channel_of
from bot.domain.ids import Place
from bot.ports.durability import Journal, StopSignal
from bot.ports.platform import ChannelNames

# People wait with an empty answer before them, and a slow minute of the platform's is longer.
PATIENCE_S: Final = 4.0
UNKNOWN_NOTICE: Final = (
    "I could not read this channel's name, so I do not know its rules: I use only what every "
    "channel may use, and until I can read it nobody can confirm anything here"
)


class Standing:
    """One turn's. `channel` changes once at most: from unknown to known.

    Not `asks_again`: a turn begun by the release before this one, whose record has no such step.
    """

    def __init__(
        self,
        names: ChannelNames,
        rules: Sequence[ChannelRule],
        place: Place,
        name: str,
        *,
        asks_again: bool = True,
    ) -> None:
        self._names = names
        self._rules = rules
        self._place = place
        self._asks_again = asks_again
        self.channel: Channel = channel_of(rules, name)

    async def learn(self, number: int, journal: Journal, stop: StopSignal) -> bool:
        """Ask before round `number`; True when the name has just become known.

        A step of the journal: taken up again after a crash, the turn knows it from the same round.
        """
        if self.channel.is_known or not self._asks_again:
            return False

        async def look() -> str:
            patience_s = PATIENCE_S if number == 1 else 0.0
            try:
                return await unless_stopped(stop, self._ask(patience_s))
            except StoppedByPerson:
                return UNKNOWN

        name = str(await journal.step(f"channel:{number}", look))
        self.channel = channel_of(self._rules, name)
        return self.channel.is_known

    async def _ask(self, patience_s: float) -> str:
        return await self._names.for_asking(self._place, patience_s)
