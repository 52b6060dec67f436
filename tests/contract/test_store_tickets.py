"""Turns of a thread run one at a time, in order, across replicas that crash, freeze and wake."""

import asyncio
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TypeVar

import pytest
import sqlalchemy as sa

from bot.domain.ids import ChannelId, MessageTs, Person, Place, TeamId, UserId
from bot.domain.session import Ask, TurnState
from bot.engine.journal import TurnJournals
from bot.store.accepted import HalfStarted
from bot.store.database import Database
from bot.store.dialect import Work
from bot.store.sessions import StoredSessions
from bot.store.tables import accepted as rows
from bot.store.tables import tickets as table
from bot.store.tickets import (
    NO_OWNER,
    Attempt,
    Deaths,
    Superseded,
    Tickets,
    workflow_status,
    workflow_steps,
)
from bot.store.turn_steps import TurnSteps
from tests.fixtures_database import database, database_url, other
from tests.held_connection import reading, writing
from tools.redactor import Redacted

__all__ = ["database", "database_url", "other"]

T = TypeVar("T")
THREAD = "T1:C1:1700000000.000100"


@dataclass
class Engine:
    """The engine's table of workflows, written as the engine would."""

    database: Database
    table: sa.TableClause

    async def run(self, workflow: str, executor: str, status: str = "PENDING") -> None:
        """The workflow is `executor`'s now, in that state."""
        async with writing(self.database) as connection:
            await connection.execute(
                self.table.delete().where(self.table.c.workflow_uuid == workflow)
            )
            await connection.execute(
                self.table.insert().values(
                    workflow_uuid=workflow, executor_id=executor, status=status
                )
            )

    async def finish(self, workflow: str, step: str) -> None:
        """One more step of it is on record."""
        steps = workflow_steps(self.database.dialect)
        async with writing(self.database) as connection:
            await connection.execute(
                steps.insert().values(
                    workflow_uuid=workflow, function_name=step, function_id=len(step)
                )
            )


@pytest.fixture
async def engine(database: Database) -> Engine:
    return Engine(database, workflow_status(database.dialect))


@pytest.fixture
def tickets(database: Database) -> Tickets:
    return Tickets(database)


async def _kept(database: Database) -> int:
    async with reading(database) as connection:
        return await connection.scalar(sa.select(sa.func.count()).select_from(rows)) or 0


@pytest.fixture
def half_started(database: Database) -> HalfStarted:
    return HalfStarted(database)


async def states(database: Database) -> dict[str, tuple[str, str]]:
    async with reading(database) as connection:
        found = await connection.execute(sa.text("SELECT id, state, owner FROM tickets"))
        return {each: (state, owner) for each, state, owner in found}


async def test_the_first_turn_of_a_thread_enters(engine: Engine, tickets: Tickets) -> None:
    await engine.run("t1", "a")
    assert (await tickets.try_enter("t1", THREAD, "1", "a")).entered


async def test_a_queued_turn_is_found_by_its_place_until_it_ends(
    engine: Engine, tickets: Tickets, database: Database
) -> None:
    ts = MessageTs("1700000000.000100")
    place = Place(TeamId("T1"), ChannelId("C1"), ts)
    ask = Ask(place, ts, Person(TeamId("T1"), UserId("U1")), Redacted("why?"))
    at = datetime(2026, 11, 21, tzinfo=UTC)
    sessions = StoredSessions(database)
    await engine.run(ask.turn_id, "a")
    await tickets.try_enter(ask.turn_id, place.key, ts, "a")
    assert await sessions.running_turn(place) == ask.turn_id
    await sessions.begin_turn(ask, "n", at)
    assert await sessions.running_turn(place) == ask.turn_id
    await sessions.finish_turn(ask.turn_id, TurnState.ANSWERED, (), (), at)
    assert await sessions.running_turn(place) is None


async def test_entering_again_keeps_the_place(engine: Engine, tickets: Tickets) -> None:
    await engine.run("t1", "a")
    await tickets.try_enter("t1", THREAD, "1", "a")
    assert (await tickets.try_enter("t1", THREAD, "1", "a")).entered


