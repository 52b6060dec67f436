"""Several workspaces behind the ports of one: each place belongs to its own workspace only."""

from dataclasses import dataclass, replace

import pytest

from bot.app.platforms import Directory, Platform, Platforms, RoutedSurface, routed_directory
from bot.cli.headless import NamedByUser
from bot.domain.channel import UNKNOWN, Readers
from bot.domain.ids import API, ChannelId, MessageTs, Person, Place, TeamId, UserId
from bot.domain.roles import HeldRoles
from bot.domain.session import Ask
from bot.ports.failures import StorageUnavailable, SurfaceFailed, SurfaceGone
from bot.ports.platform import NamedByPlace
from tests.fakes.recording_chat import RecordingChat
from tests.fixtures_slack import ASK
from tests.golden.slack_views import finished, proposal

HOME, OTHER, NOBODYS = ASK.place.team, TeamId("T2"), TeamId("T3")


@dataclass
class Workspaces:
    chats: dict[TeamId, RecordingChat]
    waiting: list[tuple[TeamId, Ask]]
    platforms: Platforms
    surface: RoutedSurface
    directory: Directory


@pytest.fixture
def two() -> Workspaces:
    chats = {HOME: RecordingChat(), API: RecordingChat()}
    waiting: list[tuple[TeamId, Ask]] = []

    def platform(team: TeamId) -> Platform:
        async def name_of(user: UserId) -> str:
            return f"{user} of {team}"

        async def tell(ask: Ask) -> None:
            waiting.append((team, ask))

        roles = NamedByUser({"responder": [f"U-{team}"]})
        directory = Directory(name_of, NamedByPlace(), roles)
        return Platform(chats[team], directory, tell, tell)

    served = {team: platform(team) for team in chats}
    platforms = Platforms(served, HOME)
    surface = RoutedSurface(platforms, chats[HOME].traits)
    directory = routed_directory(platforms, served[HOME].directory)
    return Workspaces(chats, waiting, platforms, surface, directory)


def _at(team: TeamId) -> Place:
    return replace(ASK.place, team=team)


async def test_each_workspace_has_its_own_answers_cards_and_lines(two: Workspaces) -> None:
    ask = replace(ASK, place=_at(API))
    row = replace(proposal(), place=_at(API))

    ts = await two.surface.open_answer(ask)
    await two.surface.stream(ask, ts).finish(finished())
    await two.surface.show_card(row)
    await two.surface.say(ask.place, "done", "key")
    await two.surface.whisper(ask.place, UserId("@alice"), "too late")
    await two.platforms.show_waiting(ask)
    await two.platforms.show_in_line(ask)

    assert list(two.chats[API].cards) == [row.id]
    assert list(two.chats[API].lines.values()) == ["done"]
    assert two.chats[API].whispers == [("@alice", "too late")]
    assert two.waiting == [(API, ask), (API, ask)]
    home = two.chats[HOME]
    assert (home.cards, home.lines, home.whispers) == ({}, {}, [])


async def test_a_place_in_an_unserved_workspace_is_gone(two: Workspaces) -> None:
    ask = replace(ASK, place=_at(NOBODYS))

    stream = two.surface.stream(ask, MessageTs(""))
    await stream.aclose()
    await two.surface.whisper(ask.place, UserId("U1"), "too late")
    await two.platforms.show_waiting(ask)
    for gone in (
        two.surface.open_answer(ask),
        stream.finish(finished()),
        two.surface.show_card(replace(proposal(), place=ask.place)),
        two.surface.say(ask.place, "done", "key"),
    ):
        with pytest.raises(SurfaceGone):
            await gone
    assert [chat.whispers for chat in two.chats.values()] == [[], []]
    assert two.waiting == []


async def test_a_place_in_an_unserved_workspace_has_no_information(two: Workspaces) -> None:
    place, threads = _at(NOBODYS), two.directory.threads

    assert await two.directory.channels.for_asking(place) == UNKNOWN
    assert await two.directory.channels.for_deciding(place) == UNKNOWN
    assert await two.directory.readers_of(place) is Readers.UNKNOWN
    assert threads is not None
    assert (await threads.read(place, MessageTs("1"), 5)).missing
    assert threads.link(place, MessageTs("1")) == ""


