"""A supervisor with workers in processes of their own, which tests kill and stop."""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from multiprocessing.context import ForkServerProcess
from pathlib import Path

import orjson

from bot.app.worker import Times
from bot.cli.workers import run_workers
from bot.upkeep.signals import Signals
from tests.scenario.durability.replica import CONTEXT, TIMES
from tests.scenario.durability.world import TIMEOUT_S, World

COUNT = 2
_SERVES = '"event":"worker.serving"'


class Workers:
    """The supervisor's process, and those it started."""

    def __init__(self, world: World, process: ForkServerProcess) -> None:
        self._world = world
        self._process = process

    @property
    def pid(self) -> int:
        """Of the supervisor."""
        assert self._process.pid is not None
        return self._process.pid

    def pids(self) -> list[int]:
        """Those of the workers that run, the first started first."""
        children = Path(f"/proc/{self.pid}/task/{self.pid}/children")
        return [int(pid) for pid in children.read_text(encoding="ascii").split()]

    async def own_ports(self) -> list[int]:
        """The port of each worker alone, once all serve."""
        lines = [
            line for line in (await asyncio.to_thread(self.said)).splitlines() if _SERVES in line
        ]
        return [orjson.loads(line[line.index("{") :])["own_port"] for line in lines]

    def said(self) -> str:
        """All that they wrote so far."""
        return self._world.config.with_suffix(".log").read_text(encoding="utf-8")

    async def serve(self) -> None:
        """Until Slack can reach each of them."""
        connections = self._world.workspace.sockets.connections
        await self._world.workspace.wait_for(lambda: len(connections) == COUNT, TIMEOUT_S)
        await self._world.until(self._is_announced)

    async def _is_announced(self) -> bool:
        return f"serving with {COUNT} workers" in await asyncio.to_thread(self.said)

    @contextmanager
    def only_first(self) -> Iterator[None]:
        """Slack delivers to the worker that was started first alone, which may have connected last."""
        connections = self._world.workspace.sockets.connections
        ports = _ports_of(self.pids()[0])
        others = [each for each in connections if each.get_extra_info("peername")[1] not in ports]
        for each in others:
            connections.remove(each)
        try:
            yield
        finally:
            connections.extend(others)

    async def gone(self, pids: list[int]) -> None:
        """Until none of those processes runs."""

        async def look() -> bool:
            return not any(_runs(pid) for pid in pids)

        await self._world.until(look)

    async def ended(self) -> int:
        """The supervisor's exit code, once it has ended. Raises TimeoutError."""
        await asyncio.to_thread(self._process.join, TIMEOUT_S)
        if self._process.exitcode is None:
            raise TimeoutError("the supervisor is still running")
        return self._process.exitcode


def _ports_of(pid: int) -> set[int]:
    """The local ports of that process's TCP connections."""
    opened = {str(each.readlink()) for each in Path(f"/proc/{pid}/fd").iterdir()}
    table = Path(f"/proc/{pid}/net/tcp").read_text(encoding="ascii").splitlines()[1:]
    rows = [line.split() for line in table]
    return {int(row[1].rpartition(":")[2], 16) for row in rows if f"socket:[{row[9]}]" in opened}


def _runs(pid: int) -> bool:
    """Whether it is there and no zombie, which is what an orphan may become."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2]
    except FileNotFoundError:
        return False
    return state.split()[0] != "Z"


@asynccontextmanager
async def workers_of(world: World, times: Times = TIMES) -> AsyncIterator[Workers]:
    """They have just begun to start; nothing of them is left behind."""
    process = CONTEXT.Process(target=_main, args=(world.config, times))
    await asyncio.to_thread(process.start)
    workers = Workers(world, process)
    try:
        yield workers
    finally:
        world.open()
        with suppress(ProcessLookupError):
            os.killpg(workers.pid, signal.SIGKILL)
        await workers.ended()


def _main(config: Path, times: Times) -> None:
    os.setpgid(0, 0)
    signals = Signals()
    signals.take()
    log = os.open(config.with_suffix(".log"), os.O_CREAT | os.O_APPEND | os.O_WRONLY)
    os.dup2(log, sys.stdout.fileno())
    os.dup2(log, sys.stderr.fileno())
    code = run_workers(config, COUNT, signals, times)
    signals.ignore()
    sys.exit(code)
