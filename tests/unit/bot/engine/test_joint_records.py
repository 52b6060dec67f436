"""What the library would have recorded of a turn is on record, with the turn's own transactions."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest
import sqlalchemy as sa
from dbos import DBOS

from bot.domain.ids import MessageTs
from bot.domain.session import Ask
from bot.engine.engine import Engine
from bot.engine.joint_records import JointRecords
from bot.ports.durability import Journal
from bot.ports.failures import StorageUnavailable
from bot.store.accepted import Accepted
from bot.store.database import Database
from bot.store.tickets import Tickets
from tests.fixtures_engine import STEPS, Lives, ask, lives
from tests.held_connection import reading

__all__ = ["lives"]

pytestmark = pytest.mark.parametrize("lives", ["sqlite"], indirect=True)
TABLES = ("workflow_status", "workflow_input", "workflow_output", "operation_outputs", "accepted")
# Times, and tokens drawn for each.
DRAWN = {"created_at", "updated_at", "completed_at", "started_at_epoch_ms", "retention_timestamp"}
TOKENS = {"creator_xid", "owner_xid"}


def alone(number: int) -> Ask:
    """A question in a thread of its own."""
    ts = MessageTs(f"1700000000.{number:06}")
    return replace(ask(1), place=replace(ask(1).place, thread_ts=ts), ts=ts)


async def recorded(database: Database, turn: str) -> Mapping[str, Sequence[Mapping[str, object]]]:
    """All that is on record of a turn, with what differs between any two taken out."""
    found: dict[str, Sequence[Mapping[str, object]]] = {}
    async with reading(database) as connection:
        for table in TABLES:
            name = "id" if table == "accepted" else "workflow_uuid"
            query = sa.text(f"SELECT * FROM {table} WHERE {name} = :turn")  # noqa: S608 - ours
            rows = (await connection.execute(query, {"turn": turn})).mappings().all()
            found[table] = [_plain({**row}, turn) for row in rows]
    return found


def _plain(row: Mapping[str, Any], turn: str) -> Mapping[str, object]:
    ts = turn.rpartition(":")[2]
    values: dict[str, object] = {}
    for name, value in row.items():
        if name in DRAWN or name in TOKENS:
            values[name] = value is None
        else:
            values[name] = value.replace(ts, "<ts>") if isinstance(value, str) else value
    return values


async def halfway_and_ended(
    lives: Lives, asked: Ask, monkeypatch: pytest.MonkeyPatch
) -> Sequence[object]:
    reached, let_go = asyncio.Event(), asyncio.Event()

    async def between(each: Ask, behind: int) -> None:
        if (each, behind) == (asked, 1):
            reached.set()
            await let_go.wait()

    monkeypatch.setattr(lives, "_between", between)
    async with lives.life() as engine:
        await engine.start_turn(asked)
        await asyncio.wait_for(reached.wait(), 10)
        halfway = await recorded(lives.database, asked.turn_id)
        let_go.set()
        await lives.over()
        await lives.until(lambda: _is_over(engine))
    return [halfway, await recorded(lives.database, asked.turn_id)]


async def _is_over(engine: Engine) -> bool:
    return not engine._under_way._recording and not engine.live


async def test_it_is_what_the_library_records_by_itself(
    lives: Lives, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours = await halfway_and_ended(lives, alone(1), monkeypatch)
    monkeypatch.setattr(JointRecords, "join", lambda _self, _dbos: None)
    assert ours == await halfway_and_ended(lives, alone(2), monkeypatch)


async def test_every_turn_of_a_life_is_recorded_as_its_first(lives: Lives) -> None:
    async with lives.life() as engine:
        for number in (1, 2, 3):
            await engine.start_turn(alone(number))
            await lives.over()
            await lives.until(lambda: _is_over(engine))

    first, *others = [await recorded(lives.database, alone(n).turn_id) for n in (1, 2, 3)]

    assert [row["status"] for row in first["workflow_status"]] == ["SUCCESS"]
    assert others == [first, first]


class Transactions:
    """That the library opened by itself."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.statements: list[str] = []
        join = JointRecords.join

        def joined(records: JointRecords, dbos: DBOS) -> None:
            join(records, dbos)
            sa.event.listen(dbos._sys_db.engine.engine, "before_cursor_execute", self._heard)

        monkeypatch.setattr(JointRecords, "join", joined)

    def _heard(
        self, _c: object, _cursor: object, statement: str, given: object, *_: object
    ) -> None:
        if "turn:" in repr(given):
            self.statements.append(statement)


