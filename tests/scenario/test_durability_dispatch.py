"""kill -9 around a dispatch: sent at most once, and the reported end is true."""

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from bot.demo.workspace.seeds import RESPONDER
from tests.held_connection import writing
from tests.scenario.durability.world import Asked, World, world_on

POST = "control POST restart"
CONFIRM = "proposal:confirm"


@pytest.fixture
async def world(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[World]:
    async with world_on(getattr(request, "param", "sqlite"), tmp_path) as made:
        yield made


@dataclass(frozen=True)
class Point:
    """Where the process dies. `reach` confirms and returns once the process is there."""

    name: str
    reach: Callable[[World, Asked], Awaitable[None]]
    posts: int
    state: str
    title: str


async def _confirm(world: World, asked: Asked) -> None:
    assert (await world.workspace.click(RESPONDER, world.card(asked).ts, CONFIRM)).ok


async def _decided(world: World, asked: Asked) -> None:
    hold = world.gates.hold("slack POST chat.update before", lambda sent: b"Confirmed" in sent)
    await _confirm(world, asked)
    await hold.wait()
    hold.lost = True


async def _never_arrives(world: World, asked: Asked) -> None:
    hold = world.gates.hold(f"{POST} before")
    await _confirm(world, asked)
    await hold.wait()
    hold.lost = True


async def _answer_on_its_way(world: World, asked: Asked) -> None:
    hold = world.gates.hold(f"{POST} after")
    await _confirm(world, asked)
    await hold.wait()


async def _recorded_not_posted(world: World, asked: Asked) -> None:
    hold = world.gates.hold("slack POST chat.update before", lambda sent: b"Succeeded" in sent)
    await _confirm(world, asked)
    await hold.wait()
    hold.lost = True


POINTS = [
    Point("decided", _decided, 1, "succeeded", "Succeeded"),
    Point("sent, never arrives", _never_arrives, 1, "unknown", "Outcome unknown"),
    Point("answer on its way", _answer_on_its_way, 1, "succeeded", "Succeeded"),
    Point("recorded, not told", _recorded_not_posted, 1, "succeeded", "Succeeded"),
]


def _named(point: Point) -> str:
    return point.name.replace(" ", "-")


@pytest.mark.parametrize("point", POINTS, ids=_named)
async def test_a_dispatch_survives_a_kill(world: World, point: Point) -> None:
    first = await world.start()
    asked = await world.propose("restart it")
    await point.reach(world, asked)
    await world.kill(first)
    world.open()
    await world.start()
    await _ended_truthfully(world, asked, point)


async def test_an_answer_that_could_not_be_recorded_is_read_from_the_control_plane(
    world: World,
) -> None:
    first = await world.start()
    asked = await world.propose("restart it")
    await _answer_on_its_way(world, asked)
    async with writing(world.database):  # no one else can write now
        world.open()
        await world.until(lambda: _passed(world, f"{POST} answered"))
        await world.kill(first)
    await world.start()
    await _ended_truthfully(world, asked, POINTS[2])


async def _passed(world: World, point: str) -> bool:
    return world.gates.passed[point] > 0


@pytest.mark.parametrize("world", ["postgresql"], indirect=True)
@pytest.mark.parametrize("point", [POINTS[0], POINTS[2]], ids=_named)
async def test_another_replica_finishes_a_dispatch(world: World, point: Point) -> None:
    first = await world.start()
    asked = await world.propose("restart it")
    await world.start()
    with world.only(first):
        await point.reach(world, asked)
    await world.kill(first)
    world.open()
    await _ended_truthfully(world, asked, point)


async def _ended_truthfully(world: World, asked: Asked, point: Point) -> None:
    row = await world.decided(asked, "succeeded", "failed", "unknown")
    await world.settled()
    assert row.state == point.state
    assert world.gates.passed[f"{POST} before"] == point.posts
    assert f"'{point.title}: Restart checkout'" in str(world.card(asked).blocks)
    assert len(world.from_bot(asked, "kortex_note")) == 1
    audit = await world.audit()
    assert audit["proposal.confirmed"] == audit["dispatch.intent"] == 1
    assert audit["dispatch.outcome"] == 1
