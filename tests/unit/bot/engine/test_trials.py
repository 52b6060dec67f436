"""After a crash the suspects begin one at a time, and nothing begins beside the one on trial."""

import asyncio
from dataclasses import dataclass, field

import pytest

from bot.chat.stopping import Signal
from bot.domain.session import Ask
from bot.engine import queue
from bot.engine.queue import Trials, TurnSlots
from tests.fixtures_engine import ask


@dataclass
class Court:
    """Turns that run until they are told to end."""

    begun: list[str] = field(default_factory=list)
    marked: list[str] = field(default_factory=list)
    passed: dict[str, asyncio.Event] = field(default_factory=dict)
    stops: dict[str, Signal] = field(default_factory=dict)
    tasks: dict[str, asyncio.Task[None]] = field(default_factory=dict)
    trials: Trials = field(init=False)
    slots: TurnSlots = field(init=False)

    def __post_init__(self) -> None:
        self.slots = TurnSlots(8, self._wait)
        self.trials = Trials(self.slots, self._mark)

    async def _wait(self, _ask: Ask) -> None:
        raise AssertionError("there are slots")

    async def _mark(self, ask: Ask) -> None:
        self.marked.append(ask.text)

    async def _turn(self, ask: Ask, deaths: int) -> None:
        async with self.trials.of(ask, deaths, self.stops[ask.text]) as passed:
            self.begun.append(ask.text)
            await self.passed[ask.text].wait()
            passed()
            await asyncio.Event().wait()

    async def join(self, group: asyncio.TaskGroup, number: int, deaths: int) -> str:
        name = ask(number).text
        self.passed[name], self.stops[name] = asyncio.Event(), Signal()
        self.tasks[name] = group.create_task(self._turn(ask(number), deaths))
        await settled()
        return name

    def end(self) -> None:
        for each in self.tasks.values():
            each.cancel()


async def settled() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


async def test_suspects_begin_one_after_the_other_as_each_gets_on() -> None:
    court = Court()
    async with asyncio.TaskGroup() as group:
        names = [await court.join(group, number, 1) for number in (1, 2, 3)]
        assert court.begun == names[:1]
        for number, name in enumerate(names, 1):
            court.passed[name].set()
            await settled()
            assert court.begun == names[: number + 1]
        court.end()
    assert court.marked == names


async def test_nothing_else_begins_during_a_trial_and_goes_before_the_next() -> None:
    court = Court()
    async with asyncio.TaskGroup() as group:
        first = await court.join(group, 1, 1)
        second = await court.join(group, 2, 1)
        fresh = await court.join(group, 3, 0)
        assert court.begun == [first]
        court.passed[first].set()
        await settled()
        assert sorted(court.begun) == sorted([first, fresh, second])
        court.end()
    assert court.marked == [first, second]


async def test_without_suspects_turns_begin_at_once() -> None:
    court = Court()
    async with asyncio.TaskGroup() as group:
        names = [await court.join(group, number, 0) for number in (1, 2, 3)]
        assert court.begun == names
        court.end()
    assert court.marked == []


async def test_a_trial_ends_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queue, "TRIAL_S", 0.0)
    court = Court()
    async with asyncio.TaskGroup() as group, asyncio.timeout(5):
        await court.join(group, 1, 1)
        second = await court.join(group, 2, 1)
        while second not in court.begun:  # noqa: ASYNC110 - a timer lets it in
            await asyncio.sleep(0.001)
        court.end()


async def test_a_suspect_that_is_stopped_begins_at_once_and_the_next_keeps_its_turn() -> None:
    court = Court()
    async with asyncio.TaskGroup() as group:
        first = await court.join(group, 1, 1)
        second = await court.join(group, 2, 1)
        court.stops[second].set("U1")
        await settled()
        assert court.begun == [first, second]
        assert court.marked == [first]
        third = await court.join(group, 3, 1)
        assert third not in court.begun
        court.passed[first].set()
        await settled()
        assert court.marked == [first, third]
        court.end()


async def test_who_waits_for_a_trial_is_let_go_as_the_process_leaves() -> None:
    court = Court()
    async with asyncio.TaskGroup() as group:
        await court.join(group, 1, 1)
        waits = await court.join(group, 2, 1)
        assert court.slots.let_go() == 1
        await settled()
        assert court.tasks[waits].cancelled()
        court.end()


@pytest.mark.parametrize(("deaths", "longest_s"), [(1, 1.0), (2, 8.0), (3, 60.0), (40, 60.0)])
def test_a_trial_is_longer_after_each_death(deaths: int, longest_s: float) -> None:
    assert queue._growing(queue.TRIAL_S, deaths) == longest_s
