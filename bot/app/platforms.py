"""Several chat platforms and workspaces behind the ports of one, chosen by `place.team`.

A team that no workspace here serves gets nothing: no other workspace shows, names or judges for it.
People are looked up where they are known. The workspace that invited a person from a foreign team
judges that person, and knows strangers as such."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field

import structlog

from adapters.llm.messages import Picture
from adapters.llm.on_call import asks_who_is_on_call, on_call_note
from bot.actions.propose import ProposalScope
from bot.chat.attachments import PictureOf, no_picture
from bot.domain.channel import UNKNOWN, Channel, ChannelRule, Readers, channel_of
from bot.domain.chart import Chart
from bot.domain.ids import API, MessageTs, Person, Place, SessionId, TeamId, TurnId, UserId
from bot.domain.proposal import Proposal
from bot.domain.roles import HeldRoles
from bot.domain.session import Ask
from bot.domain.thread import ThreadRead
from bot.domain.turn_events import TurnEvent, TurnFinished
from bot.engine.queue import ShowWaiting
from bot.ports.failures import StorageUnavailable, SurfaceFailed, SurfaceGone
from bot.ports.platform import (
    AnswerStream,
    ChannelNames,
    ChatSurface,
    OnCallNow,
    OnCallOf,
    OnPart,
    PlatformTraits,
    ReadersOf,
    RoleHolders,
    ThreadReader,
    ZoneOf,
    no_part,
    no_rotas,
    own_readers,
    unknown_zone,
)
from bot.ports.sessions import SessionStore
from tools.attached import AttachedFile, FileText
from tools.capabilities import CallContext
from tools.core.read_attachment import Attachments
from tools.errors import NobodyToAsk

log = structlog.get_logger(__name__)

NameOf = Callable[[UserId], Awaitable[str]]
ON_CALL_S = 4.0  # a rota and its accounts take 2 s at most each
RESERVED = "@"  # begins the names of our own teams and people; no platform uses it
SOMEBODY = "somebody"


@dataclass(frozen=True, slots=True)
class Directory:
    """The chat platform's people and channels. `name_of` gives a person's name.

    Without `attachments` no file is read.
    """

    name_of: NameOf
    channels: ChannelNames
    roles: RoleHolders
    zone_of: ZoneOf = unknown_zone
    readers_of: ReadersOf = own_readers
    attachments: Attachments | None = None
    threads: ThreadReader | None = None
    picture_of: PictureOf = no_picture
    on_call_of: OnCallOf = no_rotas

    async def name_at(self, place: Place, user: UserId) -> str:  # noqa: ARG002 - of one workspace
        return await self.name_of(user)

    async def held_at(self, place: Place, person: Person, roles: Sequence[str]) -> HeldRoles:  # noqa: ARG002 - of one workspace
        """The given roles that the person holds in that place. Never raises."""
        return await self.roles.held(person, roles)

    async def on_call_at(self, place: Place) -> OnCallNow:  # noqa: ARG002 - of one workspace
        """The names of those on call there, by role. Never raises."""
        return await self.on_call_of()

    async def on_call_notes(self, place: Place, question: str) -> Sequence[str]:
        """The people on call, if the question asks for them; otherwise no rota is read."""
        if not asks_who_is_on_call(question):
            return ()
        try:
            async with asyncio.timeout(ON_CALL_S):
                return (on_call_note(await self.on_call_at(place)),)
        except TimeoutError:
            return (on_call_note({"on-call": None}),)

    async def picture_at(self, place: Place, file: AttachedFile) -> Picture:  # noqa: ARG002 - of one workspace
        """An image attached in that place. Never raises."""
        return await self.picture_of(file)


@dataclass(frozen=True, slots=True)
class ChannelLookup:
    """Every method raises StorageUnavailable."""

    rules_at: Callable[[TeamId], Sequence[ChannelRule]]
    names: ChannelNames
    sessions: SessionStore

    async def of_call(self, call: CallContext) -> ProposalScope:
        session = await self.sessions.get(SessionId(call.session_id))
        if session is None:
            raise StorageUnavailable("the session of this call is not stored")
        name = await self.names.for_asking(session.place)
        return ProposalScope(session.place, channel_of(self.rules_at(session.place.team), name))

    async def now(self, place: Place) -> Channel:
        """The channel and its rule, as a decision needs them now."""
        name = await self.names.for_deciding(place)
        return channel_of(self.rules_at(place.team), name)


async def _nowhere_else(_team: TeamId) -> None: ...


def _nothing_shown(_turn: TurnId) -> None: ...


@dataclass(frozen=True, slots=True)
class Platform:
    """One workspace. `show_waiting` and `show_in_line` show people that their turn waits.

    `stop_edits` ends at once the edits of a turn that another process runs now.
    """

    surface: ChatSurface
    directory: Directory
    show_waiting: ShowWaiting
    show_in_line: ShowWaiting
    stop_edits: Callable[[TurnId], None] = _nothing_shown


class Platforms:
    """The served platforms by team. `home` knows the people and files that carry no team.

    The mapping is read at each use, because workspaces come and go. `reach` opens a workspace that
    was installed through another replica; it may raise StorageUnavailable.
    """

    def __init__(
        self,
        by_team: Mapping[TeamId, Platform],
        home: TeamId,
        reach: Callable[[TeamId], Awaitable[None]] = _nowhere_else,
    ) -> None:
        self._by_team = by_team
        self._home = home
        self._reach = reach

    async def reached(self, place: Place) -> Platform:
        """Raises SurfaceGone for a team that is not served, SurfaceFailed where that cannot be read."""
        if place.team not in self._by_team:
            try:
                await self._reach(place.team)
            except StorageUnavailable as error:
                raise SurfaceFailed(f"workspace {place.team}: {error}", retryable=True) from error
        return self.at(place)

    async def directory_at(self, place: Place) -> Directory | None:
        """Who that place's workspace knows; None where no workspace serves it, or it is away."""
        try:
            return (await self.reached(place)).directory
        except (SurfaceGone, SurfaceFailed):
            return None

    def is_others(self, team: TeamId) -> bool:
        """Whether the team is another workspace, where home judges and names no one."""
        return not team.startswith(RESERVED) and team != self._home

    def at(self, place: Place) -> Platform:
        """Raises SurfaceGone if no platform serves that team."""
        found = self._by_team.get(place.team)
        if found is None:
            raise SurfaceGone(f"no workspace {place.team} is served here")
        return found

    def of_team(self, team: TeamId) -> Platform | None:
        """The platform that knows the roles of that team's people."""
        if team.startswith(RESERVED):
            return self._by_team.get(team)
        return self._by_team.get(team) or self._by_team.get(self._home)

    def of_user(self, user: str, place: Place) -> Platform | None:
        if user.startswith(RESERVED):
            return self._by_team.get(API)
        return self._by_team.get(place.team if self.is_others(place.team) else self._home)

    def of_place(self, team: TeamId) -> Platform | None:
        return self._by_team.get(team)

    async def show_waiting(self, ask: Ask) -> None:
        if (platform := self._by_team.get(ask.place.team)) is not None:
            await platform.show_waiting(ask)

    async def show_in_line(self, ask: Ask) -> None:
        if (platform := self._by_team.get(ask.place.team)) is not None:
            await platform.show_in_line(ask)

    def stop_edits(self, turn: TurnId) -> None:
        for platform in self._by_team.values():
            platform.stop_edits(turn)


