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
    begun: list[str] = field(default_factory=list)
    marked: list[str] = field(default_factory=list)
    passed: dict[str, asyncio.Event] = field(default_factory=dict)
    stops: dict[str, Signal] = field(default_factory=dict)
    tasks: dict[str, asyncio.Task[None]] = field(default_factory=dict)
    database: asyncio.Event = field(default_factory=asyncio.Event)
    trials: Trials = field(init=False)
    slots: TurnSlots = field(init=False)

    def __post_init__(self) -> None:
        self.database.set()
        self.slots = TurnSlots(8, self._wait)
        self.trials = Trials(self.slots, self._mark)

    async def _wait(self, _ask: Ask) -> None:
        raise AssertionError("there are slots")

    async def _mark(self, ask: Ask, is_alone: bool) -> None:
        await self.database.wait()
        self.marked.append(ask.text if is_alone else f"{ask.text} beside others")

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


async def test_suspects_start_one_after_the_other() -> None:
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


async def test_nothing_starts_during_a_trial_and_waiting_turns_precede_the_next() -> None:
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
    assert court.marked == [first, f"{second} beside others"]


async def test_without_suspects_turns_start_at_once() -> None:
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


async def test_a_stopped_suspect_starts_at_once_and_the_next_keeps_its_place() -> None:
    court = Court()
    async with asyncio.TaskGroup() as group:
        first = await court.join(group, 1, 1)
        second = await court.join(group, 2, 1)
        court.stops[second].set("U1")
        await settled()
        assert court.begun == [first, second]
        assert court.marked == [first, f"{second} beside others"]
        third = await court.join(group, 3, 1)
        assert third not in court.begun
        court.passed[first].set()
        await settled()
        assert court.marked[2:] == [f"{third} beside others"]
        court.end()


async def test_waiting_for_a_trial_ends_when_the_process_stops() -> None:
    court = Court()
    async with asyncio.TaskGroup() as group:
        await court.join(group, 1, 1)
        waits = await court.join(group, 2, 1)
        assert court.slots.let_go() == 1
        await settled()
        assert court.tasks[waits].cancelled()
        court.end()


async def test_a_suspect_next_to_an_unrecorded_turn_is_not_alone() -> None:
    court = Court()
    async with asyncio.TaskGroup() as group:
        fresh = await court.join(group, 1, 0)
        first = await court.join(group, 2, 1)
        court.passed[fresh].set()
        court.passed[first].set()
        await settled()
        second = await court.join(group, 3, 1)
        court.end()
    assert court.marked == [f"{first} beside others", second]


async def test_a_suspect_is_alone_until_the_next_turn_starts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(queue, "TRIAL_S", 0.0)
    court = Court()
    async with asyncio.TaskGroup() as group:
        suspect = await court.join(group, 1, 1)
        await asyncio.sleep(0.001)  # its time is over, and nothing is recorded
        court.database.clear()
        fresh = [await court.join(group, number, 0) for number in (2, 3)]
        assert court.begun == [suspect]
        court.database.set()
        await settled()
        assert court.begun == [suspect, *fresh]
        court.end()
    assert court.marked == [suspect, f"{fresh[0]} beside others"]


async def test_turns_that_start_after_a_suspects_progress_record_nothing() -> None:
    court = Court()
    async with asyncio.TaskGroup() as group:
        suspect = await court.join(group, 1, 1)
        court.passed[suspect].set()
        await settled()
        await court.join(group, 2, 0)
        court.end()
    assert court.marked == [suspect]


@pytest.mark.parametrize(
    ("deaths", "pause_s", "longest_s"),
    [(1, 0.0, 1.0), (2, 1.0, 8.0), (3, 4.0, 60.0), (4, 16.0, 60.0), (40, 60.0, 60.0)],
)
def test_pauses_and_trials_are_longer_after_each_death(
    deaths: int, pause_s: float, longest_s: float
) -> None:
    assert (queue._pause_s(deaths), queue._trial_s(deaths)) == (pause_s, longest_s)
