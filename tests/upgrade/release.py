"""The release before: its wheel, built from its commit, and replicas of it."""

import asyncio
import os
import signal
import subprocess
import sys
import tarfile
from io import BytesIO
from pathlib import Path

import sqlalchemy as sa

from bot.store import tables
from tests.scenario.durability.replica import Replica
from tests.scenario.durability.world import World

# The commit that dated the section of the CHANGELOG before the newest; move it with every release.
RELEASE = "0b681d1ac5c349485e28cf92b140e48a788eb061"  # 0.1.0
ROOT = Path(__file__).parents[2]
# Settings that it does not know.
_NEWER = ("first_look = ",)
START_S = 40.0


def build(folder: Path) -> Path:
    """Where its packages lie, from its wheel; they run with this checkout's dependencies."""
    source, wheels, installed = (folder / name for name in ("source", "wheels", "installed"))
    archive = subprocess.run(["git", "archive", RELEASE], cwd=ROOT, check=True, capture_output=True)
    with tarfile.open(fileobj=BytesIO(archive.stdout)) as files:
        files.extractall(source, filter="data")
    hatch = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(wheels)]
    subprocess.run(hatch, cwd=source, check=True, capture_output=True)
    (wheel,) = wheels.glob("*.whl")
    pip = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-index", "--target"]
    subprocess.run([*pip, str(installed), str(wheel)], check=True, capture_output=True)
    return installed


class OldReplica(Replica):
    """A process of that release."""

    def __init__(self, process: asyncio.subprocess.Process, world: World) -> None:
        self._command = process
        self._world = world
        self.executor = ""

    async def serves(self) -> None:
        """Until its lease is there. Raises TimeoutError."""
        known = {each.executor for each in self._world.replicas}

        async def beats() -> str | None:
            rows = await self._world.rows(sa.select(tables.replicas.c.id))
            return next((row[0] for row in rows if row[0] not in known), None)

        self.executor = await self._world.until(beats, START_S)

    @property
    def pid(self) -> int:
        """Of the process."""
        return self._command.pid

    async def ended(self, timeout_s: float = 40.0) -> int:
        """Its exit code, once it has ended. Raises TimeoutError."""
        async with asyncio.timeout(timeout_s):
            return await self._command.wait()

    async def kill(self) -> None:
        """SIGKILL; returns when it is gone."""
        if self._command.returncode is None:
            self.signal(signal.SIGKILL)
            await self.ended()


class Release:
    """That release, in the world of a test."""

    def __init__(self, packages: Path, world: World) -> None:
        self._packages = packages
        self._world = world
        self._config = world.folder / "before.toml"
        lines = world.config.read_text(encoding="utf-8").splitlines()
        kept = [line for line in lines if not line.startswith(_NEWER)]
        text = "\n".join(kept).replace(
            '"postgresql://', '"postgresql+asyncpg://'
        )  # as it was named
        self._config.write_text(text, encoding="utf-8")

    async def kortex(self, *arguments: str) -> asyncio.subprocess.Process:
        """A command of it that has just begun."""
        with (self._world.folder / "before.log").open("ab") as log:
            return await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "bot", *arguments, "--config", str(self._config)),
                cwd=self._packages,
                env={**os.environ, "PYTHONPATH": str(self._packages), "PYTHONSAFEPATH": "1"},
                stdout=log,
                stderr=log,
            )

    async def start(self) -> OldReplica:
        """Start a replica and wait until Slack can reach it."""
        started = OldReplica(await self.kortex("run"), self._world)
        self._world.replicas.append(started)
        await self._world.serves(started)
        return started