class RoutedSurface:
    """`bot.ports.platform.ChatSurface`. `traits` are those of the platform that can show least."""

    def __init__(self, platforms: Platforms, traits: PlatformTraits) -> None:
        self._platforms = platforms
        self._traits = traits

    @property
    def traits(self) -> PlatformTraits:
        return self._traits

    async def open_answer(self, ask: Ask) -> MessageTs:
        return await (await self._platforms.reached(ask.place)).surface.open_answer(ask)

    def stream(self, ask: Ask, ts: MessageTs) -> AnswerStream:
        try:
            return self._platforms.at(ask.place).surface.stream(ask, ts)
        except SurfaceGone as error:
            return _Nowhere(str(error))

    async def show_card(self, proposal: Proposal) -> MessageTs:
        return await (await self._platforms.reached(proposal.place)).surface.show_card(proposal)

    async def say(
        self, place: Place, text: str, key: str, charts: Sequence[Chart] = ()
    ) -> MessageTs:
        surface = (await self._platforms.reached(place)).surface
        return await surface.say(place, text, key, charts)

    async def whisper(
        self, place: Place, user: UserId, text: str, charts: Sequence[Chart] = ()
    ) -> None:
        """See `PrivateSurface.whisper`. A platform gets no message for a person that it does not know."""
        if user.startswith(RESERVED) and place.team != API:
            return  # an HTTP caller gets the result in the answer to the request
        try:
            surface = (await self._platforms.reached(place)).surface
            await surface.whisper(place, user, text, charts)
        except (SurfaceGone, SurfaceFailed) as error:
            log.info("private_message.undelivered", error=str(error))