async def test_the_next_turn_waits_until_the_first_leaves(engine: Engine, tickets: Tickets) -> None:
    await engine.run("t1", "a")
    await engine.run("t2", "b")
    await tickets.try_enter("t1", THREAD, "1", "a")
    assert not (await tickets.try_enter("t2", THREAD, "2", "b")).entered
    assert await tickets.leave("t1", "a")
    assert (await tickets.try_enter("t2", THREAD, "2", "b")).entered


async def test_threads_do_not_wait_for_each_other(engine: Engine, tickets: Tickets) -> None:
    await engine.run("t1", "a")
    await engine.run("t2", "a")
    await tickets.try_enter("t1", THREAD, "1", "a")
    assert (await tickets.try_enter("t2", "another", "2", "a")).entered


async def test_the_oldest_waiting_message_is_next(engine: Engine, tickets: Tickets) -> None:
    for name in ("t1", "t2", "t3"):
        await engine.run(name, "a")
    await tickets.try_enter("t1", THREAD, "1", "a")
    await tickets.try_enter("t3", THREAD, "3", "a")
    await tickets.try_enter("t2", THREAD, "2", "a")
    await tickets.leave("t1", "a")
    assert not (await tickets.try_enter("t3", THREAD, "3", "a")).entered
    assert (await tickets.try_enter("t2", THREAD, "2", "a")).entered


async def accept(database: Database, name: str, ask: str = "{}") -> None:
    """As an earlier release did, before it started the workflow."""
    place = {"id": name, "thread": THREAD, "ts": name, "state": "waiting", "owner": NO_OWNER}
    async with writing(database) as connection:
        await connection.execute(rows.insert(), {"id": name, "ask": ask})
        await connection.execute(table.insert(), place)


async def test_a_place_kept_by_an_earlier_release_is_taken_by_a_first_attempt(
    engine: Engine, tickets: Tickets
) -> None:
    await accept(engine.database, "t1")
    await engine.run("t1", "a")
    assert await tickets.try_enter("t1", THREAD, "t1", "a") == Attempt(entered=True, is_first=True)
    assert await states(engine.database) == {"t1": ("running", "a")}


async def test_an_attempt_is_the_first_only_once(engine: Engine, tickets: Tickets) -> None:
    await engine.run("t1", "a")
    attempts = [await tickets.try_enter("t1", THREAD, "1", "a") for _ in range(2)]
    await engine.run("t1", "b")
    attempts.append(await tickets.try_enter("t1", THREAD, "1", "b"))
    assert [each.is_first for each in attempts] == [True, False, False]


class AnswerLost(Database):
    """Its first commit goes through, but the answer is lost."""

    async def transact(self, work: Work[T], *, again: bool = True) -> T:
        await super().transact(work, again=again)
        return await super().transact(work, again=again)


