"""Channel names: asked rarely, kept over restarts, ended by a rename, and never guessed."""

import asyncio
from collections.abc import Iterator

import pytest
from pydantic import JsonValue

from bot.domain.channel import DIRECT, GROUP, UNKNOWN
from bot.domain.ids import ChannelId, MessageTs, Place, TeamId
from bot.ports.failures import StorageUnavailable, SurfaceFailed, SurfaceGone
from bot.slack.api.channels import DECIDING_S, KEPT_S, TTL_S, Channels, SlackChannelNames
from tests.fakes.channel_names import MemoryNames
from tests.fakes.slack_web_api import FakeWebApi

HERE = Place(TeamId("T1"), ChannelId("C1"), MessageTs("1.1"))
LIMITED = SurfaceFailed("ratelimited", retryable=True)
FAILURES = [
    LIMITED,
    SurfaceFailed("missing_scope", retryable=False),
    SurfaceGone("channel_not_found"),
    TimeoutError(),
]


def called(name: JsonValue, **more: JsonValue) -> dict[str, JsonValue]:
    return {"channel": {"name": name, **more}}


def raised(answer: dict[str, JsonValue] | Exception) -> dict[str, JsonValue]:
    if isinstance(answer, Exception):
        raise answer
    return answer


async def for_ever(_seconds: float) -> None:
    await asyncio.Event().wait()


class World:
    def __init__(self) -> None:
        self.api = FakeWebApi()
        self.store = MemoryNames()
        self.api.answers["conversations.info"] = called("incident-checkout")
        self.names = self.restarted()

    def restarted(self) -> SlackChannelNames:
        return SlackChannelNames(Channels(self.api, self.clock), self.store, sleep=self.sleep)

    def clock(self) -> float:
        return self.store.now.timestamp()

    async def sleep(self, seconds: float) -> None:
        self.store.later(seconds)

    def answers(self, answer: object) -> None:
        self.api.answers["conversations.info"] = answer  # type: ignore[assignment]

    @property
    def asked(self) -> int:
        return self.api.count("conversations.info")


@pytest.fixture
def world() -> World:
    return World()


async def test_a_name_is_requested_once(world: World) -> None:
    assert await world.names.for_asking(HERE) == "incident-checkout"
    assert await world.names.for_asking(HERE) == "incident-checkout"
    assert world.asked == 1


async def test_an_unannounced_rename_is_noticed_after_the_ttl(world: World) -> None:
    await world.names.for_asking(HERE)
    world.answers(called("checkout"))
    world.store.later(TTL_S + 1)
    assert await world.names.for_asking(HERE) == "checkout"


@pytest.mark.parametrize("failure", FAILURES, ids=str)
async def test_a_restart_during_a_slack_outage_keeps_every_name(
    world: World, failure: Exception
) -> None:
    await world.names.for_asking(HERE)
    world.answers(failure)
    world.store.later(TTL_S + 1)
    assert await world.restarted().for_asking(HERE) == "incident-checkout"


async def test_a_name_not_refreshed_for_a_day_is_unknown(world: World) -> None:
    await world.names.for_asking(HERE)
    world.answers(LIMITED)
    world.store.later(KEPT_S + 1)
    assert await world.names.for_asking(HERE) == UNKNOWN


@pytest.mark.parametrize("failure", FAILURES, ids=str)
async def test_no_decision_uses_a_name_older_than_a_minute(
    world: World, failure: Exception
) -> None:
    await world.names.for_asking(HERE)
    world.answers(failure)
    within = await world.names.for_deciding(HERE)
    world.store.later(DECIDING_S + 1)
    assert (within, await world.names.for_deciding(HERE)) == ("incident-checkout", UNKNOWN)


async def test_a_rename_discards_the_kept_name_at_once(world: World) -> None:
    await world.names.for_asking(HERE)
    world.answers(LIMITED)
    await world.names.renamed(HERE.team, "C1")
    assert await world.names.for_asking(HERE) == UNKNOWN
    assert await world.names.for_deciding(HERE) == UNKNOWN


async def test_after_a_rename_the_new_name_is_requested(world: World) -> None:
    await world.names.for_asking(HERE)
    world.answers(called("checkout"))
    await world.names.renamed(HERE.team, "C1")
    assert await world.names.for_deciding(HERE) == "checkout"


async def test_an_answer_overtaken_by_a_rename_is_discarded() -> None:
    world = World()
    world.api.gate.clear()
    async with asyncio.TaskGroup() as group:
        reading = group.create_task(world.names.for_deciding(HERE))
        await world.api.entered.wait()
        await world.names.renamed(HERE.team, "C1")
        world.api.gate.set()
    assert reading.result() == UNKNOWN


@pytest.mark.parametrize(
    "answer",
    [
        {},
        {"channel": None},
        called(7),
        called(""),
        called("@direct"),
        called("incident-checkout", id="C9"),
    ],
    ids=str,
)
async def test_an_odd_answer_is_not_a_name_and_is_not_kept(
    world: World, answer: dict[str, JsonValue]
) -> None:
    world.answers(answer)
    assert await world.names.for_asking(HERE) == UNKNOWN
    assert world.store.rows == {}


@pytest.mark.parametrize(
    ("answer", "name"),
    [
        (called("x", is_im=True), DIRECT),
        (called("x", is_mpim=True), GROUP),
        (called("mpdm-mira--jon-1"), GROUP),
    ],
    ids=str,
)
async def test_a_direct_message_has_its_own_name(
    world: World, answer: dict[str, JsonValue], name: str
) -> None:
    world.answers(answer)
    assert await world.names.for_asking(HERE) == name


async def test_a_direct_message_is_recognised_without_a_request(world: World) -> None:
    place = Place(TeamId("T1"), ChannelId("D1"), MessageTs(""))
    assert await world.names.for_deciding(place) == DIRECT
    assert world.asked == 0


async def test_a_lookup_is_retried_until_there_is_a_name(world: World) -> None:
    answers: Iterator[dict[str, JsonValue] | Exception] = iter(
        [LIMITED, LIMITED, called("incident-checkout")]
    )
    world.answers(lambda _arguments: raised(next(answers)))
    assert await world.names.for_asking(HERE, 30.0) == "incident-checkout"


async def test_a_permanent_failure_is_not_retried(world: World) -> None:
    world.answers(SurfaceFailed("missing_scope", retryable=False))
    assert await world.names.for_asking(HERE, 30.0) == UNKNOWN
    assert world.asked == 1


async def test_a_lookup_ends_after_its_time_limit(world: World) -> None:
    world.answers(LIMITED)
    world.sleep = for_ever  # type: ignore[method-assign, assignment]
    assert await world.restarted().for_asking(HERE, 0.01) == UNKNOWN


async def test_a_failing_store_gives_no_older_name(world: World) -> None:
    await world.names.for_asking(HERE)
    world.store.broken = True
    with pytest.raises(StorageUnavailable):
        await world.names.for_deciding(HERE)