async def test_a_channel_is_named_by_its_own_workspace(two: Workspaces) -> None:
    place = Place(API, ChannelId("incident-checkout"), MessageTs("1"))

    assert await two.directory.channels.for_deciding(place) == "incident-checkout"


async def test_an_api_caller_is_never_judged_as_a_platform_user(two: Workspaces) -> None:
    roles = two.directory.roles

    assert (await roles.held(Person(API, UserId(f"U-{HOME}")), ["responder"])).held == set()
    assert (await roles.held(Person(HOME, UserId(f"U-{HOME}")), ["responder"])).held
    alone = Platforms({}, HOME)
    nobody = routed_directory(alone, two.directory)
    held = await nobody.roles.held(Person(API, UserId("@alice")), ["responder"])
    assert held == HeldRoles(unread=("responder",))


async def test_a_stranger_is_judged_by_the_workspace_that_invited_them(two: Workspaces) -> None:
    stranger = Person(OTHER, UserId(f"U-{HOME}"))

    assert (await two.directory.roles.held(stranger, ["responder"])).held == {"responder"}


async def test_a_platform_is_not_asked_about_an_api_caller(two: Workspaces) -> None:
    await two.surface.whisper(_at(HOME), UserId("@alice"), "too late")

    assert two.chats[HOME].whispers == []
    assert await two.directory.name_at(_at(HOME), UserId("@alice")) == f"@alice of {API}"
    assert await two.directory.name_at(_at(API), UserId("U1")) == f"U1 of {HOME}"


async def test_another_workspace_is_opened_when_it_is_needed(two: Workspaces) -> None:
    chat, asked = RecordingChat(), list[TeamId]()

    async def reach(team: TeamId) -> None:
        asked.append(team)
        if team == OTHER:
            served[OTHER] = Platform(chat, directory, nobody, nobody)

    async def nobody(_ask: Ask) -> None: ...

    async def called(user: UserId) -> str:
        return f"{user} of {OTHER}"

    directory = Directory(called, NamedByPlace(), NamedByUser({"acme": ["U1"]}))
    served = {HOME: two.platforms.at(_at(HOME))}
    platforms = Platforms(served, HOME, reach)
    everywhere = routed_directory(platforms, served[HOME].directory)
    surface = RoutedSurface(platforms, chat.traits)

    await surface.say(_at(OTHER), "hello", "k")
    assert asked == [OTHER]
    ours, theirs = (Person(team, UserId("U1")) for team in (HOME, OTHER))
    wanted = ["responder", "acme"]
    assert await everywhere.held_at(_at(OTHER), theirs, wanted) == HeldRoles(frozenset({"acme"}))
    assert await everywhere.held_at(_at(OTHER), ours, wanted) == HeldRoles(frozenset({"acme"}))
    assert await everywhere.name_at(_at(OTHER), UserId("U1")) == f"U1 of {OTHER}"
    assert await everywhere.name_at(_at(HOME), UserId("U1")) == f"U1 of {HOME}"

    served.pop(OTHER)  # it removed the app, and is not found any more
    held = f"U-{HOME}"
    person = Person(NOBODYS, UserId(held))
    assert await everywhere.held_at(_at(NOBODYS), person, ["responder"]) == HeldRoles(
        unread=("responder",)
    )
    assert await everywhere.name_at(_at(NOBODYS), UserId("U1")) == "somebody"
    with pytest.raises(SurfaceGone):
        await surface.say(_at(NOBODYS), "hello", "k")


async def test_a_workspace_that_cannot_be_looked_up_is_not_gone(two: Workspaces) -> None:
    async def reach(_team: TeamId) -> None:
        raise StorageUnavailable("the database is away")

    platforms = Platforms({HOME: two.platforms.at(_at(HOME))}, HOME, reach)
    surface = RoutedSurface(platforms, two.surface.traits)
    with pytest.raises(SurfaceFailed) as failed:
        await surface.say(_at(OTHER), "hello", "k")
    assert failed.value.retryable
    everywhere = routed_directory(platforms, two.directory)
    assert await everywhere.readers_of(_at(OTHER)) is Readers.UNKNOWN
    assert await everywhere.channels.for_deciding(_at(OTHER)) == UNKNOWN
    person = Person(OTHER, UserId("U1"))
    held = await everywhere.held_at(_at(OTHER), person, ["responder"])
    assert held == HeldRoles(unread=("responder",))
