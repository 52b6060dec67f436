"""A message is accepted once, however often it is told of; what failed is accepted when it comes again."""

import asyncio
from dataclasses import dataclass, field

import pytest

from bot.chat.traced import TurnTraces
from bot.domain.ids import ChannelId, MessageTs, Person, Place, TeamId, UserId
from bot.domain.session import Ask
from bot.engine import admission
from bot.engine.admission import Admission
from bot.ports.failures import StorageUnavailable
from bot.store.accepted import Accepted, Taken
from bot.store.database import Database
from tests.fixtures_database import database, sqlite_url
from tools.redactor import Redacted

__all__ = ["database", "sqlite_url"]


@pytest.fixture
def database_url(sqlite_url: str) -> str:
    return sqlite_url


@dataclass
class Counted(Accepted):
    """Counts how often it is asked, waits until it may answer, and fails as often as it is told to."""

    rows: Accepted
    asked: int = 0
    fails: int = 0
    may_answer: asyncio.Event = field(default_factory=asyncio.Event)

    async def accept(self, turn: str, thread: str, ts: str, ask: str) -> Taken:
        self.asked += 1
        await self.may_answer.wait()
        if self.fails:
            self.fails -= 1
            raise StorageUnavailable("the disk is full")
        return await self.rows.accept(turn, thread, ts, ask)


@dataclass
class Door:
    accepted: Counted
    begun: list[tuple[str, Taken]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.admission = Admission(self.accepted, lambda: True, self._begin, TurnTraces())

    def _begin(self, ask: Ask, taken: Taken) -> None:
        self.begun.append((ask.turn_id, taken))


@pytest.fixture
def door(database: Database) -> Door:
    return Door(Counted(Accepted(database)))


def ask(number: int) -> Ask:
    ts = MessageTs(f"{number}.0")
    place = Place(TeamId("T1"), ChannelId("C1"), ts)
    return Ask(place, ts, Person(TeamId("T1"), UserId("U1")), Redacted("why?"))


async def test_a_message_that_is_told_of_twice_at_once_is_asked_of_the_database_once(
    door: Door,
) -> None:
    both = asyncio.gather(*[door.admission.start_turn(ask(1)) for _ in range(2)])
    await asyncio.sleep(0)
    assert not both.done()
    door.accepted.may_answer.set()
    await both
    await door.admission.start_turn(ask(1))

    assert (door.accepted.asked, door.begun) == (1, [(ask(1).turn_id, Taken.FIRST)])


async def test_a_message_that_could_not_be_accepted_is_tried_again_by_who_waited(
    door: Door,
) -> None:
    door.accepted.fails = 1
    both = asyncio.gather(
        *[door.admission.start_turn(ask(1)) for _ in range(2)], return_exceptions=True
    )
    door.accepted.may_answer.set()
    failed, went = await both

    assert isinstance(failed, StorageUnavailable)
    assert went is None
    assert door.begun == [(ask(1).turn_id, Taken.FIRST)]


async def test_who_is_cut_off_keeps_nobody_who_waits_from_accepting(door: Door) -> None:
    first = asyncio.create_task(door.admission.start_turn(ask(1)))
    second = asyncio.create_task(door.admission.start_turn(ask(1)))
    await asyncio.sleep(0)
    first.cancel()
    door.accepted.may_answer.set()
    await second

    assert first.cancelled()
    assert door.begun == [(ask(1).turn_id, Taken.FIRST)]


async def test_what_is_remembered_does_not_grow_and_what_is_forgotten_is_begun_once(
    door: Door, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(admission, "REMEMBERED", 2)
    door.accepted.may_answer.set()
    for number in (1, 2, 3, 1):
        await door.admission.start_turn(ask(number))

    assert door.accepted.asked == 4
    assert [turn for turn, _ in door.begun] == [ask(n).turn_id for n in (1, 2, 3)]
