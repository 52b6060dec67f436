"""Which turns are given up when processes crash: only those that crash alone."""

import asyncio
from collections.abc import Callable, Iterable, Set
from dataclasses import dataclass, field
from itertools import count

import pytest

from bot.chat.stopping import Signal
from bot.domain.ids import ChannelId, MessageTs, Person, Place, TeamId, UserId
from bot.domain.session import Ask
from bot.engine import queue
from bot.engine.journal import DEATHS_ALONE
from bot.engine.queue import Trials, TurnSlots
from bot.store.database import Database
from bot.store.tickets import Tickets, workflow_status
from tests.fixtures_database import database, database_url, other
from tests.held_connection import writing
from tools.redactor import Redacted

__all__ = ["database", "database_url", "other"]

MOST_LIVES = 40
# The turns that run now, the turn that continues, and the number of the process's life.
Crashes = Callable[[Set[int], int, int], bool]


class Crash(Exception):
    """The end of a process, without any clean-up."""


def asked(number: int) -> Ask:
    place = Place(TeamId("T1"), ChannelId("C1"), MessageTs(f"17000000{number:02}.000100"))
    return Ask(
        place,
        place.thread_ts or MessageTs(""),
        Person(TeamId("T1"), UserId("U1")),
        Redacted("why?"),
    )


@dataclass
class Processes:
    """Processes that resume the turns that are left, until none is."""

    database: Database
    crashes: Crashes
    left: set[int]
    given_up: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.tickets = Tickets(self.database)

    async def live(self) -> int:
        """The number of lives that it took."""
        await self._accept()
        for life in count(1):
            assert life < MOST_LIVES
            deaths = {each: await self._deaths(each) for each in sorted(self.left) if life > 1}
            self.left -= self.given_up
            if await self._ended(life, deaths):
                return life
        raise AssertionError

    async def _accept(self) -> None:
        engine = workflow_status(self.database.dialect)
        for each in self.left:
            ask = asked(each)
            values = {"workflow_uuid": ask.turn_id, "executor_id": "a", "status": "PENDING"}
            async with writing(self.database) as connection:
                await connection.execute(engine.insert().values(**values))
            await self.tickets.try_enter(ask.turn_id, ask.place.key, ask.ts, "a")

    async def _deaths(self, number: int) -> int:
        found = await self.tickets.count_death(asked(number).turn_id)
        self.given_up |= {number} if found.alone >= DEATHS_ALONE else set()
        return found.counted

    async def _ended(self, life: int, deaths: dict[int, int]) -> bool:
        try:
            await self._run(life, deaths)
        except* Crash:
            ended = False
        else:
            ended = True
        return ended

    async def _run(self, life: int, deaths: dict[int, int]) -> None:
        trials = Trials(TurnSlots(20, self._wait), self._mark)
        running: set[int] = set()
        async with asyncio.TaskGroup() as group:
            for each in sorted(self.left):
                group.create_task(self._turn(each, deaths.get(each, 0), trials, running, life))

    async def _turn(
        self, number: int, deaths: int, trials: Trials, running: set[int], life: int
    ) -> None:
        ask = asked(number)
        async with trials.of(ask, deaths, Signal()) as passed:
            running.add(number)
            for _ in range(20):
                await asyncio.sleep(0)
            if self.crashes(running, number, life):
                raise Crash
            running.discard(number)
            if deaths:
                await self.tickets.clear_deaths(ask.turn_id, "a")
            await self.tickets.leave(ask.turn_id, "a")
            self.left.discard(number)
            passed()

    async def _mark(self, ask: Ask, is_alone: bool) -> None:
        await self.tickets.begin_trial(ask.turn_id, "a", is_alone=is_alone)

    @staticmethod
    async def _wait(_ask: Ask) -> None:
        raise AssertionError("there are slots")


def alone(*numbers: int) -> Crashes:
    return lambda _running, number, _life: number in numbers


def together(*numbers: int) -> Crashes:
    return lambda running, _number, _life: running >= set(numbers)


def from_outside(*lives: int) -> Crashes:
    """Killed in these lives, whatever runs."""
    return lambda _running, _number, life: life in lives


def either(*each: Crashes) -> Crashes:
    return lambda running, number, life: any(one(running, number, life) for one in each)


@pytest.mark.parametrize(
    ("crashes", "guilty"),
    [
        (alone(), ()),
        (alone(1), (1,)),
        (alone(3, 7), (3, 7)),
        (alone(0, 11), (0, 11)),
        (alone(4, 5, 6), (4, 5, 6)),
        (together(2, 9), ()),
        (together(0, 1), ()),
        (either(together(2, 9), alone(5)), (5,)),
        (from_outside(1), ()),
        (from_outside(1, 2), ()),
        (either(from_outside(2), alone(7)), (7,)),
        (either(from_outside(3), alone(3, 7)), (3, 7)),
    ],
)  # fmt: skip
async def test_only_turns_that_crash_alone_are_given_up(
    database: Database, monkeypatch: pytest.MonkeyPatch, crashes: Crashes, guilty: Iterable[int]
) -> None:
    monkeypatch.setattr(queue, "PAUSE_S", 0.0)
    processes = Processes(database, crashes, set(range(12)))

    await processes.live()

    assert processes.given_up == set(guilty)
    assert processes.left == set()
