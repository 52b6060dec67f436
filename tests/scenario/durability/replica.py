"""One replica of the bot in a process of its own, which tests kill, freeze and stop.

Processes are forked from a server that has imported everything, so that a start costs little.
"""

import asyncio
import multiprocessing
import os
import sys
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerProcess
from pathlib import Path

from bot import logs
from bot.app import open_redactor
from bot.commands import verbs
from bot.service import serving
from bot.settings.reading import load
from bot.slack.pacing import Rates

_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload(["tests.scenario.durability.preloaded"])
START_TIMEOUT_S = 30.0


@dataclass(frozen=True, slots=True)
class Leases:
    """`serving`'s times, in seconds."""

    lease_s: float = 1.0
    grace_s: float = 10.0


class Replica:
    """A started process. `executor` is its name in the engine's table."""

    def __init__(self, process: ForkServerProcess, executor: str) -> None:
        self._process = process
        self.executor = executor

    @property
    def pid(self) -> int:
        """Of the process."""
        assert self._process.pid is not None
        return self._process.pid

    def signal(self, number: int) -> None:
        """Send a signal."""
        os.kill(self.pid, number)

    async def ended(self, timeout_s: float = 15.0) -> int:
        """Its exit code, once it has ended. Raises TimeoutError."""
        await asyncio.to_thread(self._process.join, timeout_s)
        if self._process.exitcode is None:
            raise TimeoutError("the replica is still running")
        return self._process.exitcode

    async def kill(self) -> None:
        """SIGKILL, also of a frozen one; returns when it is gone."""
        if self._process.exitcode is None:
            self._process.kill()
            await self.ended()


async def start(config: Path, leases: Leases) -> Replica:
    """Start one; it serves when this returns. Raises EOFError when it ended instead."""
    ours, theirs = _CONTEXT.Pipe(duplex=False)
    process = _CONTEXT.Process(target=_main, args=(config, leases, theirs))
    await asyncio.to_thread(process.start)
    theirs.close()
    try:
        if not await asyncio.to_thread(ours.poll, START_TIMEOUT_S):
            raise TimeoutError("the replica did not start")
        return Replica(process, await asyncio.to_thread(ours.recv))
    except BaseException:
        process.kill()
        raise
    finally:
        ours.close()


def _main(config: Path, leases: Leases, ready: Connection) -> None:
    log = os.open(config.with_suffix(".log"), os.O_CREAT | os.O_APPEND | os.O_WRONLY)
    os.dup2(log, sys.stdout.fileno())
    os.dup2(log, sys.stderr.fileno())
    sys.exit(verbs.guarded(lambda: _serve(config, leases, ready)))


async def _serve(config: Path, leases: Leases, ready: Connection) -> int:
    settings = load(config)
    logs.configure(open_redactor(settings))
    async with serving(
        settings, Rates.unlimited(), lease_s=leases.lease_s, grace_s=leases.grace_s
    ) as service:
        ready.send(service.engine.executor_id)
        await verbs.stop_asked()
    return verbs.OK