class _Nowhere:
    def __init__(self, why: str) -> None:
        self._why = why

    def feed(self, event: TurnEvent) -> None: ...

    async def finish(
        self,
        final: TurnFinished,  # noqa: ARG002 - the port's
        on_part: OnPart = no_part,  # noqa: ARG002
    ) -> None:
        raise SurfaceGone(self._why)

    async def aclose(self) -> None: ...


class _Channels:
    def __init__(self, platforms: Platforms) -> None:
        self._platforms = platforms

    async def for_asking(self, place: Place, patience_s: float = 0.0) -> str:
        found = await self._platforms.directory_at(place)
        return await found.channels.for_asking(place, patience_s) if found else UNKNOWN

    async def for_deciding(self, place: Place) -> str:
        found = await self._platforms.directory_at(place)
        return await found.channels.for_deciding(place) if found else UNKNOWN


class _Roles:
    def __init__(self, platforms: Platforms) -> None:
        self._platforms = platforms

    async def held(self, person: Person, roles: Sequence[str]) -> HeldRoles:
        found = self._platforms.of_team(person.team)
        unread = HeldRoles(unread=tuple(roles))
        return await found.directory.roles.held(person, roles) if found else unread


class _Threads:
    def __init__(self, platforms: Platforms) -> None:
        self._platforms = platforms

    async def read(self, place: Place, before: MessageTs, most: int) -> ThreadRead:
        threads = self._of(place)
        if threads is None:
            return ThreadRead((), "the conversation here cannot be read")
        return await threads.read(place, before, most)

    def link(self, place: Place, ts: MessageTs) -> str:
        threads = self._of(place)
        return threads.link(place, ts) if threads is not None else ""

    async def name(self, place: Place, user: str) -> str:
        platform = self._platforms.of_user(user, place)
        return await platform.directory.name_of(UserId(user)) if platform else SOMEBODY

    def _of(self, place: Place) -> ThreadReader | None:
        try:
            return self._platforms.at(place).directory.threads
        except SurfaceGone:
            return None


class _Files:
    def __init__(self, platforms: Platforms, home: Attachments) -> None:
        self._platforms = platforms
        self._home = home

    async def read(self, file: AttachedFile, call: CallContext) -> FileText:
        team = TeamId(call.session_id.partition(":")[2].partition(":")[0])
        found = self._home
        if self._platforms.is_others(team):
            platform = self._platforms.of_place(team)
            if platform is None or platform.directory.attachments is None:
                raise NobodyToAsk("the workspace of this file is not connected any more")
            found = platform.directory.attachments
        return await found.read(file, call)


@dataclass(frozen=True, slots=True)
class _Everywhere(Directory):
    platforms: Platforms = field(kw_only=True)

    async def name_at(self, place: Place, user: UserId) -> str:
        platform = self.platforms.of_user(user, place)
        return await platform.directory.name_of(user) if platform else SOMEBODY

    async def held_at(self, place: Place, person: Person, roles: Sequence[str]) -> HeldRoles:
        if not self.platforms.is_others(place.team):
            return await self.roles.held(person, roles)
        found = await self.platforms.directory_at(place)
        return await found.roles.held(person, roles) if found else HeldRoles(unread=tuple(roles))

    async def on_call_at(self, place: Place) -> OnCallNow:
        if not self.platforms.is_others(place.team):
            return await self.on_call_of()
        found = await self.platforms.directory_at(place)
        return await found.on_call_of() if found else {}

    async def picture_at(self, place: Place, file: AttachedFile) -> Picture:
        if not self.platforms.is_others(place.team):
            return await self.picture_of(file)
        found = await self.platforms.directory_at(place)
        return await (found.picture_of if found else no_picture)(file)


def routed_directory(platforms: Platforms, home: Directory) -> Directory:
    """Of all platforms. Files of our own teams are read by `home`: they attach none."""

    async def name_of(user: UserId) -> str:
        return SOMEBODY if user.startswith(RESERVED) else await home.name_of(user)

    async def zone_of(person: Person) -> str:
        platform = platforms.of_team(person.team)
        return await platform.directory.zone_of(person) if platform else ""

    async def readers_of(place: Place) -> Readers:
        found = await platforms.directory_at(place)
        return await found.readers_of(place) if found else Readers.UNKNOWN

    return _Everywhere(
        name_of,
        _Channels(platforms),
        _Roles(platforms),
        zone_of,
        readers_of,
        _Files(platforms, home.attachments) if home.attachments else None,
        _Threads(platforms),
        home.picture_of,
        home.on_call_of,
        platforms=platforms,
    )