async def test_a_first_attempt_with_a_lost_commit_reply_is_still_the_first(
    engine: Engine, tickets: Tickets, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    await engine.run("t1", "a")
    monkeypatch.setattr(database, "__class__", AnswerLost)
    assert (await tickets.try_enter("t1", THREAD, "1", "a")).is_first


async def test_a_turn_has_a_place_from_its_ticket_on_or_is_over(
    engine: Engine, tickets: Tickets
) -> None:
    await engine.run("t1", "a")
    await engine.run("t2", "a", "ENQUEUED")
    await tickets.try_enter("t1", THREAD, "1", "a")
    assert await tickets.is_placed("t1")
    assert not await tickets.is_placed("t2")
    await engine.run("t2", "a", "CANCELLED")
    assert await tickets.is_placed("t2")


async def test_a_turn_that_an_earlier_release_accepted_without_a_workflow_is_found(
    engine: Engine, half_started: HalfStarted
) -> None:
    for name in ("t1", "t2", "t3"):
        await accept(engine.database, name, f'"{name}"')
    await engine.run("t2", "a")
    await engine.run("t3", "a", "SUCCESS")
    assert await half_started.accepted() == {"t1": '"t1"'}
    assert await _kept(engine.database) == 1
    await engine.run("t1", "a", "ENQUEUED")
    assert await half_started.accepted() == {}


async def test_a_place_without_a_workflow_is_dropped_at_the_second_check(
    engine: Engine, half_started: HalfStarted
) -> None:
    for name in ("t1", "t2", "t3", "t4"):
        await accept(engine.database, name)
    async with writing(engine.database) as connection:  # as 0.1.0 left its places
        await connection.execute(rows.delete().where(rows.c.id != "t4"))
    await engine.run("t3", "a", "ENQUEUED")
    found = await half_started.drop_tickets(())
    assert set(found) == {"t1", "t2"}
    await engine.run("t2", "a")
    assert set(await half_started.drop_tickets(found)) == set()
    assert set(await states(engine.database)) == {"t2", "t3", "t4"}


async def test_a_late_older_message_waits_and_keeps_its_ticket(
    engine: Engine, tickets: Tickets
) -> None:
    await engine.run("t1", "a")
    await engine.run("t2", "a")
    await tickets.try_enter("t2", THREAD, "2", "a")
    assert not (await tickets.try_enter("t1", THREAD, "1", "a")).entered
    assert (await states(engine.database))["t1"] == ("waiting", "a")
    await tickets.leave("t2", "a")
    assert (await tickets.try_enter("t1", THREAD, "1", "a")).entered


async def test_a_turn_taken_over_keeps_its_slot(engine: Engine, tickets: Tickets) -> None:
    await engine.run("t1", "dead")
    await tickets.try_enter("t1", THREAD, "1", "dead")
    await engine.run("t1", "b")
    assert (await tickets.try_enter("t1", THREAD, "1", "b")).entered
    assert await states(engine.database) == {"t1": ("running", "b")}


@pytest.mark.parametrize(
    ("executor", "status"),
    [("b", "PENDING"), ("a", "ENQUEUED"), ("a", "CANCELLED"), ("a", "SUCCESS")],
)
async def test_a_replica_that_lost_the_workflow_may_not_enter(
    engine: Engine, tickets: Tickets, executor: str, status: str
) -> None:
    await engine.run("t1", executor, status)
    with pytest.raises(Superseded):
        await tickets.try_enter("t1", THREAD, "1", "a")
    assert await states(engine.database) == {}


async def test_a_zombie_that_waits_does_not_take_the_slot(engine: Engine, tickets: Tickets) -> None:
    for name in ("t1", "t2"):
        await engine.run(name, "a")
    await tickets.try_enter("t1", THREAD, "1", "a")
    await tickets.try_enter("t2", THREAD, "2", "a")
    await tickets.leave("t1", "a")
    await engine.run("t2", "b")
    with pytest.raises(Superseded):
        await tickets.try_enter("t2", THREAD, "2", "a")
    assert (await tickets.try_enter("t2", THREAD, "2", "b")).entered


@pytest.mark.parametrize(("executor", "status"), [("b", "PENDING"), ("a", "ENQUEUED")])
async def test_a_zombie_does_not_release_the_slot(
    engine: Engine, tickets: Tickets, executor: str, status: str
) -> None:
    await engine.run("t1", "a")
    await tickets.try_enter("t1", THREAD, "1", "a")
    await engine.run("t1", executor, status)
    assert not await tickets.leave("t1", "a")
    assert await states(engine.database) == {"t1": ("running", "a")}


async def test_a_zombie_does_not_release_its_successors_slot(
    engine: Engine, tickets: Tickets
) -> None:
    await engine.run("t1", "a")
    await tickets.try_enter("t1", THREAD, "1", "a")
    await engine.run("t1", "b")
    await tickets.try_enter("t1", THREAD, "1", "b")
    assert not await tickets.leave("t1", "a")
    assert await tickets.leave("t1", "b")


async def test_a_cancelled_turn_may_leave(engine: Engine, tickets: Tickets) -> None:
    await engine.run("t1", "a")
    await tickets.try_enter("t1", THREAD, "1", "a")
    await engine.run("t1", "a", "CANCELLED")
    assert await tickets.leave("t1", "a")


@pytest.mark.parametrize(
    "status", ["CANCELLED", "ERROR", "SUCCESS", "MAX_RECOVERY_ATTEMPTS_EXCEEDED"]
)
async def test_the_ticket_of_a_finished_workflow_is_dropped(
    engine: Engine, tickets: Tickets, status: str
) -> None:
    for name in ("t1", "t2"):
        await engine.run(name, "a")
        await tickets.try_enter(name, THREAD, name, "a")
    await engine.run("t1", "a", status)
    assert list(await tickets.drop_dead(["t1", "t2"])) == ["t1"]
    assert (await tickets.try_enter("t2", THREAD, "t2", "a")).entered


@pytest.mark.parametrize("status", ["PENDING", "ENQUEUED", "DELAYED"])
async def test_the_ticket_of_a_running_workflow_is_kept(
    engine: Engine, tickets: Tickets, status: str
) -> None:
    await engine.run("t1", "a")
    await tickets.try_enter("t1", THREAD, "1", "a")
    await engine.run("t1", "dead", status)
    assert list(await tickets.drop_dead(["t1"])) == []


async def test_deaths_are_counted_while_no_step_is_finished(
    engine: Engine, tickets: Tickets
) -> None:
    await engine.run("t1", "a")
    await tickets.try_enter("t1", THREAD, "1", "a")
    counted = []
    for _ in range(3):
        counted.append(await tickets.count_death("t1"))
        await tickets.begin_trial("t1", "a", is_alone=True)
    await engine.finish("t1", "open")
    counted.append(await tickets.count_death("t1"))
    assert counted == [Deaths(1, 0), Deaths(2, 1), Deaths(3, 2), Deaths(1, 0)]


async def test_crashes_together_with_other_turns_never_abandon_a_turn(
    database: Database, engine: Engine, tickets: Tickets
) -> None:
    journals = TurnJournals(tickets, TurnSteps(database), "a")
    await engine.run("t1", "a")
    await tickets.try_enter("t1", THREAD, "1", "a")
    for _ in range(5):
        await tickets.count_death("t1")
        await tickets.begin_trial("t1", "a", is_alone=False)

    async def work() -> str:
        return "ran"

    opened = await journals.open("t1", is_first=False)
    assert opened is not None
    assert opened.deaths == 6
    assert await opened.journal.step("open", work) == "ran"


async def test_a_turn_that_waited_for_its_trial_did_not_cause_the_death(
    engine: Engine, tickets: Tickets
) -> None:
    await engine.run("t1", "a")
    await tickets.try_enter("t1", THREAD, "1", "a")
    counted = [await tickets.count_death("t1") for _ in range(3)]
    assert counted == [Deaths(1, 0)] * 3


async def test_only_the_suspect_that_began_last_died_alone(
    engine: Engine, tickets: Tickets
) -> None:
    for name in ("t1", "t2", "t3"):
        await engine.run(name, "a")
        await tickets.try_enter(name, name, "1", "a")
        await tickets.count_death(name)
    await tickets.begin_trial("t1", "a", is_alone=True)
    await tickets.begin_trial("t2", "a", is_alone=True)
    counted = [await tickets.count_death(name) for name in ("t1", "t2", "t3")]
    assert counted == [Deaths(2, 0), Deaths(2, 1), Deaths(1, 0)]


async def test_a_suspect_joined_by_another_turn_did_not_die_alone(
    engine: Engine, tickets: Tickets
) -> None:
    for name in ("t1", "fresh"):
        await engine.run(name, "a")
        await tickets.try_enter(name, name, "1", "a")
    await tickets.count_death("t1")
    await tickets.begin_trial("t1", "a", is_alone=True)
    await tickets.begin_trial("fresh", "a", is_alone=False)
    counted = [await tickets.count_death(name) for name in ("t1", "fresh")]
    assert counted == [Deaths(2, 0), Deaths(1, 0)]


async def test_a_death_after_progress_counts_as_the_first(engine: Engine, tickets: Tickets) -> None:
    for name in ("t1", "t2"):
        await engine.run(name, name)
        await tickets.try_enter(name, name, "1", name)
        await tickets.count_death(name)
        await tickets.begin_trial(name, name, is_alone=True)
    await tickets.clear_deaths("t1", "t1")
    await tickets.clear_deaths("t2", "a zombie")
    counted = [await tickets.count_death(name) for name in ("t1", "t2")]
    assert counted == [Deaths(1, 0), Deaths(2, 1)]


async def test_a_handed_over_turn_has_not_died(engine: Engine, tickets: Tickets) -> None:
    for name in ("t1", "t2"):
        await engine.run(name, name)
        await tickets.try_enter(name, name, "1", name)
        await tickets.count_death(name)
        await tickets.begin_trial(name, name, is_alone=True)
    await tickets.hand_over("t1")
    assert await tickets.count_death("t1") == Deaths(0, 0)
    assert await tickets.count_death("t1") == Deaths(1, 0)
    assert await tickets.count_death("t2") == Deaths(2, 1)


async def test_a_turn_that_left_is_not_counted(tickets: Tickets) -> None:
    assert await tickets.count_death("t1") == Deaths(0, 0)


async def test_a_turn_is_asked_to_stop_on_its_own_replica(engine: Engine, tickets: Tickets) -> None:
    await engine.run("t1", "a")
    await engine.run("t2", "b")
    await tickets.try_enter("t1", THREAD, "1", "a")
    await tickets.try_enter("t2", THREAD, "2", "b")
    assert await tickets.request_stop("t2", "U1")
    assert await tickets.request_stop("t2", "U2")
    assert list(await tickets.stops_for("a")) == []
    assert list(await tickets.stops_for("b")) == ["t2"]


async def test_a_stop_follows_the_turn_to_its_next_owner(engine: Engine, tickets: Tickets) -> None:
    await engine.run("t1", "a")
    await tickets.try_enter("t1", THREAD, "1", "a")
    await tickets.request_stop("t1", "U1")
    await engine.run("t1", "b")
    await tickets.try_enter("t1", THREAD, "1", "b")
    assert list(await tickets.stops_for("b")) == ["t1"]


async def test_a_turn_that_does_not_run_cannot_be_stopped(engine: Engine, tickets: Tickets) -> None:
    assert not await tickets.request_stop("t1", "U1")


async def test_twenty_turns_on_two_replicas_never_overlap(
    engine: Engine, database: Database, other: Database
) -> None:
    replicas = {"a": Tickets(database), "b": Tickets(other)}
    names = [f"t{n:02}" for n in range(20)]
    for n, name in enumerate(names):
        await engine.run(name, "ab"[n % 2])
    inside: list[str] = []
    ran: list[str] = []
    start = asyncio.Event()
    left = [asyncio.Event()]  # the newest one is set by the next turn that leaves

    async def turn(name: str, owner: str) -> None:
        gate = replicas[owner]
        await start.wait()
        somebody_left = left[-1]
        while not (await gate.try_enter(name, THREAD, name, owner)).entered:
            await somebody_left.wait()
            somebody_left = left[-1]
        inside.append(name)
        assert inside == [name]
        await gate.try_enter(name, THREAD, name, owner)
        ran.append(inside.pop())
        await gate.leave(name, owner)
        left.append(asyncio.Event())
        left[-2].set()

    async with asyncio.timeout(30), asyncio.TaskGroup() as group:
        for n, name in enumerate(names):
            group.create_task(turn(name, "ab"[n % 2]))
        start.set()
    assert sorted(ran) == names
    assert await states(database) == {}


async def test_only_one_of_three_at_once_enters_an_idle_thread(
    engine: Engine, database: Database, other: Database
) -> None:
    gates = [Tickets(database), Tickets(other), Tickets(other)]
    for n in range(3):
        await engine.run(f"t{n}", "a")
    async with asyncio.TaskGroup() as group:
        tasks = [
            group.create_task(gate.try_enter(f"t{n}", THREAD, str(n), "a"))
            for n, gate in enumerate(gates)
        ]
    entered = [task.result().entered for task in tasks]
    kept = await states(database)
    assert entered.count(True) <= 1
    assert [state for state, _ in kept.values()].count("running") == entered.count(True)
    assert set(kept) == {"t0", "t1", "t2"}


async def test_a_turn_that_collides_with_another_one_waits_as_a_first_attempt(
    engine: Engine, tickets: Tickets, database: Database, other: Database
) -> None:
    for name in ("t1", "t2"):
        await engine.run(name, "a")
    running = {"id": "t1", "thread": THREAD, "ts": "1", "owner": "a", "state": "running"}
    async with asyncio.TaskGroup() as group, writing(other) as connection:
        await connection.execute(table.insert(), running)
        entering = group.create_task(tickets.try_enter("t2", THREAD, "2", "a"))
        await _until_a_writer_waits(database)
    assert entering.result() == Attempt(entered=False, is_first=True)
    assert await states(database) == {"t1": ("running", "a"), "t2": ("waiting", "a")}


async def _until_a_writer_waits(database: Database) -> None:
    """On PostgreSQL for the uncommitted ticket; SQLite makes the second writer wait for its turn."""
    waiting = "SELECT count(*) FROM pg_locks WHERE locktype = 'transactionid' AND NOT granted"
    asks = sa.text(waiting if database.dialect == "postgresql" else "SELECT 1")
    async with asyncio.timeout(10), reading(database) as connection:
        while not await connection.scalar(asks):  # noqa: ASYNC110 - the server's own state
            await asyncio.sleep(0.01)


IN_LINE = {
    "alone": (),
    "an older one waits": (("t1", THREAD, "1", "a"),),
    "an older one waits elsewhere": (("t1", THREAD, "1", "b"),),
    "a later one runs": (("t9", THREAD, "9", "b"),),
    "another thread is busy": (("t1", "T1:C1:other", "1", "b"),),
}


@pytest.mark.parametrize("running", [True, False], ids=["running", "waiting"])
@pytest.mark.parametrize("line", IN_LINE.values(), ids=IN_LINE.keys())
async def test_blocked_turns_are_those_whose_attempt_would_fail(
    engine: Engine,
    tickets: Tickets,
    database: Database,
    line: tuple[tuple[str, str, str, str], ...],
    running: bool,
) -> None:
    state = "running" if running else "waiting"
    places = [(*each, state) for each in line] + [("t5", THREAD, "5", "a", "waiting")]
    for name, thread, ts, owner, state in places:
        await engine.run(name, owner)
        place = {"id": name, "thread": thread, "ts": ts, "owner": owner, "state": state}
        async with writing(database) as connection:
            await connection.execute(table.insert(), place)

    blocked = await tickets.blocked("a")

    assert ("t5" in blocked) == (not (await tickets.try_enter("t5", THREAD, "5", "a")).entered)


@pytest.mark.parametrize(("executor", "status"), [("b", "PENDING"), ("a", "ENQUEUED")])
async def test_a_turn_that_lost_its_workflow_is_not_reported_as_blocked(
    engine: Engine, tickets: Tickets, executor: str, status: str
) -> None:
    for name, ts in (("t1", "1"), ("t2", "2")):
        await engine.run(name, "a")
        await tickets.try_enter(name, THREAD, ts, "a")
    assert await tickets.blocked("a") == {"t2"}
    await engine.run("t2", executor, status)

    assert await tickets.blocked("a") == set()
    with pytest.raises(Superseded):
        await tickets.try_enter("t2", THREAD, "2", "a")
