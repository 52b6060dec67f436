"""What the conversation and the actions need from a chat platform. One passes the suite in `tests/contract/test_chat_platform.py`."""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from bot.domain.channel import Readers
from bot.domain.chart import Chart
from bot.domain.ids import MessageTs, Person, Place, UserId
from bot.domain.proposal import Proposal
from bot.domain.roles import HeldRoles
from bot.domain.session import Ask
from bot.domain.thread import ThreadRead
from bot.domain.turn_events import TurnEvent, TurnFinished


class RoleHolders(Protocol):
    """The roles that a person holds now."""

    async def held(self, person: Person, roles: Sequence[str]) -> HeldRoles:
        """Of those roles. Never raises; what cannot be looked up is not held."""
        ...


class RoleDirectory(RoleHolders, Protocol):
    async def refusal(
        self, person: Person, roles: Sequence[str], also: Sequence[str] = ()
    ) -> str | None:
        """None when the person holds one of the roles; else why not, in words for them.

        Where `also` names any, one of those has to be held too. Fails closed: no `roles` and a
        lookup that fails are a refusal, as are guests, strangers, bots and other workspaces unless
        a role of each kind lists them by id, and always deactivated people.
        """
        ...

    async def outsider(self, person: Person) -> str | None:
        """None for a full member, or a person listed by id in a role; else a refusal.

        Fails closed: an unreadable account gets a refusal.
        """
        ...


class ChannelNames(Protocol):
    """Channel names, which rules match. Every method raises StorageUnavailable.

    A name is never guessed: "" means that the name could not be read. Channels without a name are
    "@direct" or "@group".
    """

    async def for_asking(self, place: Place, patience_s: float = 0.0) -> str:
        """To read by. One read a while ago does; asked again for so many seconds while unknown."""
        ...

    async def for_deciding(self, place: Place) -> str:
        """To decide by: read within the last minute, or unknown."""
        ...


class NamedByPlace:
    """`ChannelNames` where a place names its channel itself."""

    async def for_asking(self, place: Place, patience_s: float = 0.0) -> str:  # noqa: ARG002 - the port's
        return place.channel

    async def for_deciding(self, place: Place) -> str:
        return place.channel


# The people on call, by role; None if the rota cannot be read. Never raises, and returns within
# seconds.
OnCallNow = Mapping[str, Sequence[str] | None]
OnCallOf = Callable[[], Awaitable[OnCallNow]]


async def no_rotas() -> OnCallNow:
    return {}


# The IANA name of a person's time zone, "" if unknown. Never raises, and returns within a second or
# two.
ZoneOf = Callable[[Person], Awaitable[str]]


async def unknown_zone(person: Person) -> str:  # noqa: ARG001 - as the port says
    return ""


# A person's name in a place; "somebody" or the id if unknown. May take long.
NameAt = Callable[[Place, UserId], Awaitable[str]]
# The same of several, as plain words and by the ids given: the id where no name is known within a second
# or two. Never raises.
People = Callable[[Place, Iterable[str]], Awaitable[Mapping[str, str]]]


async def by_id(_: Place, users: Iterable[str]) -> Mapping[str, str]:
    """`People` for platforms without profiles."""
    return {user: user for user in users}


# The readers of a place's messages. Never raises, and returns within a second or two.
ReadersOf = Callable[[Place], Awaitable[Readers]]


async def own_readers(place: Place) -> Readers:  # noqa: ARG001 - as the port says
    """For platforms without shared channels."""
    return Readers.OWN


@dataclass(frozen=True, slots=True)
class PlatformTraits:
    """What a chat platform can do, as far as the conversation and the actions need to know.

    `card_chars` is the room of a card for a proposal's arguments in their longest form;
    `preview_chars` is the room for its dry run. A proposal that cannot be shown whole cannot be
    confirmed. If `decides` is False, a proposal is only described and not stored.
    """

    name: str
    card_chars: int
    preview_chars: int
    message_chars: int  # of one message; longer answers go on in the next one
    edits_per_minute: float  # of all answers together; infinite where nothing is edited
    private_messages: bool
    forms: bool  # whether a person can be asked for text: a reason, changed arguments
    native_stream: bool = False  # whether text can be appended without editing
    charts: bool = False  # whether it draws them; it may still have to leave them out
    decides: bool = True  # whether anybody can confirm or reject there


class ThreadReader(Protocol):
    """Messages of a place, read from the platform. Methods raise only for cancellation."""

    async def read(self, place: Place, before: MessageTs, most: int) -> ThreadRead:
        """At most `most` messages before that one; of a direct message without threads the newest."""
        ...

    def link(self, place: Place, ts: MessageTs) -> str:
        """The address of a message of that place, empty where it is not to be had."""
        ...

    async def name(self, place: Place, user: str) -> str:
        """The display name in that place; never an id."""
        ...


OnPart = Callable[[], Awaitable[None]]


async def no_part() -> None:
    """For ends without recorded progress."""


class AnswerStream(Protocol):
    """One live answer. `feed` never blocks and never raises."""

    def feed(self, event: TurnEvent) -> None:
        """Show it when the workspace's edit budget allows; the newest state wins."""
        ...

    async def finish(self, final: TurnFinished, on_part: OnPart = no_part) -> None:
        """Deliver the whole final text; `on_part` is called after each message of it.

        Raises SurfaceGone, SurfaceFailed.
        """
        ...

    async def aclose(self) -> None:
        """Stop editing without a final text (the turn moved elsewhere)."""
        ...


class AnswerSurface(Protocol):
    """Where answers grow. All texts are plain Markdown; the surface escapes and defuses."""

    async def open_answer(self, ask: Ask) -> MessageTs:
        """Post the placeholder, or find the one an earlier attempt posted.

        Empty when it cannot be posted soon: the turn goes on, and its first message shows more.
        """
        ...

    def stream(self, ask: Ask, ts: MessageTs) -> AnswerStream:
        """Edit that message during the turn. Empty: post it when possible."""
        ...


class PrivateSurface(Protocol):
    @property
    def traits(self) -> PlatformTraits: ...

    async def whisper(
        self, place: Place, user: UserId, text: str, charts: Sequence[Chart] = ()
    ) -> None:
        """Send a private message; best effort. The text is complete without its `charts`."""
        ...


class CardSurface(PrivateSurface, Protocol):
    async def show_card(self, proposal: Proposal) -> MessageTs:
        """Post the proposal's card, or bring the one already posted up to date; tried once.

        Raises SurfaceGone, SurfaceFailed.
        """
        ...

    async def say(
        self, place: Place, text: str, key: str, charts: Sequence[Chart] = ()
    ) -> MessageTs:
        """Post in the thread once per `key`, patiently. Raises SurfaceGone, SurfaceFailed.

        The text says enough where a platform shows no `charts`.
        """
        ...


class ChatSurface(AnswerSurface, CardSurface, Protocol):
    pass
