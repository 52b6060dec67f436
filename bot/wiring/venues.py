"""The channel of a place and the rule it stands under, at this moment. Part of the composition root."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from bot.actions.propose import Venue
from bot.domain.channel import Channel, ChannelRule, channel_of
from bot.domain.ids import Place, SessionId, UserId
from bot.ports.failures import StorageUnavailable
from bot.ports.platform import ChannelNames, RoleHolders
from bot.ports.sessions import SessionStore
from tools.capabilities import CallContext

NameOf = Callable[[UserId], Awaitable[str]]


@dataclass(frozen=True, slots=True)
class Directory:
    """What the chat platform knows of people and channels. `name_of` tells a person's name."""

    name_of: NameOf
    channels: ChannelNames
    roles: RoleHolders


@dataclass(frozen=True, slots=True)
class Venues:
    """Every method raises StorageUnavailable."""

    rules: Sequence[ChannelRule]
    names: ChannelNames
    sessions: SessionStore

    async def of_call(self, call: CallContext) -> Venue:
        """Where what a call proposes is shown."""
        session = await self.sessions.get(SessionId(call.session_id))
        if session is None:
            raise StorageUnavailable("the session of this call is not stored")
        name = await self.names.for_asking(session.place)
        return Venue(session.place, channel_of(self.rules, name))

    async def now(self, place: Place) -> Channel:
        """What a decision is judged by."""
        return channel_of(self.rules, await self.names.for_deciding(place))
