"""One replica of the bot in a process of its own, which tests kill, freeze and stop.

Processes are forked from a server that has imported everything, so that a start costs little.
"""

import asyncio
import multiprocessing
import os
import sys
from dataclasses import replace
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerProcess, SpawnProcess
from pathlib import Path
from typing import cast

from dbos import Queue

from bot.app.start import serving
from bot.app.stores import open_redactor
from bot.app.worker import Times
from bot.cli.invocation import guarded
from bot.cli.serve import stay
from bot.settings.reading import load
from bot.slack.delivery.pacing import Rates
from bot.telemetry import logs
from bot.upkeep.signals import Signals

CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload(["tests.scenario.durability.preloaded"])
COLD = multiprocessing.get_context("spawn")
START_TIMEOUT_S = 30.0
# Of DBOS, for what is resumed; its own is a second.
POLL_S = 0.1
RATES = replace(Rates.unlimited(), message_gap_s=0.05)
TIMES = Times(lease_s=1.0, grace_s=10.0, tick_s=1.0, card_call_s=4.0)


class Replica:
    """A process. `executor` is its name in the engine's table, `port` where it listens, once it serves."""

    def __init__(self, process: ForkServerProcess | SpawnProcess, told: Connection) -> None:
        self._process = process
        self._told = told
        self.executor = ""
        self.port = 0

    async def serves(self) -> None:
        """Until it serves. Raises EOFError when it ended instead, TimeoutError."""
        try:
            if not await asyncio.to_thread(self._told.poll, START_TIMEOUT_S):
                raise TimeoutError("the replica did not start")
            self.executor, self.port = await asyncio.to_thread(self._told.recv)
        except BaseException:
            self._process.kill()
            raise
        finally:
            self._told.close()

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


async def start(config: Path, times: Times) -> Replica:
    """Start one; it serves when this returns. Raises EOFError when it ended instead."""
    started = await launch(config, times)
    await started.serves()
    return started


async def launch(config: Path, times: Times, *, cold: bool = False) -> Replica:
    """A process that has just begun to start; a `cold` one has imported nothing."""
    ours, theirs = CONTEXT.Pipe(duplex=False)
    context = COLD if cold else CONTEXT
    process = context.Process(target=_main, args=(config, times, theirs))
    await asyncio.to_thread(process.start)
    theirs.close()
    return Replica(process, ours)


def _main(config: Path, times: Times, ready: Connection) -> None:
    signals = Signals()
    signals.take()
    cast("dict[str, float]", Queue.__init__.__kwdefaults__)["polling_interval_sec"] = POLL_S
    log = os.open(config.with_suffix(".log"), os.O_CREAT | os.O_APPEND | os.O_WRONLY)
    os.dup2(log, sys.stdout.fileno())
    os.dup2(log, sys.stderr.fileno())
    code = guarded(lambda: _serve(config, times, signals, ready))
    signals.ignore()
    sys.exit(code)


async def _serve(config: Path, times: Times, signals: Signals, ready: Connection) -> int:
    settings = load(config)
    logs.configure(open_redactor(settings))
    opening = serving(
        settings,
        RATES,
        times=times,
        read=lambda: load(config),
    )
    return await stay(
        opening,
        signals,
        lambda service: ready.send((service.engine.executor_id, service.http_port)),
    )
