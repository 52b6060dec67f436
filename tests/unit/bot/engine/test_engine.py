"""The engine itself, on both databases: what was accepted is carried on, in order, by who comes next."""

import asyncio

import pytest

from bot.store.tickets import Tickets
from tests.fixtures_engine import Lives, ask, lives

__all__ = ["lives"]


class SlowFirst(Tickets):
    """The first message's workflow comes late to its thread."""

    second_looked = asyncio.Event()

    async def try_enter(self, ticket: str, thread: str, ts: str, owner: str) -> bool:
        if ticket == ask(1).turn_id:
            await self.second_looked.wait()
        entered = await super().try_enter(ticket, thread, ts, owner)
        if ticket == ask(2).turn_id:
            self.second_looked.set()
        return entered


async def test_a_message_is_not_overtaken_by_a_later_one_whose_workflow_starts_first(
    lives: Lives,
) -> None:
    lives.tickets = SlowFirst
    SlowFirst.second_looked = asyncio.Event()
    async with lives.life() as engine:
        await engine.start_turn(ask(1))
        await engine.start_turn(ask(2))
        await lives.over()
    assert lives.ended == ["question 1", "question 2"]


async def test_six_kills_at_six_boundaries_lose_neither_the_turn_nor_who_waits_behind_it(
    lives: Lives,
) -> None:
    first, waits = ask(1), ask(2)
    for boundary in (0, 1, 2, 3, 4, 4):
        lives.die(first, boundary)
        async with lives.life() as engine:
            await engine.start_turn(first)
            await engine.start_turn(waits)
            await asyncio.wait_for(lives.died.wait(), 10)
    lives.die(None)
    async with lives.life():
        await lives.over()
    assert lives.ended == ["question 1", "question 2"]
    assert set(lives.ran.values()) == {1}
    assert lives.given_up == []


async def test_a_step_that_ended_its_process_three_times_is_given_up_by_name(lives: Lives) -> None:
    lives.die(ask(1), 1)
    for _ in range(3):
        lives.died.clear()
        async with lives.life() as engine:
            await engine.start_turn(ask(1))
            await asyncio.wait_for(lives.died.wait(), 10)
    lives.die(ask(1), 2)
    async with lives.life():
        await asyncio.wait_for(lives.died.wait(), 10)
    lives.die(None)
    async with lives.life() as engine:
        await engine.start_turn(ask(2))
        await lives.over()
    assert lives.given_up == ["question 1: round:1"] * 2  # and again by the replay
    assert lives.ran["question 1", "round:1"] == 0
    assert lives.ended == ["question 1", "question 2"]


@pytest.mark.parametrize("lives", ["sqlite"], indirect=True)
async def test_a_turn_that_is_handed_over_is_not_given_up(lives: Lives) -> None:
    for _ in range(4):
        lives.reached.clear()
        async with lives.life() as engine:
            lives.hold(ask(1), 1)
            await engine.start_turn(ask(1))
            await asyncio.wait_for(lives.reached.wait(), 10)
    lives.hold(None)
    async with lives.life():
        await lives.over()
    assert (lives.given_up, lives.ended) == ([], ["question 1"])
