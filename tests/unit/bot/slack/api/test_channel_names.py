"""Channel names: asked rarely, renamed in time, never in the way."""

import pytest

from bot.domain.ids import ChannelId
from bot.ports import SurfaceFailed
from bot.slack.api.channel_names import RETRY_S, TTL_S, ChannelNames
from tests.fakes.slack_web_api import FakeWebApi

C1 = ChannelId("C1")


class World:
    def __init__(self) -> None:
        self.api = FakeWebApi()
        self.api.answers["conversations.info"] = {"channel": {"name": "incident-checkout"}}
        self.now = 0.0
        self.names = ChannelNames(self.api, lambda: self.now)


@pytest.fixture
def world() -> World:
    return World()


async def test_a_name_is_asked_once(world: World) -> None:
    assert await world.names.name(C1) == "incident-checkout"
    assert await world.names.name(C1) == "incident-checkout"
    assert world.api.count("conversations.info") == 1


async def test_a_rename_shows_after_a_while(world: World) -> None:
    await world.names.name(C1)
    world.api.answers["conversations.info"] = {"channel": {"name": "checkout"}}
    world.now += TTL_S + 1
    assert await world.names.name(C1) == "checkout"


async def test_a_failure_keeps_the_last_name_and_is_not_repeated_at_once(world: World) -> None:
    await world.names.name(C1)
    world.api.answers["conversations.info"] = SurfaceFailed("down", retryable=True)
    world.now += TTL_S + 1
    names = [await world.names.name(C1) for _ in range(5)]
    assert names == ["incident-checkout"] * 5
    assert world.api.count("conversations.info") == 2


async def test_after_a_failure_it_is_asked_again(world: World) -> None:
    world.api.answers["conversations.info"] = SurfaceFailed("down", retryable=True)
    unknown = await world.names.name(C1)
    world.api.answers["conversations.info"] = {"channel": {"name": "checkout"}}
    world.now += RETRY_S + 0.1
    assert (unknown, await world.names.name(C1)) == ("", "checkout")


@pytest.mark.parametrize("answer", [{}, {"channel": None}, {"channel": {"name": 7}}])
async def test_an_odd_answer_is_no_name(world: World, answer: dict[str, None]) -> None:
    world.api.answers["conversations.info"] = answer
    assert await world.names.name(C1) == ""
