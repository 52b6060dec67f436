"""Decisions that race over two replicas: one wins, with at most one dispatch, and the rest are
informed.
"""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import sqlalchemy as sa

from bot.demo.workspace.delivery import Ack
from bot.demo.workspace.seeds import RESPONDER, SECOND_RESPONDER
from bot.store import tables
from tests.held_connection import writing
from tests.scenario.durability.deliveries import deliver_to_every, via, whispers
from tests.scenario.durability.postgres import expire, no_decisions, no_inserts, queued
from tests.scenario.durability.replica import Replica
from tests.scenario.durability.world import Asked, World, world_on

CONFIRM, REJECT = "proposal:confirm", "proposal:reject"
POST = "control POST restart before"
ASK = "restart it"
MIRA, JONAS = RESPONDER, SECOND_RESPONDER


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with world_on("postgresql", tmp_path) as made:
        yield made


@pytest.fixture
async def replicas(world: World) -> tuple[Replica, Replica]:
    return await world.start(), await world.start()


async def _confirm(world: World, asked: Asked, user: str, *, stale: bool = False) -> Ack:
    return await world.workspace.click(user, world.card(asked).ts, CONFIRM, stale=stale)


async def _reject_form(world: World, asked: Asked, user: str) -> str:
    """The id of the form that a press on Reject opened."""
    assert (await world.workspace.click(user, world.card(asked).ts, REJECT)).ok
    (view,) = await world.workspace.wait_for(lambda: world.workspace.modals_of(user))
    return str(view["id"])


async def _wait_for_whisper(world: World, user: str, words: str) -> None:
    await world.workspace.wait_for(lambda: any(words in w for w in whispers(world, user)), 20.0)


async def _ended(world: World, asked: Asked, *, state: str, posts: int) -> sa.Row[tuple[str]]:
    row = await world.decided(asked, state)
    await world.settled()
    assert world.gates.passed[POST] == posts
    assert len(world.from_bot(asked, "kortex_note")) == posts + (state == "expired")
    assert world.card(asked).action_ids == ("proposal:raw",)
    return row


async def test_two_approvers_who_confirm_at_once_dispatch_once(
    world: World, replicas: tuple[Replica, Replica]
) -> None:
    asked = await world.propose(ASK)
    async with asyncio.TaskGroup() as clicks, no_decisions(world, asked):
        await via(world, replicas[0], _confirm(world, asked, MIRA), clicks)
        await queued(world, 1)
        await via(world, replicas[1], _confirm(world, asked, JONAS), clicks)
        await queued(world, 2)
    row = await _ended(world, asked, state="succeeded", posts=1)
    await _wait_for_whisper(world, JONAS, "Already confirmed by mira")
    assert row.decided_by == MIRA
    assert whispers(world, MIRA) == []
    audit = await world.audit()
    assert audit["proposal.confirmed"] == audit["dispatch.intent"] == audit["click.refused"] == 1


async def test_a_click_that_two_replicas_get_at_once_is_one_decision(
    world: World, replicas: tuple[Replica, Replica]
) -> None:
    asked = await world.propose(ASK)
    deliver_to_every(world)
    async with asyncio.TaskGroup() as clicks, no_inserts(world, "dbos.workflow_status"):
        clicks.create_task(_confirm(world, asked, MIRA))
        await queued(world, 2)
    await _ended(world, asked, state="succeeded", posts=1)
    assert whispers(world, MIRA) == []
    assert (await world.audit())["click.refused"] == 0


async def test_a_confirmation_before_a_rejection_wins(
    world: World, replicas: tuple[Replica, Replica]
) -> None:
    asked = await world.propose(ASK)
    form = await _reject_form(world, asked, JONAS)
    async with asyncio.TaskGroup() as clicks, no_decisions(world, asked):
        await via(world, replicas[0], _confirm(world, asked, MIRA), clicks)
        await queued(world, 1)
        submit = world.workspace.submit(JONAS, form, {"text": "not now"})
        await via(world, replicas[1], submit, clicks)
        await queued(world, 2)
    row = await _ended(world, asked, state="succeeded", posts=1)
    await _wait_for_whisper(world, JONAS, "Already confirmed by mira")
    assert (row.decided_by, row.reason) == (MIRA, "")


