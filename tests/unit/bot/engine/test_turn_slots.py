"""Turns beyond the limit wait in line, say so, and can be stopped and handed over there."""

import asyncio
from dataclasses import dataclass, field

import pytest

from bot.chat.stopping import Signal
from bot.domain.ids import ChannelId, MessageTs, Person, Place, TeamId, UserId
from bot.domain.session import Ask
from bot.engine.queue import TurnSlots
from tools.redactor import Redacted


def ask(number: int) -> Ask:
    ts = MessageTs(f"1700000000.00000{number}")
    person = Person(TeamId("T1"), UserId("U1"))
    return Ask(Place(TeamId("T1"), ChannelId("C1"), ts), ts, person, Redacted("why?"))


@dataclass
class Line:
    told: list[Ask] = field(default_factory=list)
    begun: list[int] = field(default_factory=list)
    ends: dict[int, asyncio.Event] = field(default_factory=dict)
    tasks: dict[int, asyncio.Task[None]] = field(default_factory=dict)
    stops: dict[int, Signal] = field(default_factory=dict)
    slots: TurnSlots = field(init=False)

    def __post_init__(self) -> None:
        self.slots = TurnSlots(1, self.tell)

    async def tell(self, ask: Ask) -> None:
        self.told.append(ask)

    async def turn(self, number: int) -> None:
        async with self.slots.hold(ask(number), self.stops[number]):
            self.begun.append(number)
            await self.ends[number].wait()

    async def join(self, group: asyncio.TaskGroup, number: int) -> None:
        self.ends[number], self.stops[number] = asyncio.Event(), Signal()
        self.tasks[number] = group.create_task(self.turn(number))
        await settled()

    async def end(self, number: int) -> None:
        self.ends[number].set()
        await settled()


async def settled() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


async def test_turns_over_the_limit_wait_in_order_and_say_so() -> None:
    line = Line()
    async with asyncio.TaskGroup() as group:
        for number in range(3):
            await line.join(group, number)
        assert (line.begun, line.told) == ([0], [ask(1), ask(2)])
        await line.end(0)
        assert line.begun == [0, 1]
        await line.end(1)
        await line.end(2)
    assert line.begun == [0, 1, 2]


async def test_a_stopped_queued_turn_ends_at_once_and_takes_no_slot() -> None:
    line = Line()
    async with asyncio.TaskGroup() as group:
        for number in range(3):
            await line.join(group, number)
        line.stops[2].set()
        await settled()
        assert line.begun == [0, 2]
        await line.end(2)
        assert line.begun == [0, 2]
        await line.end(0)
        await line.end(1)
    assert line.begun == [0, 2, 1]


async def test_a_cancelled_queued_turn_leaves_its_place() -> None:
    line = Line()
    async with asyncio.TaskGroup() as group:
        for number in range(3):
            await line.join(group, number)
        line.tasks[1].cancel()
        await line.end(0)
        await line.end(2)
    assert line.begun == [0, 2]


async def test_only_queued_turns_are_released() -> None:
    line = Line()
    async with asyncio.TaskGroup() as group:
        for number in range(3):
            await line.join(group, number)
        assert line.slots.let_go() == 2
        await settled()
        assert [task.cancelled() for task in line.tasks.values()] == [False, True, True]
        await line.end(0)
    assert line.begun == [0]


async def test_a_failed_turn_frees_its_slot() -> None:
    line = Line()
    with pytest.raises(KeyError):
        async with line.slots.hold(ask(0), Signal()):
            raise KeyError
    async with line.slots.hold(ask(1), Signal()):
        pass
    assert line.told == []
