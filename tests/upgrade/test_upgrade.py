"""An upgrade in the midst of work: the release before on the new schema, and what it leaves to this one.

`make test-upgrade`.
"""

import asyncio
import signal
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
import sqlalchemy as sa
from blockbuster import BlockBuster

from bot.audit.chain import AuditKeys
from bot.demo.workspace.seeds import RESPONDER
from bot.store import schema, tables
from bot.store.audit_reading import StoredAuditReader, verify
from tests.fakes.model_server import Round
from tests.scenario.durability.deliveries import ask_via
from tests.scenario.durability.replica import TIMES
from tests.scenario.durability.world import Asked, World, logs_of, world_on
from tests.upgrade.release import Release, build

pytestmark = [pytest.mark.upgrade, pytest.mark.timeout(300)]

IN_FLIGHT = ("alpha question", "beta question")
SLOW = replace(TIMES, lease_s=6.0)  # as the release before has it: both judge each other


@pytest.fixture(autouse=True)
def _starting_may_block(_nothing_blocks_the_loop: BlockBuster) -> None:
    _nothing_blocks_the_loop.deactivate()


def scripts(world: World) -> None:
    for name in IN_FLIGHT:
        world.scripts[name] = [
            Round(text=(f"Looking for {name}.",), calls=(logs_of("checkout"),)),
            Round(text=(f"Looking again for {name}.",), calls=(logs_of("web"),)),
            Round(text=(f"Final of {name}.",)),
        ]
    for name in ("gamma question", "delta question"):
        world.scripts[name] = [Round(text=(f"Final of {name}.",))]


async def answered(world: World, asked: Asked, name: str) -> None:
    await world.shows(asked, f"Final of {name}.")
    (answer,) = world.answers(asked)
    assert answer.text.count(f"Final of {name}.") == 1


async def test_work_of_the_previous_release_continues_in_this_one(tmp_path: Path) -> None:
    packages = await asyncio.to_thread(build, tmp_path)
    async with world_on("postgresql", tmp_path, migrated=False) as world:
        scripts(world)
        release = Release(packages, world)
        assert await (await release.kortex("migrate")).wait() == 0
        before = await world.database.schema_head()
        killed, stopped = await release.start(), await release.start()
        proposed = await world.propose("propose a restart")
        holds = [world.hold_round(name, 2, at=3) for name in IN_FLIGHT]
        alpha = await ask_via(world, killed, IN_FLIGHT[0])
        beta = await ask_via(world, stopped, IN_FLIGHT[1])
        for hold in holds:
            await hold.wait()

        # Under their turns.
        assert await schema.migrate(world.database_url) == schema.head() != before
        gamma = await world.ask("gamma question")
        await answered(world, gamma, "gamma question")
        fresh = await world.start(SLOW)
        await world.kill(killed)
        await answered(world, alpha, IN_FLIGHT[0])
        stopped.signal(signal.SIGTERM)
        assert await stopped.ended() == 0
        await answered(world, beta, IN_FLIGHT[1])

        assert fresh.executor
        await world.workspace.click(RESPONDER, world.card(proposed).ts, "proposal:confirm")
        await world.decided(proposed, "succeeded")
        delta = await world.ask("delta question", alpha.thread)
        await answered(world, delta, "delta question")
        await world.settled()

        paid_again = Counter({(name, 2): 1 for name in IN_FLIGHT})
        once = Counter({(name, each): 1 for name in IN_FLIGHT for each in (1, 2, 3)})
        asked = Counter({key: n for key, n in world.rounds.items() if key[0] in IN_FLIGHT})
        assert asked == once + paid_again  # what was under way, and no finished round
        assert world.gates.passed["control POST restart before"] == 1
        states = await world.rows(sa.select(tables.turns.c.state).distinct())
        assert [state for (state,) in states] == ["answered"]
        found = await verify(StoredAuditReader(world.database), AuditKeys(), [])
        assert found.bad is None
        print(f"\n{dict(world.rounds)}; {found.rows} audit rows are valid; {before} -> new head")  # noqa: T201
