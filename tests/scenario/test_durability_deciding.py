"""Votes, edits and a freeze that race over two replicas in processes of their own, on PostgreSQL.

The two serve all tests of this module; each test has a thread and a proposal of its own. What is
to race is held at the proposal's row until both have come there, in the order that the test wants.
"""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass

import pytest
import pytest_asyncio
import sqlalchemy as sa

from bot.demo.workspace.delivery import Ack
from bot.demo.workspace.seeds import CHECKOUT, RESPONDER, SECOND_RESPONDER
from bot.store import tables
from tests.held_connection import writing
from tests.scenario.durability.deliveries import via, whispers
from tests.scenario.durability.postgres import no_decisions, queued
from tests.scenario.durability.replica import Replica
from tests.scenario.durability.world import BY_TWO, RESTART, Asked, World, world_on
from tests.stage import CONFIRM, EDIT

pytestmark = pytest.mark.asyncio(loop_scope="module")

MIRA, JONAS = RESPONDER, SECOND_RESPONDER
POSTS = ("control POST restart before", "control POST restart-by-two before")


@dataclass(slots=True)
class Pair:
    """Two replicas of one installation."""

    world: World
    a: Replica
    b: Replica

    @property
    def orders(self) -> int:
        """Orders that reached the control plane so far."""
        return sum(self.world.gates.passed[point] for point in POSTS)

    async def confirm(self, asked: Asked, user: str) -> Ack:
        card = self.world.from_bot(asked, "kortex_card")[0]
        return await self.world.workspace.click(user, card.ts, CONFIRM)

    async def edit_form(self, asked: Asked, user: str) -> str:
        """The id of the form that a press on Edit opened."""
        workspace = self.world.workspace
        before = len(workspace.modals_of(user))
        card = self.world.from_bot(asked, "kortex_card")[0]
        assert (await workspace.click(user, card.ts, EDIT)).ok
        views = await workspace.wait_for(lambda: workspace.modals_of(user)[before:])
        return str(views[-1]["id"])

    async def private_message(self, user: str, words: str) -> None:
        heard = self.world.workspace
        await heard.wait_for(lambda: any(words in w for w in whispers(self.world, user)), 20.0)

    async def proposals(self, asked: Asked) -> list[sa.Row[tuple[str]]]:
        """Those of the thread, oldest first."""
        mine = tables.proposals.c.thread_ts == asked.thread
        ordered = sa.select(tables.proposals).where(mine).order_by(tables.proposals.c.created_at)
        return list(await self.world.rows(ordered))

    async def votes(self, asked: Asked) -> int:
        (row, *_) = await self.proposals(asked)
        told = tables.audit.c.key.startswith(f"voted:{row.id}", autoescape=True)
        return len(await self.world.rows(sa.select(tables.audit.c.seq).where(told)))


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def pair(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Pair]:
    """Started once; starting them is most of what a test would take."""
    async with world_on("postgresql", tmp_path_factory.mktemp("pair")) as world:
        yield Pair(world, await world.start(), await world.start())


@pytest_asyncio.fixture(loop_scope="module", autouse=True)
async def _nothing_is_open(pair: Pair) -> None:
    """What another test left: the same order is proposed once in a channel."""
    async with writing(pair.world.database) as connection:
        table = tables.proposals
        open_ones = table.update().where(table.c.state == "pending")
        await connection.execute(open_ones.values(state="expired"))


async def test_two_approvers_at_once_are_two_votes_and_one_dispatch(pair: Pair) -> None:
    before = pair.orders
    asked = await pair.world.propose("two approvers", BY_TWO)
    async with asyncio.TaskGroup() as clicks, no_decisions(pair.world, asked):
        await via(pair.world, pair.a, pair.confirm(asked, MIRA), clicks)
        await queued(pair.world, 1)
        await via(pair.world, pair.b, pair.confirm(asked, JONAS), clicks)
        await queued(pair.world, 2)
    row = await pair.world.decided(asked, "succeeded")
    await pair.world.settled()
    assert (row.decided_by, await pair.votes(asked), pair.orders - before) == (JONAS, 2, 1)


