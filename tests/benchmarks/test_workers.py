"""Workers on a real PostgreSQL: what two of them carry over one, and 500 questions in ten seconds.

Slack and the model are processes of their own on the same machine, so that two workers on two cores
share those with them: read turns a CPU second beside turns a second.
"""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.benchmarks.bot_run import CONFIGURATION
from tests.benchmarks.child import ROOT, Child, child
from tests.benchmarks.figures import quantile, ratios, show, spread
from tests.fixtures_database import postgres_server

pytestmark = [pytest.mark.benchmark, pytest.mark.timeout(900)]

SQLITE = 'url = "sqlite+aiosqlite:///${FOLDER}/kortex.db"'
TICKS = os.sysconf("SC_CLK_TCK")
SPEED = 10  # Slack's minute is six seconds, on both sides
TURNS, STREAMS, PACE_MS, PAIRS = 40, 20, 5, 2  # of each worker
# Each worker asks Slack about each channel once in five minutes, of 50 such calls a minute.
QUESTIONS, ASKED_IN_S, CHANNELS = 500, 10.0, 20
ACKNOWLEDGED_S = 1.0


@dataclass
class Service:
    """A supervisor and its workers."""

    process: asyncio.subprocess.Process

    def workers(self) -> Sequence[Path]:
        """Their folders in /proc."""
        path = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        return [Path("/proc") / pid for pid in path.read_text(encoding="ascii").split()]

    def cpu_s(self) -> list[float]:
        """What each worker used so far."""
        stats = [(each / "stat").read_text().rpartition(")")[2].split() for each in self.workers()]
        return [(int(stat[11]) + int(stat[12])) / TICKS for stat in stats]

    def pss_mb(self) -> float:
        """Of all, with what they share counted once."""
        folders = [*self.workers(), Path(f"/proc/{self.process.pid}")]
        rollups = [(each / "smaps_rollup").read_text().splitlines() for each in folders]
        lines = [line for rollup in rollups for line in rollup if line.startswith("Pss:")]
        return sum(int(line.split()[1]) for line in lines) * 1024 / 1e6


@asynccontextmanager
async def database() -> AsyncIterator[str]:
    """As a deployment has it: every commit reaches the disk."""
    server = postgres_server()
    await server.execute("ALTER SYSTEM SET fsync = on")
    await server.execute("SELECT pg_reload_conf()")
    async with server.new_database(migrated=True) as url:
        yield url


@asynccontextmanager
async def workers(
    count: int, folder: Path, model: Child, slack: Child, pace_ms: int, speed: int
) -> AsyncIterator[Service]:
    """They serve on a fresh database, and Slack sends them signed events."""
    url = model.ready["url"]
    async with database() as database_url, child("ack_process") as floor:
        text = CONFIGURATION.replace(SQLITE, f'url = "{database_url}"')
        for name, value in {
            "MODEL": f"{url}/pace/{pace_ms}",
            "LOKI": url,
            "BOT_TOKEN": slack.ready["bot_token"],
            "SIGNING_SECRET": slack.ready["signing_secret"],
            "API_BASE_URL": slack.ready["api_base_url"],
        }.items():
            text = text.replace(f"${{{name}}}", value)
        config = folder / f"{count}-{os.urandom(4).hex()}.toml"
        await asyncio.to_thread(config.write_text, text)
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "tests.benchmarks.workers_run", str(count), config, str(speed),
            cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        try:
            port = await _port(process)
            own = f"http://127.0.0.1:{port}/slack/events"
            await slack.call("deliver_to", url=own, floor=floor.ready["url"])
            yield Service(process)
        finally:
            process.send_signal(signal.SIGTERM)
            await process.communicate()
        assert process.returncode == 0


async def _port(process: asyncio.subprocess.Process) -> int:
    """Where they listen, once all serve. The rest of what they say is read for as long as they run."""
    assert process.stdout is not None
    async with asyncio.timeout(60):
        while line := (await process.stdout.readline()).decode():
            if line.startswith("kortex is serving"):
                return int(line.rpartition(":")[2].partition("/")[0])
    raise EOFError("they did not start")