async def test_the_library_opens_no_transaction_for_a_turn(
    lives: Lives, monkeypatch: pytest.MonkeyPatch
) -> None:
    by_itself = Transactions(monkeypatch)
    async with lives.life() as engine:
        await engine.start_turn(alone(1))
        await lives.over()
        await lives.until(lambda: _is_over(engine))
        assert by_itself.statements == []
        assert not engine._joint._begun
        assert not engine._joint._ended
        assert not engine._joint._expected


async def test_one_that_has_to_wait_is_on_record_while_it_does(lives: Lives) -> None:
    lives.hold(ask(1), 1)
    async with lives.life() as engine:
        await engine.start_turn(ask(1))
        await asyncio.wait_for(lives.reached.wait(), 10)
        await engine.start_turn(ask(2))

        async def is_on_record() -> bool:
            return bool((await recorded(lives.database, ask(2).turn_id))["workflow_status"])

        await lives.until(is_on_record)
    lives.hold(None)
    async with lives.life():
        await lives.over()
    assert lives.ended == ["question 1", "question 2"]


async def ended_as(lives: Lives, question: Ask) -> Sequence[object]:
    """What is on record of it after a life in which it was asked."""
    async with lives.life() as engine:
        await engine.start_turn(question)
        await lives.over()
        await lives.until(lambda: _is_over(engine))
    kept = await recorded(lives.database, question.turn_id)
    return [row["status"] for row in kept["workflow_status"]]


async def test_one_that_does_nothing_is_on_record_as_ended_all_the_same(
    lives: Lives, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def turn(_ask: Ask, _journal: Journal) -> None:
        """Nobody is there to be answered."""

    monkeypatch.setattr(lives, "_turn", turn)
    assert await ended_as(lives, alone(1)) == ["SUCCESS"]
    assert await Accepted(lives.database).left() == {}


async def test_one_that_fails_before_any_transaction_is_on_record_as_failed(
    lives: Lives, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def turn(_ask: Ask, _journal: Journal) -> None:
        raise StorageUnavailable("the disk is full")

    monkeypatch.setattr(lives, "_turn", turn)
    assert await ended_as(lives, alone(1)) == ["ERROR"]
    assert await Accepted(lives.database).left() == {}


class NoAnswer(Tickets):
    """The turn has left, and its process does not hear of it."""

    async def leave(self, *given: Any) -> bool:
        await super().leave(*given)
        raise StorageUnavailable("the database did not answer in time")


async def test_one_whose_leave_was_not_answered_has_ended_once(lives: Lives) -> None:
    lives.tickets = NoAnswer
    assert await ended_as(lives, alone(1)) == ["SUCCESS"]
    lives.tickets = Tickets
    async with lives.life() as engine:
        await engine.look_after_threads()
    assert lives.ended == ["question 1"]
    assert set(lives.ran.values()) == {1}


async def test_who_looks_for_what_was_left_begins_none_that_is_being_begun(lives: Lives) -> None:
    lives.hold(ask(1), 0)
    async with lives.life() as engine:
        await engine.start_turn(ask(1))
        await asyncio.wait_for(lives.reached.wait(), 10)
        assert not (await recorded(lives.database, ask(1).turn_id))["workflow_status"]
        for _ in range(3):
            await engine.look_after_threads()
        assert engine.live == 1
    lives.hold(None)
    async with lives.life():
        await lives.over()
    assert lives.ended == ["question 1"]
    assert [lives.ran["question 1", step] for step in STEPS] == [1] * len(STEPS)


async def test_the_two_records_of_a_turn_are_prepared_statements(
    lives: Lives, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    execute = sa.Connection.execute

    def noted(connection: sa.Connection, statement: Any, *given: Any, **options: Any) -> Any:
        asked.append(type(statement).__name__ + str(getattr(statement, "table", "")))
        return execute(connection, statement, *given, **options)

    async with lives.life() as engine:
        monkeypatch.setattr(sa.Connection, "execute", noted)
        await engine.start_turn(alone(1))
        await lives.over()
        await lives.until(lambda: _is_over(engine))

    assert not [each for each in asked if each.startswith(("Insert", "Update")) and "workf" in each]
