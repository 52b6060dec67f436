"""Names for the ids that cross the product, and the keys made from them."""

from dataclasses import dataclass
from typing import Final, NewType

SessionId = NewType("SessionId", str)
TurnId = NewType("TurnId", str)
ProposalId = NewType("ProposalId", str)
UserId = NewType("UserId", str)
TeamId = NewType("TeamId", str)
ChannelId = NewType("ChannelId", str)
MessageTs = NewType("MessageTs", str)  # such as "1700000000.000100": an id, never a clock


@dataclass(frozen=True, slots=True)
class Place:
    """Where a conversation is. `thread_ts` is empty in a direct message outside a thread."""

    team: TeamId
    channel: ChannelId
    thread_ts: MessageTs

    @property
    def key(self) -> str:
        """One session, one order of turns."""
        return f"{self.team}:{self.channel}:{self.thread_ts}"


def session_at(place: Place) -> SessionId:
    return SessionId(f"session:{place.key}")


def place_of(session: str) -> Place | None:
    """The place of a session; None for an invalid id."""
    kind, *parts = session.split(":", 3)
    if kind != "session" or len(parts) != 3:
        return None
    team, channel, thread = parts
    return Place(TeamId(team), ChannelId(channel), MessageTs(thread))


# The workspace of conversations over HTTP. It is no platform's id, so no platform serves it.
API: Final = TeamId("@api")


def turn_of(place: Place, ts: MessageTs) -> TurnId:
    """The turn that answers the message, the same for every delivery.

    Message numbers are unique in a platform's channel; over HTTP in a conversation.
    """
    where = place.key if place.team == API else f"{place.team}:{place.channel}"
    return TurnId(f"turn:{where}:{ts}")


# The asker in an alert's thread. It is no platform's id, so it holds no role.
ALERTS: Final = UserId("@alert")


@dataclass(frozen=True, slots=True)
class Person:
    """Someone as their platform names them; ids are opaque."""

    team: TeamId
    user: UserId

    @property
    def is_somebody(self) -> bool:
        return self.user != ALERTS
