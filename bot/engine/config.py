"""What an engine is started with, and the lock that lets one process use a SQLite file."""

import asyncio
import fcntl
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from bot.domain.ids import ProposalId
from bot.ports.durability import Journal
from bot.ports.proposals import Decision

# Change only when the sequence of steps changes incompatibly: it decides which replicas may resume a
# turn.
WORKFLOW_VERSION = "kortex-3"
# Turns of these versions are resumed too, with the steps that they began with.
EARLIER_VERSIONS = ("kortex-1", "kortex-2")
LEASE_S = 6.0
RESTART_S = 3.0  # how long a start waits for the process before it to exit
RETRY_S = 0.1

DecisionBody = Callable[[ProposalId, Decision, Journal], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class EngineConfig:
    """`database_url` names a synchronous driver, for DBOS; `sqlite_path` is None on PostgreSQL.

    `pgbouncer`: a connection is lent for one transaction (`bot.store.address.is_behind_pgbouncer`).
    """

    database_url: str
    sqlite_path: Path | None
    lease_s: float = LEASE_S
    max_live_turns: int = 0  # 0: the default of the database
    version: str = WORKFLOW_VERSION
    pgbouncer: bool = False


class SecondProcess(Exception):
    """Another process already owns this SQLite database."""


def take_lock(database: Path) -> IO[bytes]:
    """Lock the database until the returned handle is closed. Raises SecondProcess.

    Two processes on one file would each resume the other's work.
    """
    handle = database.with_name(database.name + ".lock").open("ab")
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        handle.close()
        raise SecondProcess(
            f"{database} is in use by another kortex process. Stop that one, "
            "or use PostgreSQL to run several."
        ) from None
    return handle


async def lock_when_free(database: Path) -> IO[bytes]:
    """Lock the database, and wait `RESTART_S` for a process that exits. Raises SecondProcess."""
    loop = asyncio.get_running_loop()
    until = loop.time() + RESTART_S
    while True:
        try:
            return await asyncio.to_thread(take_lock, database)
        except SecondProcess:
            if loop.time() >= until:
                raise
        await asyncio.sleep(RETRY_S)
