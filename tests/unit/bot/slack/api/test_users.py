"""Names and time zones of people, asked of Slack once and best effort."""

import pytest
from pydantic import JsonValue

from bot.domain.ids import Person, TeamId, UserId
from bot.ports.failures import SurfaceFailed
from bot.slack.api.users import PersonNames
from tests.fakes.slack_web_api import FakeWebApi

MIRA = Person(TeamId("T1"), UserId("U1"))


class World:
    """Slack as it answers, and a clock."""

    def __init__(self) -> None:
        self.api = FakeWebApi()
        self.now = 0.0
        self.people = PersonNames(self.api, lambda: self.now)

    def says(self, **user: JsonValue) -> None:
        self.api.answers["users.info"] = {"user": {"id": "U1", **user}}


@pytest.fixture
def world() -> World:
    return World()


async def test_the_zone_is_requested_once_an_hour_together_with_the_name(world: World) -> None:
    world.says(tz="Asia/Kolkata", tz_offset=19_800, name="mira")

    assert await world.people.zone(MIRA) == "Asia/Kolkata"
    assert await world.people.name("U1") == "mira"
    world.now = 3_500.0
    assert await world.people.zone(MIRA) == "Asia/Kolkata"
    assert world.api.count("users.info") == 1
    world.now = 3_700.0
    await world.people.zone(MIRA)
    assert world.api.count("users.info") == 2


@pytest.mark.parametrize(
    "tz", [None, "", 5, "Nowhere/Land", "../../etc/passwd", "Europe", "/etc/localtime", "x" * 5_000]
)
async def test_an_invalid_zone_is_unknown(world: World, tz: JsonValue) -> None:
    world.says(tz=tz)

    assert await world.people.zone(MIRA) == ""


@pytest.mark.parametrize("error", [SurfaceFailed("down", retryable=True), TimeoutError()])
async def test_a_failed_lookup_is_unknown_and_repeated(world: World, error: Exception) -> None:
    world.api.answers["users.info"] = error
    assert await world.people.zone(MIRA) == ""

    world.says(tz="Europe/Berlin")
    assert await world.people.zone(MIRA) == "Europe/Berlin"


async def test_an_api_caller_is_named_without_a_lookup(world: World) -> None:
    assert await world.people.name("@person/alice") == "alice"
    assert world.api.count("users.info") == 0
