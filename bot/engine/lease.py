"""A replica's lease, and the take-over of workflows of replicas without one.

Replicas beat on a row of the database. A replica that stays silent past its lease is dead: another
replica re-enqueues its workflows, a few at a time, so that all live replicas get some.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Final

import structlog
from dbos import DBOS

from bot.ports.failures import StorageUnavailable
from bot.store.earlier_work import EarlierWork
from bot.store.replicas import Presence, Replicas

log = structlog.get_logger(__name__)

_BEATS: Final = 4  # in a lease: two may fail before other replicas take this one for dead
AT_ONCE: Final = 8  # workflows that one replica re-enqueues per beat


class Lease:
    def __init__(self, presence: Presence, lease_s: float) -> None:
        self._presence = presence
        self._lease_s = lease_s
        self._every_s = lease_s / _BEATS
        self._kept_s = presence.most_silent_leases * lease_s
        self._beaten_at = self._looked_at = time.monotonic()

    async def hold(
        self,
        judge: Callable[[], Awaitable[None]],
        on_freeze: Callable[[], None],
        on_disconnect: Callable[[], Awaitable[None]],
    ) -> None:
        """Beat until cancelled. `judge` looks for dead replicas and must not raise.

        The beat never waits for `judge`. A replica whose own beat was late judges no other replica,
        because the database may have stood still. `on_freeze` is called when this process stood
        still long enough to be taken for dead; `on_disconnect` when it could not reach the database
        for longer than its lease.
        """
        async with asyncio.TaskGroup() as group:
            judging: asyncio.Task[None] | None = None
            with self._watchdog(on_freeze):
                while True:
                    await asyncio.sleep(self._every_s)
                    asked_at = time.monotonic()
                    with suppress(StorageUnavailable):
                        kept = await self._presence.beat()
                        silent_s, self._beaten_at = asked_at - self._beaten_at, asked_at
                        if not kept and silent_s > self._lease_s:
                            await on_disconnect()
                        in_time = silent_s < 2 * self._every_s
                        if in_time and (judging is None or judging.done()):
                            judging = group.create_task(_run(judge))

    @contextmanager
    def _watchdog(self, on_freeze: Callable[[], None]) -> Iterator[None]:
        """Timer callbacks, not a task: after a freeze they run before tasks woken by new data."""
        loop = asyncio.get_running_loop()
        handle: asyncio.TimerHandle

        def look() -> None:
            nonlocal handle
            now = time.monotonic()
            stood_still = now - self._looked_at > 2 * self._every_s
            if stood_still and now - self._beaten_at > self._kept_s:
                on_freeze()
            self._looked_at = now
            handle = loop.call_later(self._every_s, look)

        self._looked_at = time.monotonic()
        handle = loop.call_later(self._every_s, look)
        try:
            yield
        finally:
            handle.cancel()


async def _run(judge: Callable[[], Awaitable[None]]) -> None:
    await judge()


@dataclass(frozen=True, slots=True)
class UnfinishedWork:
    """A replica's unfinished workflows of known versions, and the number of those of unknown ones."""

    known: Sequence[str]
    unknown: int = 0


class DbosRecords:
    """Which replica runs which workflow, by DBOS's public calls. `version` is the current one."""

    def __init__(self, version: str, earlier: EarlierWork) -> None:
        self._known = {version, *earlier.versions}
        self._earlier = earlier

    async def left_by(self, executor: str) -> UnfinishedWork:
        """The workflows that it runs, or ran when it died; oldest first."""
        pending = await DBOS.list_workflows_async(
            executor_id=executor, status="PENDING", load_input=False, load_output=False
        )
        known = [each.workflow_id for each in pending if each.app_version in self._known]
        return UnfinishedWork(known, len(pending) - len(known))

    async def hand_on(self, workflows: Sequence[str]) -> None:
        """Re-enqueue them for any replica. The replica that runs them loses them."""
        await self._earlier.take(workflows)
        await DBOS.resume_workflows_async([*workflows])

    async def take_up(self, executor: str) -> None:
        """Resume the workflows that this executor ran under an earlier version."""
        if held := await self._earlier.held_by(executor):
            await self.hand_on(held)


class Failover:
    """One replica's part in resuming the workflows of dead replicas, and its own after a freeze.

    `no_death` is called with a replica that stood still, so that its turns count no death.
    """

    def __init__(
        self,
        replicas: Replicas,
        records: DbosRecords,
        replica: str,
        lease_s: float,
        no_death: Callable[[str], Awaitable[None]],
    ) -> None:
        self._replicas = replicas
        self._records = records
        self._replica = replica
        self._lease_s = lease_s
        self._no_death = no_death
        self._claimed: dict[str, datetime] = {}
        self._let_go: set[str] = set()

    def let_go(self, workflows: Collection[str]) -> None:
        """Note workflows that this replica ended because another replica may run them."""
        self._let_go.update(workflows)

    async def look(self, running: Collection[str]) -> None:
        """Re-enqueue some of the abandoned workflows; `running` continue here. Raises nothing."""
        try:
            await self._own(running)
            silent = await self._replicas.silent(self._lease_s)
            for each in dict.fromkeys((*self._claimed, *silent)):
                await self._some_of(each)
        except Exception:  # the next look tries again; the watch must not end
            log.exception("failover.failed")

    async def lost(self, running: Collection[str]) -> Collection[str]:
        """Those of `running` that another replica runs now; none while that cannot be read."""
        try:
            mine = (await self._records.left_by(self._replica)).known
        except Exception:  # the database fences their writes; only an edit may come late
            log.exception("failover.failed")
            return ()
        return set(running).difference(mine)

    async def _own(self, running: Collection[str]) -> None:
        if not self._let_go:
            return
        mine = (await self._records.left_by(self._replica)).known
        self._let_go.intersection_update(mine)
        self._let_go.difference_update(running)
        some = [each for each in mine if each in self._let_go][:AT_ONCE]
        if some:
            await self._no_death(self._replica)
            await self._hand_on(self._replica, some, len(self._let_go))
            self._let_go.difference_update(some)

    async def _some_of(self, dead: str) -> None:
        before = self._claimed.pop(dead, None)
        left = await self._records.left_by(dead)
        if left.unknown and not left.known:
            return  # for a replica of their version, or for the sweep of stranded turns
        # The winner renews the dead replica's lease, so that one replica re-enqueues. If it dies too,
        # the lease runs out again. A replica that beats again keeps the rest of its workflows.
        claimed = await (
            self._replicas.claim_again(dead, before)
            if before
            else self._replicas.claim(dead, self._lease_s)
        )
        if claimed is None:
            return
        left = await self._records.left_by(dead)  # read again, now that no other replica changes it
        if not left.known and not left.unknown:
            await self._replicas.bury(dead, claimed)
            return
        self._claimed[dead] = claimed
        if left.known:
            await self._hand_on(dead, left.known[:AT_ONCE], len(left.known))
        if not before and (ended := await self._replicas.end_transactions(dead)):
            log.warning("replica.transactions_ended", replica=dead, connections=ended)

    async def _hand_on(self, replica: str, some: Sequence[str], left: int) -> None:
        log.warning("turns.taken_over", replica=replica, workflows=len(some), left=left - len(some))
        await self._records.hand_on(some)
