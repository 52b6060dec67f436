"""Real processes under the supervisor: who dies is started again, and one signal ends them all."""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import orjson
import pytest

from bot.upkeep.supervisor import MOST_FAILURES, RestartPolicy
from tests.sources import ROOT

POLICY = {"stop_s": 20.0, "steady_s": 60.0, "pause_s": 0.01, "longest_pause_s": 0.02}
TIMEOUT_S = 30.0


@dataclass
class Supervised:
    """What was said so far, and the supervisor."""

    process: asyncio.subprocess.Process
    said: list[str] = field(default_factory=list)

    async def hears(self, wanted: str) -> list[str]:
        """The words of the next line that begins so."""
        assert self.process.stdout is not None
        async with asyncio.timeout(TIMEOUT_S):
            while line := (await self.process.stdout.readline()).decode().strip():
                self.said.append(line)
                if line.startswith(wanted):
                    return line.split()
        raise EOFError(f"{wanted!r} was not said: {self.said}")

    async def serves(self) -> int:
        """The pid of the next one that does."""
        return int((await self.hears("serves"))[2])

    async def ended(self) -> int:
        assert self.process.stdout is not None
        async with asyncio.timeout(TIMEOUT_S):
            rest = await self.process.stdout.read()
            self.said += rest.decode().splitlines()
            return await self.process.wait()


@asynccontextmanager
async def supervised(
    folder: Path, plan: str, count: int = 2, **policy: float
) -> AsyncIterator[Supervised]:
    """A supervisor with toy workers, in a group of their own, which ends with the context."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-m", "tests.supervised", str(count), str(folder), plan),
        orjson.dumps({**POLICY, **policy}).decode(),
        cwd=ROOT,
        stdout=asyncio.subprocess.PIPE,
        start_new_session=True,
    )
    try:
        yield Supervised(process)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()


def starts(folder: Path) -> int:
    """How often a worker was started."""
    return len(list(folder.iterdir()))


async def test_a_stop_reaches_every_worker_and_all_end_well(tmp_path: Path) -> None:
    async with supervised(tmp_path, "serve", count=3) as run:
        await run.hears("ready")
        run.process.send_signal(signal.SIGTERM)

        assert await run.ended() == 0
        assert sorted(line for line in run.said if line.startswith("stopped")) == [
            "stopped 0",
            "stopped 1",
            "stopped 2",
        ]
        assert run.said.count("ready") == run.said.count("stopping") == 1


@pytest.mark.parametrize("again", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
async def test_more_signals_during_a_stop_change_nothing(tmp_path: Path, again: int) -> None:
    async with supervised(tmp_path, "serve") as run:
        await run.hears("ready")
        run.process.send_signal(signal.SIGTERM)
        run.process.send_signal(again)
        await run.hears("stopping")
        run.process.send_signal(again)

        assert await run.ended() == 0
        assert run.said.count("stopping") == 1


async def test_a_dead_worker_is_replaced(tmp_path: Path) -> None:
    async with supervised(tmp_path, "serve") as run:
        await run.serves()
        second = await run.serves()
        os.kill(second, signal.SIGKILL)
        number, started, _ = (await run.hears("serves"))[1:]

        assert (number, int(started) != second) == ("1", True)
        run.process.send_signal(signal.SIGTERM)
        assert await run.ended() == 0


async def test_a_failed_first_start_ends_all_with_its_code(tmp_path: Path) -> None:
    async with supervised(tmp_path, "exit:2") as run:
        assert await run.ended() == 2
        assert starts(tmp_path) == 1, "the others would say the same"


async def test_a_worker_that_cannot_start_is_retried_while_another_serves(
    tmp_path: Path,
) -> None:
    failing = " ".join(["exit:1"] * 3 * MOST_FAILURES)
    async with supervised(tmp_path, f"serve {failing} serve") as run:
        await run.hears("ready")
        run.process.send_signal(signal.SIGTERM)

        assert await run.ended() == 0
        assert starts(tmp_path) == 2 + 3 * MOST_FAILURES


async def test_a_repeatedly_failing_worker_is_abandoned_while_none_serves(tmp_path: Path) -> None:
    async with supervised(tmp_path, "fall:3", count=1) as run:
        assert await run.ended() == 3
        assert starts(tmp_path) == MOST_FAILURES


async def test_workers_stop_when_their_supervisor_is_killed(tmp_path: Path) -> None:
    async with supervised(tmp_path, "serve") as run:
        await run.hears("ready")
        run.process.send_signal(signal.SIGKILL)

        assert await run.ended() == -signal.SIGKILL
        assert {"stopped 0", "stopped 1"} <= set(run.said)


async def test_a_reload_is_passed_on_to_every_worker(tmp_path: Path) -> None:
    async with supervised(tmp_path, "serve") as run:
        await run.hears("ready")
        run.process.send_signal(signal.SIGHUP)
        heard = {(await run.hears("reload "))[1], (await run.hears("reload "))[1]}

        assert heard == {"0", "1"}


async def test_a_worker_started_after_a_reload_has_its_state(
    tmp_path: Path,
) -> None:
    async with supervised(tmp_path, "serve") as run:
        first, _ = await run.serves(), await run.serves()
        run.process.send_signal(signal.SIGHUP)
        await run.hears("reloaded 1")
        await run.hears("reloaded 1")
        os.kill(first, signal.SIGKILL)

        assert (await run.hears("serves"))[3] == "1"


async def test_a_worker_started_during_a_reload_reloads_too(
    tmp_path: Path,
) -> None:
    async with supervised(tmp_path, "gated dies serve") as run:
        await run.hears("ready")
        run.process.send_signal(signal.SIGHUP)
        await run.hears("dies")
        await run.hears("serves 1")
        (tmp_path / "go").touch()

        assert {(await run.hears("reload "))[1], (await run.hears("reload "))[1]} == {"0", "1"}


async def test_a_worker_that_does_not_stop_is_killed_and_counts_as_a_failure(
    tmp_path: Path,
) -> None:
    async with supervised(tmp_path, "deaf serve", stop_s=0.2) as run:
        await run.hears("ready")
        run.process.send_signal(signal.SIGTERM)

        assert await run.ended() == 1
        assert "stopped 1" in run.said


async def test_a_stop_during_the_first_start_ends_it(tmp_path: Path) -> None:
    async with supervised(tmp_path, "serve", count=2) as run:
        await run.serves()
        run.process.send_signal(signal.SIGTERM)

        assert await run.ended() == 0


async def test_a_machine_without_room_for_a_process_fails_the_start(tmp_path: Path) -> None:
    async with supervised(tmp_path, "crowded") as run:
        assert await run.ended() == 1
        assert starts(tmp_path) == 0


def test_pauses_grow_to_a_limit() -> None:
    policy = RestartPolicy()

    assert [policy.pause(failures) for failures in (0, 1, 2, 3, 6, 60)] == [0, 1, 2, 4, 30, 30]
