"""kill -9 at every point of a turn: the answer comes once, and no finished step is repeated."""

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.scenario.durability.investigation import (
    AFTER_FIRST_TEXT,
    ALL_READ,
    ASK,
    FINAL,
    ended_well,
    three_rounds,
)
from tests.scenario.durability.world import Asked, World, world_on


@pytest.fixture
async def world(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[World]:
    async with world_on(getattr(request, "param", "sqlite"), tmp_path) as made:
        yield made


@dataclass(frozen=True)
class Point:
    """Where the process dies. `reach` asks and returns once a process is there.

    `round_again` and `queries_again`: what was under way, and so is done a second time.
    """

    name: str
    reach: Callable[[World], Awaitable[Asked]]
    round_again: int = 0
    queries_again: int = 0


async def _before_placeholder(world: World) -> Asked:
    hold = world.gates.hold("slack POST chat.postMessage before")
    asked = await world.ask(ASK)
    await hold.wait()
    hold.lost = True
    return asked


async def _placeholder_posted(world: World) -> Asked:
    hold = world.gates.hold("slack POST chat.postMessage after")
    asked = await world.ask(ASK)
    await hold.wait()
    return asked


async def _first_round_asked(world: World) -> Asked:
    hold = world.hold_round(ASK, 1, at=-1)
    asked = await world.ask(ASK)
    await hold.wait()
    return asked


async def _first_round_shown(world: World) -> Asked:
    hold = world.hold_round(ASK, 1, at=AFTER_FIRST_TEXT)
    asked = await world.ask(ASK)
    await hold.wait()
    await world.shows(asked, "Looking at")
    return asked


async def _first_tool(world: World) -> Asked:
    hold = world.gates.hold("loki GET query_range before", _about("checkout"))
    asked = await world.ask(ASK)
    await hold.wait()
    assert "round:1" in await world.finished_steps(asked)
    return asked


async def _between_tools(world: World) -> Asked:
    hold = world.gates.hold("loki GET query_range before", _about("cart"))
    asked = await world.ask(ASK)
    await hold.wait()

    async def web_is_read() -> bool:
        return world.gates.passed["loki GET query_range after"] == 2

    await world.until(web_is_read)
    assert "round:2" in await world.finished_steps(asked)
    return asked


async def _tools_read(world: World) -> Asked:
    hold = world.hold_round(ASK, 3, at=-1)
    asked = await world.ask(ASK)
    await hold.wait()
    assert ALL_READ in await world.finished_steps(asked)
    return asked


async def _final_round_shown(world: World) -> Asked:
    hold = world.hold_round(ASK, 3, at=AFTER_FIRST_TEXT)
    asked = await world.ask(ASK)
    await hold.wait()
    await world.shows(asked, "The new")
    return asked


async def _kept_not_delivered(world: World) -> Asked:
    hold = world.gates.hold("slack POST chat.update before", _is_final)
    asked = await world.ask(ASK)
    await hold.wait()
    hold.lost = True
    assert await world.turn_state(asked) == "answered"
    return asked


async def _delivered_not_recorded(world: World) -> Asked:
    hold = world.gates.hold("slack POST chat.update after", _is_final)
    asked = await world.ask(ASK)
    await hold.wait()
    await world.shows(asked, FINAL)
    return asked


def _about(product: str) -> Callable[[bytes], bool]:
    return lambda sent: f'"{product}"'.encode() in sent


def _is_final(sent: bytes) -> bool:
    """Only the final state of an answer has no button to stop it."""
    return b"turn:stop" not in sent


POINTS = [
    Point("before the placeholder", _before_placeholder),
    Point("placeholder posted", _placeholder_posted),
    Point("first round asked", _first_round_asked, round_again=1),
    Point("first round shown", _first_round_shown, round_again=1),
    Point("first tool", _first_tool, queries_again=1),
    Point("between tools", _between_tools, queries_again=2),
    Point("tools read", _tools_read, round_again=3),
    Point("final round shown", _final_round_shown, round_again=3),
    Point("kept, not delivered", _kept_not_delivered),
    Point("delivered, not recorded", _delivered_not_recorded),
]
TAKEN_OVER = [POINTS[1], *POINTS[5:9]]


def _named(point: Point) -> str:
    return point.name.replace(" ", "-")


@pytest.mark.parametrize("point", POINTS, ids=_named)
async def test_a_killed_process_continues_after_its_restart(world: World, point: Point) -> None:
    three_rounds(world)
    first = await world.start()
    asked = await point.reach(world)
    await world.kill(first)
    world.open()
    await world.start()
    await _ended_well(world, asked, point)


@pytest.mark.parametrize("world", ["postgresql"], indirect=True)
@pytest.mark.parametrize("point", TAKEN_OVER, ids=_named)
async def test_a_killed_replica_is_taken_over(world: World, point: Point) -> None:
    three_rounds(world)
    await world.start()
    await world.start()
    asked = await point.reach(world)
    victim = await world.runner_of(asked)
    await world.kill(victim)
    world.open()
    await _ended_well(world, asked, point)


async def _ended_well(world: World, asked: Asked, point: Point) -> None:
    await ended_well(world, asked, round_again=point.round_again, queries_again=point.queries_again)
