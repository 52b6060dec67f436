"""Presses at once over two replicas: never more than one effect, nor more than the limit allows.

`make bench` plays a thousand rounds of twenty presses on each database.
"""

import asyncio
from dataclasses import replace

from bot.domain.proposal import ProposalState
from bot.ports.proposals import Decision
from bot.store.database import Database
from bot.store.proposals import StoredProposals
from tests.click_race import holds, of_database, race, stored_row
from tests.fakes.control_plane import FakeControlPlane
from tests.fakes.journal import MemoryJournal
from tests.fixtures_actions import ROLLBACK, confirm
from tests.fixtures_database import database, database_url, other

__all__ = ["database", "database_url", "other"]

ROUNDS = 4


async def test_twenty_presses_at_once_have_at_most_one_effect(
    database: Database, other: Database
) -> None:
    rounds = [await race((database, other), number) for number in range(ROUNDS)]

    unopposed = await race((database, other), ROUNDS, rejecting=0)

    assert [found for found in (*rounds, unopposed) if not holds(found)] == []
    assert unopposed.effects == 1


async def test_dispatches_at_once_on_two_replicas_respect_the_rate_limit_after_a_restart(
    database: Database, other: Database
) -> None:
    control = FakeControlPlane()
    rules = (replace(ROLLBACK, rate_limit="3/10m"),)
    versions = [f'{{"version":"v{number}"}}' for number in range(7)]
    rows = [await stored_row(database, n, params=given) for n, given in enumerate(versions)]

    async def decided(on: Database, number: int) -> None:
        decision: Decision = confirm(rows[number])
        process = of_database(on, rules, control).decide()
        await process.run(rows[number].id, decision, MemoryJournal())

    await decided(database, 0)
    assert len(control.posts) == 1
    async with asyncio.TaskGroup() as group:
        for number in range(1, 6):
            group.create_task(decided((database, other)[number % 2], number))
    assert len(control.posts) <= 3

    await decided(other, 6)  # by a process that has just begun
    after = [await StoredProposals(database).get(row.id) for row in rows]
    states = [row.state for row in after if row is not None]
    assert len(control.posts) <= 3
    assert states.count(ProposalState.SUCCEEDED) == len(control.posts)
    assert states.count(ProposalState.FAILED) == 7 - len(control.posts)
