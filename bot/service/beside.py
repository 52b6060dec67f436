"""The loop beside that of the answers: Slack's deliveries arrive there, and messages are made durable."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial

from bot.app import Base
from bot.engine.admission import Admission
from bot.engine.engine import Engine
from bot.ports.loops import OtherLoop
from bot.ports.right_of_way import GivingLoop, RightOfWay
from bot.service.loop_thread import loop_thread
from bot.store.accepted import Accepted
from bot.store.database import Database


@dataclass(frozen=True, slots=True)
class Beside:
    """`loop` is it, `home` that of the answers. All else is the former's own."""

    loop: OtherLoop
    home: OtherLoop
    database: Database
    accepted: Accepted
    admission: Admission

    async def rehearse(self) -> None:
        """Once the engine runs, which makes its tables: what the first message would wait for."""
        await self.loop.run(self.accepted.rehearse())


@asynccontextmanager
async def beside_answers(base: Base, engine: Engine) -> AsyncIterator[Beside]:
    """It runs until the body ends; what is asked of it has to have ended by then."""
    home = OtherLoop(asyncio.get_running_loop())
    async with loop_thread("deliveries") as loop:
        opening = base.stores.database.beside()
        database = await loop.run(opening.__aenter__())
        try:
            # SQLite computes in this process; PostgreSQL is mostly waited for.
            gives = database.dialect == "sqlite"
            accepted = Accepted(database, _given_by(home.loop) if gives else None)
            admission = engine.admission(
                accepted,
                lambda ask, taken: home.soon(partial(engine.begin_turn, ask, taken)),
            )
            yield Beside(loop, home, database, accepted, admission)
        finally:
            await loop.run(opening.__aexit__(None, None, None))


def _given_by(loop: asyncio.AbstractEventLoop) -> RightOfWay | None:
    return loop.right_of_way if isinstance(loop, GivingLoop) else None