async def measured(service: Service, slack: Child, streams: int, turns: int, asked_s: float) -> Any:
    """One load, what it cost the workers, and how even they had it."""
    before = service.cpu_s()
    found = await slack.call(
        "load",
        streams=streams,
        turns=turns,
        stagger_s=asked_s / streams,
        timeout_s=800.0,
        channels=CHANNELS,
    )
    used = [after - at for after, at in zip(service.cpu_s(), before, strict=True)]
    return {**found, "cpu_s": sum(used), "least_share": min(used) / sum(used)}


def whole(found: Any, turns: int) -> bool:
    """Whether every question has its one right answer and Slack refused nothing."""
    answered = len(found["done"]) == turns and not found["wrong"]
    return answered and not found["limited"] and not found["errors"]


async def test_two_workers_over_one(tmp_path: Path) -> None:
    """As many questions at a time for each as keep it busy, one worker and two in turn."""
    runs: dict[int, list[Any]] = {1: [], 2: []}
    async with child("model_process") as model, child("slack_process", "unlimited", 1) as slack:
        for _ in range(PAIRS):
            for count, kept in runs.items():
                async with workers(count, tmp_path, model, slack, PACE_MS, 0) as service:
                    await measured(service, slack, count * 4, count * 4, 0.0)
                    turns = count * TURNS
                    found = await measured(service, slack, count * STREAMS, turns, 1.0)
                    kept.append({**found, "turns": turns, "whole": whole(found, turns)})
    one, two = ([run["turns"] / run["wall_s"] for run in runs[count]] for count in (1, 2))
    cheap = [[run["turns"] / run["cpu_s"] for run in runs[count]] for count in (1, 2)]
    cores = [[run["cpu_s"] / run["wall_s"] for run in runs[count]] for count in (1, 2)]
    show(
        f"two workers over one, {STREAMS} streams each, A B A B, load {os.getloadavg()[0]:.1f}",
        turns_a_second_over_one_target_1_8=spread(ratios(two, one)),
        turns_a_second_one=spread(one),
        turns_a_second_two=spread(two),
        turns_a_cpu_second_over_one=spread(ratios(cheap[1], cheap[0])),
        turns_a_cpu_second_one=spread(cheap[0]),
        turns_a_cpu_second_two=spread(cheap[1]),
        cores_that_one_had=spread(cores[0]),
        cores_that_two_had=spread(cores[1]),
        least_share_of_two=spread([run["least_share"] for run in runs[2]]),
    )

    assert all(run["whole"] for kept in runs.values() for run in kept)


async def test_five_hundred_questions_in_ten_seconds(tmp_path: Path) -> None:
    """Two workers under Slack's real limits, whose clock runs faster on both sides."""
    async with (
        child("model_process") as model,
        child("slack_process", "real", SPEED) as slack,
        workers(2, tmp_path, model, slack, 50, SPEED) as service,
    ):
        found = await measured(service, slack, QUESTIONS, QUESTIONS, ASKED_IN_S)
        show(
            f"{QUESTIONS} questions in {ASKED_IN_S:.0f} s, two workers, Slack's limits x{SPEED}, "
            f"load {os.getloadavg()[0]:.1f}",
            answered=str(len(found["done"])),
            rate_limited=str(found["limited_by"] or 0),
            ack_p50_ms=f"{quantile(found['acks_s'], 0.5) * 1e3:.0f}",
            ack_p99_ms_target_1000=f"{quantile(found['acks_s'], 0.99) * 1e3:.0f}",
            floor_ack_p99_ms=f"{quantile(found['floor_acks_s'], 0.99) * 1e3:.0f}",
            late_acknowledgements=str(found["late"]),
            never_acknowledged=str(found["unacknowledged"]),
            last_final_s=f"{found['wall_s']:.0f}",
            cpu_ms_per_turn=f"{found['cpu_s'] / QUESTIONS * 1e3:.0f}",
            least_share_of_two=f"{found['least_share']:.2f}",
            pss_of_all_mb=f"{service.pss_mb():.0f}",
        )

    assert whole(found, QUESTIONS)