async def test_one_approver_on_both_replicas_is_one_vote(pair: Pair) -> None:
    before = pair.orders
    asked = await pair.world.propose("one approver twice", BY_TWO)
    async with asyncio.TaskGroup() as clicks, no_decisions(pair.world, asked):
        await via(pair.world, pair.a, pair.confirm(asked, MIRA), clicks)
        await queued(pair.world, 1)
        await via(pair.world, pair.b, pair.confirm(asked, MIRA), clicks)
        await queued(pair.world, 2)
    await pair.private_message(MIRA, "You already confirmed it (1 of 2)")
    await pair.world.settled()
    (row,) = await pair.proposals(asked)
    assert (row.state, await pair.votes(asked), pair.orders) == ("pending", 1, before)


async def test_a_confirmation_before_an_edit_runs_the_shown_arguments(pair: Pair) -> None:
    asked = await pair.world.propose("confirm, then edit", BY_TWO)
    await pair.confirm(asked, JONAS)
    await pair.world.settled()
    before = pair.orders
    form = await pair.edit_form(asked, JONAS)
    async with asyncio.TaskGroup() as clicks, no_decisions(pair.world, asked):
        await via(pair.world, pair.a, pair.confirm(asked, MIRA), clicks)
        await queued(pair.world, 1)
        submit = pair.world.workspace.submit(JONAS, form, {"field:0": "v2"})
        await via(pair.world, pair.b, submit, clicks)
        await queued(pair.world, 2)
    await pair.private_message(JONAS, "Already confirmed by mira")
    await pair.world.settled()
    assert [row.state for row in await pair.proposals(asked)] == ["succeeded"]
    assert pair.orders - before == 1


async def test_an_edit_before_the_last_confirmation_dispatches_nothing(pair: Pair) -> None:
    asked = await pair.world.propose("edit, then confirm", BY_TWO)
    await pair.confirm(asked, JONAS)
    await pair.world.settled()
    before = pair.orders
    form = await pair.edit_form(asked, JONAS)
    async with asyncio.TaskGroup() as clicks, no_decisions(pair.world, asked):
        submit = pair.world.workspace.submit(JONAS, form, {"field:0": "v2"})
        await via(pair.world, pair.b, submit, clicks)
        await queued(pair.world, 1)
        await via(pair.world, pair.a, pair.confirm(asked, MIRA), clicks)
        await queued(pair.world, 2)
    await pair.private_message(MIRA, "superseded by a newer proposal, nothing was run")
    await pair.world.settled()
    old, new = await pair.proposals(asked)
    assert (old.state, new.state, new.params, new.votes) == (
        "superseded",
        "pending",
        '{"version":"v2"}',
        "[]",
    )
    assert pair.orders == before


@pytest_asyncio.fixture(loop_scope="module")
async def lifted(pair: Pair) -> AsyncIterator[None]:
    """Not frozen any more afterwards, for the other tests."""
    yield
    assert (await pair.world.workspace.command(MIRA, CHECKOUT, "freeze off")).ok


async def test_a_freeze_on_one_replica_stops_a_confirmation_on_the_other(
    pair: Pair, lifted: None
) -> None:
    before = pair.orders
    asked = await pair.world.propose("freeze", RESTART)
    async with asyncio.TaskGroup() as clicks, no_decisions(pair.world, asked):
        await via(pair.world, pair.b, pair.confirm(asked, JONAS), clicks)
        await queued(pair.world, 1)
        with pair.world.only(pair.a):
            ack = await pair.world.workspace.command(MIRA, CHECKOUT, "freeze on the sale is on")
        assert ack.ok
    row = await pair.world.decided(asked, "failed")
    await pair.world.settled()
    assert "every action is frozen" in row.outcome
    assert pair.orders == before
