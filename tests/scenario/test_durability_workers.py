"""`kortex run --workers 2` on PostgreSQL: processes die and are stopped under a turn; it ends once."""

import os
import signal
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import orjson
import pytest
import sqlalchemy as sa
from aiohttp import ClientSession

from bot.store.tables import audit
from tests.scenario.durability.investigation import (
    AFTER_FIRST_TEXT,
    ALL_READ,
    ASK,
    ended_well,
    three_rounds,
)
from tests.scenario.durability.replica import TIMES
from tests.scenario.durability.workers import Workers, workers_of
from tests.scenario.durability.world import TIMEOUT_S, Asked, World, world_on

IMPATIENT = replace(TIMES, grace_s=0.2)


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with world_on("postgresql", tmp_path) as made:
        three_rounds(made)
        yield made


async def _in_the_last_round_of_the_first(world: World, workers: Workers) -> Asked:
    """A turn that the worker which was there first has under way."""
    hold = world.hold_round(ASK, 3, at=AFTER_FIRST_TEXT)
    with workers.only_first():
        asked = await world.ask(ASK)
        await hold.wait()
        await world.is_recorded(asked, ALL_READ)
    return asked


async def test_a_turn_of_a_killed_worker_continues_in_another(world: World) -> None:
    async with workers_of(world) as workers:
        await workers.serve()
        asked = await _in_the_last_round_of_the_first(world, workers)
        first, second = workers.pids()
        os.kill(first, signal.SIGKILL)
        await workers.gone([first])
        await ended_well(world, asked, round_again=3)
        await workers.serve()

        assert second in workers.pids()
        assert len(workers.pids()) == 2
        assert '"event":"worker.ended"' in workers.said()


async def test_a_restarted_worker_has_the_same_settings_as_the_others(world: World) -> None:
    async with workers_of(world) as workers:
        await workers.serve()
        with world.config.open("a") as file:
            file.write("\n[llm.budget]\ndaily_usd_limit = 1.0\n")
        first, _ = workers.pids()
        os.kill(first, signal.SIGKILL)
        started = sa.select(audit.c.body).where(audit.c.kind == "process.started")

        async def all_three() -> list[str]:
            bodies = [orjson.loads(row.body) for row in await world.rows(started)]
            return [str(body["digest"]) for body in bodies] if len(bodies) == 3 else []

        assert len(set(await world.until(all_three))) == 1
        assert '"needs_restart":["llm"]' in workers.said()


async def test_each_worker_has_its_own_port_for_probes_and_metrics(world: World) -> None:
    async with workers_of(world) as workers, ClientSession() as client:
        await workers.serve()
        ports = await workers.own_ports()
        ready = [await client.get(f"http://127.0.0.1:{port}/readyz") for port in ports]
        metrics = [await client.get(f"http://127.0.0.1:{port}/metrics") for port in ports]
        texts = [await answer.text() for answer in metrics]

        assert len(set(ports)) == 2
        assert [answer.status for answer in (*ready, *metrics)] == [200] * 4
        assert ["kortex_turns" in text for text in texts] == [True, True]


async def test_each_reloading_worker_is_named_in_its_row(world: World) -> None:
    async with workers_of(world) as workers:
        await workers.serve()
        os.kill(workers.pid, signal.SIGHUP)
        reloaded = sa.select(audit.c.body).where(audit.c.kind == "config.reloaded")

        async def both() -> list[int]:
            bodies = [orjson.loads(row.body) for row in await world.rows(reloaded)]
            return sorted(body["worker"] for body in bodies) if len(bodies) == 2 else []

        assert await world.until(both) == [0, 1]


async def test_a_stop_lets_the_turns_of_all_workers_end(world: World) -> None:
    async with workers_of(world) as workers:
        await workers.serve()
        asked = await _in_the_last_round_of_the_first(world, workers)
        os.kill(workers.pid, signal.SIGTERM)
        await world.workspace.wait_for(lambda: not world.workspace.sockets.connections, TIMEOUT_S)
        os.kill(workers.pid, signal.SIGTERM)
        world.open()

        assert await workers.ended() == 0
        await ended_well(world, asked)
        said = workers.said()
        assert said.count("stopping: no new work") == 1
        assert "Traceback" not in said


async def test_a_turn_interrupted_by_a_stop_continues_at_the_next_start(world: World) -> None:
    async with workers_of(world, IMPATIENT) as workers:
        await workers.serve()
        asked = await _in_the_last_round_of_the_first(world, workers)
        os.kill(workers.pid, signal.SIGTERM)

        assert await workers.ended() == 0
    async with workers_of(world):
        await ended_well(world, asked, round_again=3)


async def test_workers_drain_when_their_supervisor_is_killed(world: World) -> None:
    async with workers_of(world) as workers:
        await workers.serve()
        asked = await _in_the_last_round_of_the_first(world, workers)
        pids = workers.pids()
        os.kill(workers.pid, signal.SIGKILL)
        await world.workspace.wait_for(lambda: not world.workspace.sockets.connections, TIMEOUT_S)
        world.open()
        await workers.gone(pids)

        await ended_well(world, asked)


async def test_a_start_error_is_printed_once_and_ends_all_workers(world: World) -> None:
    text = world.config.read_text().replace(world.workspace.bot_token, "xoxb-nobody-s")
    world.config.write_text(text)
    async with workers_of(world) as workers:
        assert await workers.ended() == 2
        assert workers.said().count("kortex: slack.bot_token") == 1
