"""Display names: looked up briefly, kept during an outage, ids for unknown ones."""

import asyncio
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

import pytest

from bot.domain.ids import ALERTS, API, ChannelId, MessageTs, Place, TeamId, UserId
from bot.ports.failures import StorageUnavailable
from bot.web.api import naming
from bot.web.api.naming import REST_S, Naming, called

TEAM = TeamId("T1")


def at(channel: str, team: TeamId = TEAM) -> Place:
    return Place(team, ChannelId(channel), MessageTs("1.1"))


@dataclass
class World:
    """The names of people, whether the look-up answers, and the look-ups made."""

    called: dict[str, str] = field(default_factory=lambda: {"U1ANNA": "anna", "@noor": "noor"})
    fails: type[Exception] | None = None
    asked: list[str] = field(default_factory=list)
    now: float = 0.0

    def names(self) -> Naming:
        return Naming(self.kept, self.name_of, self.link, lambda: self.now)

    async def kept(self, places: Collection[Place]) -> Mapping[Place, str]:
        return {place: {"C1": "incident-checkout"}.get(place.channel, "") for place in places}

    async def name_of(self, user: UserId) -> str:
        self.asked.append(user)
        if self.fails is TimeoutError:
            await asyncio.Event().wait()
        if self.fails is not None:
            raise self.fails("gone")
        return self.called.get(user, user)

    @staticmethod
    def link(place: Place, ts: MessageTs) -> str:
        return f"https://acme.test/{place.channel}/{ts}"


@pytest.mark.parametrize(
    ("place", "name", "shown"),
    [
        (at("C1"), "incident-checkout", "#incident-checkout"),
        (at("C1"), "", "C1"),
        (at("D0BOB"), "", "direct message"),
        (at("D0BOB"), "@direct", "direct message"),
        (at("G1"), "@group", "group message"),
        (at("incident-console", API), "", "#incident-console"),
        (at("Drills", API), "", "#Drills"),
    ],
)
def test_a_channel_has_its_platform_name(place: Place, name: str, shown: str) -> None:
    assert called(name, place) == shown


async def test_channels_have_their_last_read_name() -> None:
    places = [at("C1"), at("C2"), at("ops", API)]
    told = await World().names().channels(places)
    assert list(told.values()) == ["#incident-checkout", "C2", "#ops"]


async def test_only_ids_of_a_platform_are_looked_up() -> None:
    world = World()
    told = await world.names().people(["U1ANNA", "@noor", "root", "", ALERTS])
    assert told == {"U1ANNA": "anna", "@noor": "noor", ALERTS: "an alert"}
    assert world.asked == ["@noor", "U1ANNA"]


@pytest.mark.parametrize("fails", [TimeoutError, StorageUnavailable])
async def test_a_name_is_kept_during_an_outage_without_repeated_lookups(
    fails: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(naming, "NAMES_S", 0.01)
    world = World()
    names = world.names()
    before = await names.people(["U1ANNA"])
    world.fails = fails

    during = [await names.people(["U1ANNA", "U2BEN"]) for _ in range(3)]

    assert during == [before] * 3
    assert world.asked == ["U1ANNA", "U2BEN", "U1ANNA"]
    world.fails, world.now = None, REST_S + 1
    world.called["U2BEN"] = "ben"
    assert (await names.people(["U2BEN"]))["U2BEN"] == "ben"


async def test_an_unknown_id_is_left_to_the_view() -> None:
    assert "U9NOBODY" not in await World().names().people(["U9NOBODY"])


async def test_a_page_looks_up_few_names_and_later_ones_the_others() -> None:
    users = [f"U{number:03}X" for number in range(2 * naming.MOST_ASKED)]
    world = World(called={user: f"name of {user}" for user in users})
    names = world.names()

    first, second = [await names.people(users), await names.people(users)]

    assert len(first) == naming.MOST_ASKED + 1  # and an alert
    assert set(second) == {*users, ALERTS}
