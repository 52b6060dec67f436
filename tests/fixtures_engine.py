"""The durable engine in this process: turns of named steps, which die where a test says, and restarts."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TypeVar

import pytest
import sqlalchemy as sa
from blockbuster import BlockBuster
from dbos import DBOSConfig
from pydantic import JsonValue

from bot.app.rules import engine_database
from bot.domain.ids import ChannelId, MessageTs, Person, Place, ProposalId, TeamId, UserId
from bot.domain.session import Ask
from bot.engine.config import WORKFLOW_VERSION, EngineConfig
from bot.engine.engine import Engine, EngineRepositories
from bot.ports.durability import Journal
from bot.ports.failures import StepAbandoned
from bot.ports.proposals import Decision
from bot.store.database import Database
from bot.store.tables import tickets
from bot.store.tickets import Tickets
from tests.fixtures_database import new_database
from tests.held_connection import reading
from tools.redactor import Redacted

T = TypeVar("T")
PLACE = Place(TeamId("T1"), ChannelId("C1"), MessageTs("1700000000.000100"))
PERSON = Person(TeamId("T1"), UserId("U1"))
LEASE_S = 2.0
POLL_S = 0.1
TIMEOUT_S = 20.0
STEPS = ("open", "round:1", "keep", "deliver")


def ask(number: int) -> Ask:
    """The so-many-th message of one thread."""
    return Ask(
        PLACE, MessageTs(f"1700000000.00010{number}"), PERSON, Redacted(f"question {number}")
    )


@dataclass
class Lives:
    """One database and the processes that live on it, one after the other."""

    database: Database
    url: str
    ran: Counter[tuple[str, str]] = field(default_factory=Counter)  # steps, by ask
    ended: list[str] = field(default_factory=list)
    lost: list[tuple[str, bool]] = field(default_factory=list)  # ended without their body
    given_up: list[str] = field(default_factory=list)
    died: asyncio.Event = field(default_factory=asyncio.Event)
    reached: asyncio.Event = field(default_factory=asyncio.Event)
    _dies: tuple[Ask | None, int] = (None, 0)
    _held: tuple[Ask | None, int] = (None, 0)
    most_live: int = 0
    tickets: type[Tickets] = Tickets

    def die(self, ask: Ask | None, behind: int = 0) -> None:
        """From now on processes die at that turn, with so many steps behind it, also 0 and all."""
        self._dies = (ask, behind)
        self.died.clear()

    def hold(self, ask: Ask | None, behind: int = 0) -> None:
        """From now on that turn is frozen after so many steps."""
        self._held = (ask, behind)

    @asynccontextmanager
    async def life(self, version: str = WORKFLOW_VERSION) -> AsyncIterator[Engine]:
        """A process until the context ends, which it does without a word to anybody."""
        path = self.url.partition(":///")[2]
        sqlite = Path(path) if self.database.dialect == "sqlite" else None
        config = EngineConfig(
            engine_database(self.url), sqlite, LEASE_S, self.most_live, version=version
        )
        rows = replace(
            EngineRepositories.of(self.database, version), tickets=self.tickets(self.database)
        )
        engine, replicas = Engine(config, rows), rows.replicas
        async with AsyncExitStack() as stack:
            background = await stack.enter_async_context(asyncio.TaskGroup())
            await engine.start(
                background, self._turn, self._decision, self._lost, self._show_waiting
            )
            try:
                yield engine
            finally:
                await engine.stop(0)
                if sqlite is None:  # who dies leaves its row
                    await replicas.beat(engine.executor_id)
                    await replicas.give_up(engine.executor_id)

    async def over(self) -> None:
        """Until no turn waits or runs. Raises TimeoutError."""

        async def nobody() -> bool:
            async with reading(self.database) as connection:
                return (await connection.execute(sa.select(tickets))).first() is None

        await self.until(nobody)

    async def until(self, look: Callable[[], Awaitable[T]]) -> T:
        """The first truthy answer. Raises TimeoutError."""
        async with asyncio.timeout(TIMEOUT_S):
            while not (found := await look()):  # noqa: ASYNC110 - the engine's threads write
                await asyncio.sleep(0.01)
            return found

    async def _turn(self, ask: Ask, journal: Journal) -> None:
        await self._between(ask, 0)
        for behind, name in enumerate(STEPS, 1):

            async def run(name: str = name) -> JsonValue:
                self.ran[ask.text, name] += 1
                return None

            try:
                await journal.step(name, run)
            except StepAbandoned as error:
                self.given_up.append(f"{ask.text}: {error}")
            await self._between(ask, behind)
        self.ended.append(ask.text)

    async def _between(self, ask: Ask, behind: int) -> None:
        if self._held == (ask, behind):
            self.reached.set()
            await asyncio.Event().wait()
        if self._dies == (ask, behind):
            self.died.set()
            raise asyncio.CancelledError

    async def _lost(self, ask: Ask, told: bool, _journal: Journal) -> None:
        self.lost.append((ask.text, told))

    async def _decision(self, _id: ProposalId, _decision: Decision, _journal: Journal) -> None:
        raise AssertionError("nobody decides here")

    async def _show_waiting(self, _ask: Ask) -> None:
        raise AssertionError("nobody waits for a slot here")


@pytest.fixture(params=["sqlite", "postgresql"])
async def lives(
    request: pytest.FixtureRequest,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    _nothing_blocks_the_loop: BlockBuster,
) -> AsyncIterator[Lives]:
    """On a fresh database, once on each. Starting and stopping may block the loop."""
    _nothing_blocks_the_loop.deactivate()
    quick = partial(DBOSConfig, notification_listener_polling_interval_sec=POLL_S)
    monkeypatch.setattr("bot.engine.dbos_setup.DBOSConfig", quick)  # its end waits for this poll
    async with new_database(request.param, tmp_path) as url:
        database = await Database.open(url)
        yield Lives(database, url)
        await database.close()
