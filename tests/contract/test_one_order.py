"""One order is one order on both databases and two replicas: races that are forced, kills, tenants."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime

import pytest
import sqlalchemy as sa

from bot.domain.audit import AuditEvent, AuditKind
from bot.domain.ids import ChannelId, ProposalId, TeamId, UserId
from bot.domain.proposal import LIFETIME, Proposal, ProposalState
from bot.ports.proposals import Decision, Departure
from bot.store.database import Database
from bot.store.dialect import lock_order
from bot.store.proposals import StoredProposals
from tests.click_race import of_database
from tests.fakes.control_plane import FakeControlPlane
from tests.fakes.journal import Crash, Fuse, MemoryJournal
from tests.fixtures_actions import ROLLBACK, confirm
from tests.fixtures_database import database, database_url, other
from tests.fixtures_stores import installed_too
from tests.held_connection import reading, writing
from tests.slack_ingress import proposal

__all__ = ["database", "database_url", "other"]

S = ProposalState
KILLS = range(4, 76, 3)


def event(kind: AuditKind, row: ProposalId, word: str) -> AuditEvent:
    return AuditEvent(kind, "U1", {"proposal": row}, key=f"{row}:{word}")


async def raised(database: Database, number: int, team: str = "T1", **changes: str) -> Proposal:
    now = datetime.now(UTC)
    pending = proposal(**changes)
    place = replace(pending.place, team=TeamId(team), channel=ChannelId(f"C{number}"))
    row = replace(
        pending,
        id=ProposalId(f"p-{number}"),
        place=place,
        created_at=now,
        expires_at=now + LIFETIME,
    )
    created = event(AuditKind.PROPOSAL_CREATED, row.id, "created")
    return await StoredProposals(database).create(row, created)


async def confirmed(database: Database, number: int, team: str = "T1") -> Proposal:
    row = await raised(database, number, team)
    decision = Decision(S.CONFIRMED, UserId("U2"), f"click-{number}")
    kept = event(AuditKind.PROPOSAL_CONFIRMED, row.id, "confirmed")
    await StoredProposals(database).decide(row.id, decision, kept)
    return row


async def begun(database: Database, row: Proposal) -> Departure:
    intent = event(AuditKind.DISPATCH_INTENT, row.id, "intent")
    return await StoredProposals(database).begin_dispatch(row.id, intent)


async def ended(database: Database, row: Proposal, state: S, outcome: str = "{}") -> None:
    over = event(AuditKind.DISPATCH_OUTCOME, row.id, "outcome")
    assert await StoredProposals(database).advance(row.id, S.DISPATCHING, state, outcome, over)


async def pressed(database: Database, row: Proposal, control: FakeControlPlane, *at: int) -> None:
    """Confirmed and carried out by a replica, which dies at that moment and is taken over."""
    journal = MemoryJournal()
    for fuse in (*map(Fuse, at), Fuse()):
        journal = journal.resumed(fuse)
        try:
            process = of_database(database, (ROLLBACK,), control).decide(fuse)
            await process.run(row.id, confirm(row), journal)
        except Crash:
            continue


async def states(database: Database, rows: Sequence[Proposal]) -> list[ProposalState]:
    found = [await StoredProposals(database).get(row.id) for row in rows]
    return sorted(row.state for row in found if row is not None)


async def test_equal_cards_confirmed_at_once_on_two_replicas_are_sent_once(
    database: Database, other: Database
) -> None:
    control = FakeControlPlane()
    rows = [await raised(database, number) for number in range(6)]

    async with asyncio.TaskGroup() as group:
        for number, row in enumerate(rows):
            group.create_task(pressed((database, other)[number % 2], row, control))

    assert len(control.posts) == 1
    assert await states(database, rows) == [S.SUCCEEDED, *[S.SUPERSEDED] * 5]


async def test_two_equal_dispatches_that_passed_every_guard_run_one_after_the_other(
    database: Database, other: Database
) -> None:
    rows = [await confirmed(database, number) for number in range(2)]
    assert [await StoredProposals(database).same_order(row.id) for row in rows] == [None, None]

    async with writing(database) as holder:
        await lock_order(holder, rows[0].digest)
        both = [
            asyncio.create_task(begun(on, row))
            for on, row in zip((database, other), rows, strict=True)
        ]
        await _both_wait(database)
    departures = await asyncio.gather(*both)

    assert sorted(each.is_ours for each in departures) == [False, True]
    (refused,) = [each for each in departures if not each.is_ours]
    assert refused.same is not None
    assert refused.same.state is S.DISPATCHING


async def _both_wait(database: Database) -> None:
    """On PostgreSQL until both ask for the lock; on SQLite the one writer is the lock."""
    waiting = {
        "postgresql": "SELECT count(*) = 2 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted",
        "sqlite": "SELECT 1",
    }[database.dialect]
    async with asyncio.timeout(20), reading(database) as connection:
        while not await connection.scalar(sa.text(waiting)):  # noqa: ASYNC110 - a database's lock
            await asyncio.sleep(0.01)


@pytest.mark.parametrize("moment", KILLS)
async def test_a_kill_between_any_two_records_sends_no_second_dispatch(
    database: Database, other: Database, moment: int
) -> None:
    control = FakeControlPlane()
    first, second = [await raised(database, number) for number in range(2)]

    await pressed(database, first, control, moment)
    await pressed(other, second, control)

    assert len(control.posts) <= 1
    end = await states(database, [first, second])
    assert end in ([S.SUCCEEDED, S.SUPERSEDED], [S.SUPERSEDED, S.UNKNOWN])


async def test_a_dispatch_killed_after_its_intent_blocks_its_equal_until_it_ended(
    database: Database, other: Database
) -> None:
    first, second = [await confirmed(database, number) for number in range(2)]
    assert (await begun(database, first)).is_ours  # and the process is gone

    assert (await begun(other, second)).same is not None
    await ended(other, first, S.UNKNOWN)
    refused = await begun(other, second)
    later = await confirmed(other, 3)

    assert refused.same is not None
    assert refused.same.state is S.UNKNOWN
    assert (await begun(other, later)).is_ours


@pytest.mark.parametrize("state", [S.SUCCEEDED, S.FAILED, S.UNKNOWN])
async def test_an_equal_raised_before_that_end_is_refused_and_after_it_sent(
    database: Database, state: ProposalState
) -> None:
    first = await confirmed(database, 1)
    await begun(database, first)
    meanwhile = await confirmed(database, 2)
    await ended(database, first, state)
    after = await confirmed(database, 3)

    assert (await begun(database, meanwhile)).same is not None
    assert (await begun(database, after)).is_ours


async def test_a_clock_set_back_sends_no_second_dispatch(database: Database) -> None:
    first, second = [await confirmed(database, number) for number in range(2)]
    await begun(database, first)
    await ended(database, first, S.SUCCEEDED)
    async with writing(database) as connection:
        # As if it had gone out an hour before the second was raised.
        await connection.execute(
            sa.text("UPDATE proposals SET dispatched_at = dispatched_at - 3600000000")
        )

    assert (await begun(database, second)).same is not None


async def test_a_dispatch_refused_by_the_last_guard_blocks_no_other(database: Database) -> None:
    first, second = [await confirmed(database, number) for number in range(2)]
    await begun(database, first)
    await ended(database, first, S.FAILED, '{"error":"not sent","guard":"freeze"}')

    assert (await begun(database, second)).is_ours


async def test_the_same_dispatch_in_another_tenant_is_another_dispatch(
    database: Database,
) -> None:
    await installed_too(database, "T2")
    home, of_other, over_http = [
        await confirmed(database, number, team) for number, team in enumerate(("T1", "T2", "@http"))
    ]

    assert (await begun(database, home)).is_ours
    assert (await begun(database, of_other)).is_ours
    assert (await begun(database, over_http)).same is not None


async def test_another_product_or_parameter_is_another_dispatch(database: Database) -> None:
    first = await confirmed(database, 1)
    assert (await begun(database, first)).is_ours
    same = [
        await StoredProposals(database).same_order(
            (await raised(database, 2, digest="00ff", params='{"version":"v1"}')).id
        ),
        await StoredProposals(database).same_order((await raised(database, 3, product="web")).id),
        await StoredProposals(database).same_order((await raised(database, 4)).id),
    ]
    assert [each and each.id for each in same] == [None, None, first.id]


async def test_equal_proposals_raised_at_once_in_one_channel_are_stored_once(
    database: Database, other: Database
) -> None:
    async def create(number: int, on: Database) -> Proposal:
        now = datetime.now(UTC)
        name = ProposalId(f"p-{number}")
        row = replace(proposal(), id=name, created_at=now, expires_at=now + LIFETIME)
        return await StoredProposals(on).create(
            row, event(AuditKind.PROPOSAL_CREATED, name, "created")
        )

    stored = await asyncio.gather(*(create(n, (database, other)[n % 2]) for n in range(6)))
    first = stored[0]
    await StoredProposals(database).decide(
        first.id,
        Decision(S.CONFIRMED, UserId("U2"), "click"),
        event(AuditKind.PROPOSAL_CONFIRMED, first.id, "c"),
    )
    meanwhile = await create(7, other)
    await begun(database, first)
    running = await create(8, other)
    await ended(database, first, S.SUCCEEDED)
    after = await create(9, other)

    assert {row.id for row in (*stored, meanwhile, running)} == {first.id}
    assert after.id == "p-9"


async def test_open_equal_proposals_are_retired_together_and_each_is_audited(
    database: Database,
) -> None:
    store = StoredProposals(database)
    first, *others = [await raised(database, number) for number in range(3)]
    different = await raised(database, 4, digest="00ff", params='{"version":"v1"}')
    assert await store.retire_same(first.id, "{}", _retired) == []
    decision = Decision(S.CONFIRMED, UserId("U2"), "click")
    await store.decide(first.id, decision, event(AuditKind.PROPOSAL_CONFIRMED, first.id, "c"))
    await begun(database, first)

    retired = await store.retire_same(first.id, '{"guard":"one_order"}', _retired)

    assert sorted(retired) == [row.id for row in others]
    over = await store.get(others[0].id)
    assert over is not None
    assert (over.state, over.outcome, over.decided_by) == (
        S.SUPERSEDED,
        '{"guard":"one_order"}',
        None,
    )
    assert over.decided_at is not None
    assert await states(database, [different]) == [S.PENDING]
    assert await store.retire_same(first.id, "{}", _retired) == []


def _retired(row: Proposal) -> AuditEvent:
    return event(AuditKind.PROPOSAL_SUPERSEDED, row.id, "superseded")
