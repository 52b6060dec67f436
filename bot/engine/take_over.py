"""What a replica left behind goes on elsewhere: a few workflows at a time, while it stays silent.

Those that are handed on wait in the engine's queue, where every replica looks as it sees that there
is any: a few at a time come to whoever looks next, all at once would all come to one.
"""

from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Protocol

import structlog
from dbos import DBOS

from bot.store.earlier_work import EarlierWork
from bot.store.replicas import Replicas

log = structlog.get_logger(__name__)

# Handed on by one replica per look, of which there are four in a lease of six seconds.
AT_ONCE: Final = 8


@dataclass(frozen=True, slots=True)
class Left:
    """The unfinished workflows of a replica: those of this version, and how many are of others."""

    known: Sequence[str]
    unknown: int = 0


class Records(Protocol):
    """The engine's records of who runs what."""

    async def left_by(self, executor: str) -> Left:
        """What it runs, or ran when it died; the oldest first."""
        ...

    async def hand_on(self, workflows: Sequence[str]) -> None:
        """Let any replica go on with them; whoever runs them loses them."""
        ...


class DbosRecords:
    """Those of DBOS, through its public calls. `version` is that of the steps known here.

    Work of an `earlier` one is this version's from when it is handed on.
    """

    def __init__(self, version: str, earlier: EarlierWork) -> None:
        self._known = {version, *earlier.versions}
        self._earlier = earlier

    async def left_by(self, executor: str) -> Left:
        """See `Records`."""
        pending = await DBOS.list_workflows_async(
            executor_id=executor, status="PENDING", load_input=False, load_output=False
        )
        known = [each.workflow_id for each in pending if each.app_version in self._known]
        return Left(known, len(pending) - len(known))

    async def hand_on(self, workflows: Sequence[str]) -> None:
        """See `Records`."""
        await self._earlier.take(workflows)
        await DBOS.resume_workflows_async([*workflows])

    async def take_up(self, executor: str) -> None:
        """Go on with what that executor held under an earlier version, and nobody holds now."""
        if held := await self._earlier.held_by(executor):
            await self.hand_on(held)


class TakeOver:
    """One replica's share in carrying on the work of others, and of its own after it stood still.

    `no_death` is told of a replica before its own work is handed on: to stand still is not to die.
    `hurry` is told when work of anybody is in the engine's queue.
    """

    def __init__(
        self,
        replicas: Replicas,
        records: Records,
        replica: str,
        lease_s: float,
        no_death: Callable[[str], Awaitable[None]],
        hurry: Callable[[], None],
    ) -> None:
        self._replicas = replicas
        self._records = records
        self._replica = replica
        self._lease_s = lease_s
        self._no_death = no_death
        self._hurry = hurry
        self._claimed: dict[str, datetime] = {}
        self._let_go: set[str] = set()

    def let_go(self, workflows: Collection[str]) -> None:
        """This replica's own, which it ended because others may have them by now."""
        self._let_go.update(workflows)

    async def look(self, running: Collection[str]) -> None:
        """Hand on some of what is due; `running` goes on here. Raises nothing."""
        try:
            await self._own(running)
            left = await self._replicas.unattended(self._lease_s)
            if left.handed_on:
                self._hurry()
            for each in dict.fromkeys((*self._claimed, *left.silent)):
                await self._some_of(each)
        except Exception:  # the next look tries again; the watch must not end
            log.exception("take_over_failed")

    async def lost(self, running: Collection[str]) -> Collection[str]:
        """Those that this replica runs and others have; none while that cannot be read."""
        try:
            mine = (await self._records.left_by(self._replica)).known
        except Exception:  # they are fenced in the database too; only an edit may come late
            log.exception("take_over_failed")
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
            return  # for a replica of their version, or for the sweep of what is stranded
        # Whoever wins renews the dead one's lease: one hands on, and if it dies too, the next finds
        # the lease run out again. A replica that beats once more keeps what it still has.
        claimed = await (
            self._replicas.claim_again(dead, before)
            if before
            else self._replicas.claim(dead, self._lease_s)
        )
        if claimed is None:
            return
        left = await self._records.left_by(dead)  # as it is now that nobody else changes it
        if not left.known and not left.unknown:
            await self._replicas.bury(dead, claimed)
            return
        self._claimed[dead] = claimed
        if left.known:
            await self._hand_on(dead, left.known[:AT_ONCE], len(left.known))
        if not before and (ended := await self._replicas.end_transactions(dead)):
            log.warning("transactions_ended", replica=dead, connections=ended)

    async def _hand_on(self, replica: str, some: Sequence[str], left: int) -> None:
        log.warning("taking_over", replica=replica, workflows=len(some), left=left - len(some))
        await self._records.hand_on(some)