async def test_a_rejection_before_a_confirmation_wins(
    world: World, replicas: tuple[Replica, Replica]
) -> None:
    asked = await world.propose(ASK)
    form = await _reject_form(world, asked, JONAS)
    async with asyncio.TaskGroup() as clicks, no_decisions(world, asked):
        submit = world.workspace.submit(JONAS, form, {"text": "not now"})
        await via(world, replicas[1], submit, clicks)
        await queued(world, 1)
        await via(world, replicas[0], _confirm(world, asked, MIRA), clicks)
        await queued(world, 2)
    await _wait_for_whisper(world, MIRA, "Already rejected by jonas")
    row = await _ended(world, asked, state="rejected", posts=0)
    assert (row.decided_by, row.reason) == (JONAS, "not now")


async def test_a_confirmation_that_expires_while_it_waits_does_nothing(
    world: World, replicas: tuple[Replica, Replica]
) -> None:
    asked = await world.propose(ASK)
    async with asyncio.TaskGroup() as clicks, no_decisions(world, asked) as connection:
        await via(world, replicas[0], _confirm(world, asked, MIRA), clicks)
        await queued(world, 1)
        await expire(connection, asked)
    await _wait_for_whisper(world, MIRA, "Already expired")
    await _ended(world, asked, state="expired", posts=0)


async def test_an_expiry_before_a_confirmation_wins(world: World) -> None:
    first = await world.start()
    asked = await world.propose(ASK)
    async with asyncio.TaskGroup() as clicks:
        async with writing(world.database) as connection:
            await expire(connection, asked)
        async with no_decisions(world, asked):
            second = clicks.create_task(world.start())  # it sweeps before anything else
            await queued(world, 1)
            await second
            await via(world, first, _confirm(world, asked, MIRA), clicks)
            await queued(world, 2)
    await _wait_for_whisper(world, MIRA, "Already expired")
    row = await _ended(world, asked, state="expired", posts=0)
    assert row.decided_by == "clock"


async def test_a_confirmation_before_the_expiry_wins(world: World) -> None:
    first = await world.start()
    asked = await world.propose(ASK)
    async with asyncio.TaskGroup() as clicks:
        async with writing(world.database) as connection:
            await expire(connection, asked, in_s=2.5)
        # The confirmation has taken the row and waits to write its place in the audit log.
        async with no_inserts(world, "audit"):
            await via(world, first, _confirm(world, asked, MIRA), clicks)
            await queued(world, 1)
            await world.until(lambda: _is_due(world, asked))
            clicks.create_task(world.start())  # it sweeps before anything else
            await queued(world, 2)
    row = await _ended(world, asked, state="succeeded", posts=1)
    assert row.decided_by == MIRA
    assert (await world.audit())["proposal.expired"] == 0


async def _is_due(world: World, asked: Asked) -> bool:
    mine = tables.proposals.c.thread_ts == asked.thread
    ((expires_at,),) = await world.rows(sa.select(tables.proposals.c.expires_at).where(mine))
    return bool(expires_at < await world.database.now())


async def test_a_click_after_the_decision_learns_the_outcome(
    world: World, replicas: tuple[Replica, Replica]
) -> None:
    asked = await world.propose(ASK)
    with world.only(replicas[0]):
        await _confirm(world, asked, MIRA)
    await _ended(world, asked, state="succeeded", posts=1)
    with world.only(replicas[1]):
        assert (await _confirm(world, asked, JONAS, stale=True)).ok
    await _wait_for_whisper(world, JONAS, "Already confirmed by mira")
    await _ended(world, asked, state="succeeded", posts=1)
