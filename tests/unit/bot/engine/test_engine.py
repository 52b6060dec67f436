"""The engine itself, on both databases: what was accepted is carried on, in order, by who comes next."""

import asyncio

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
