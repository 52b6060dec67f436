"""Turns that no replica can resume: each ends with a message to the user, and frees its thread.

A turn strands when its workflow was ended from outside: by this sweep, because no live replica knows
the version of its steps, or by releases that limited the number of starts. The sweep also starts
turns that an earlier release accepted and did not start.
"""

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from typing import Any, Final

import structlog
from dbos import DBOS
from pydantic import TypeAdapter, ValidationError

from bot.domain.ids import Person, UserId
from bot.domain.session import Ask
from bot.store.accepted import HalfStarted
from bot.store.earlier_work import EarlierWork
from bot.store.replicas import Replicas
from bot.store.stranded import StrandedTurn, StrandedTurns
from bot.store.tickets import Tickets
from tools.redactor import Redacted

log = structlog.get_logger(__name__)

BATCH: Final = 100
_ASK: Final = TypeAdapter(Ask)

# Starts the workflow that ends a turn. True: the user has seen the turn's end already.
StartEnding = Callable[[Ask, bool], Awaitable[None]]


class StrandedWork:
    """The sweep of one replica. Each turn ends once, for any number of sweeping replicas.

    `replicas` is None if this process is the only one.
    """

    def __init__(
        self,
        rows: StrandedTurns,
        tickets: Tickets,
        replicas: Replicas | None,
        earlier: EarlierWork,
        version: str,
        lease_s: float,
    ) -> None:
        self._rows = rows
        self._tickets = tickets
        self._replicas = replicas
        self._earlier = earlier
        self._version = version
        self._lease_s = lease_s
        self._unknown: Sequence[str] = ()

    async def sweep(self, start_ending: StartEnding) -> int:
        """End stranded turns; returns how many. Raises StorageUnavailable; the next sweep goes on."""
        await self._end_unknown_versions()
        stranded = await self._rows.find(BATCH)
        asks = await _asks([each for each in stranded if not each.is_told])
        for each in stranded:
            if each.is_open or not each.is_told:
                log.error("turn.stranded", turn=each.id, told=each.is_told)
                await start_ending(asks.get(each.id) or _wordless(each), each.is_told)
        # Only after the durable start of each end may the next turn of a thread begin.
        await self._tickets.drop_dead([each.id for each in stranded])
        return len(stranded)

    async def _end_unknown_versions(self) -> None:
        if not await self._rows.of_other_versions([self._version], 1):
            self._unknown = ()
            return
        alive: Sequence[str | None] = ()
        if self._replicas is not None:
            alive = await self._replicas.versions(self._lease_s)
        if None in alive:
            return  # a replica of a release that does not record its version
        if taken := await self._earlier.take_queued(alive):
            log.info("turns.earlier_version_resumed", work=taken)
        known = {self._version, *self._earlier.versions, *alive}
        found = await self._rows.of_other_versions([each for each in known if each], BATCH)
        # Only those seen twice: after a database outage all leases are stale for a moment.
        if lost := [each for each in found if each in self._unknown]:
            log.warning("turns.unknown_version_ended", known=sorted(map(str, known)), work=lost)
            await DBOS.cancel_workflows_async(lost)
        self._unknown = found


class UnstartedTurns:
    """Turns that a process of an earlier release accepted, and did not start before it died."""

    def __init__(self, rows: HalfStarted) -> None:
        self._rows = rows
        self._accepted: frozenset[str] = frozenset()
        self._tickets: Collection[str] = ()

    async def find(self, *, at_once: bool = False) -> Sequence[Ask]:
        """The asks to start. Without `at_once` only those seen twice, because another replica may
        be starting them.

        Raises StorageUnavailable.
        """
        self._tickets = await self._rows.drop_tickets(self._tickets)
        left = await self._rows.accepted()
        before, self._accepted = self._accepted, frozenset(left)
        asks = [_parsed(left[turn]) for turn in left if at_once or turn in before]
        return [ask for ask in asks if ask is not None]


def _parsed(stored: str) -> Ask | None:
    try:
        return _ASK.validate_json(stored)
    except ValidationError as error:
        # Written by another release, whose own processes can start it.
        log.error("turn.not_started", problems=error.error_count())
        return None


async def _asks(stranded: Sequence[StrandedTurn]) -> Mapping[str, Ask]:
    if not stranded:
        return {}
    found = await DBOS.list_workflows_async(
        workflow_ids=[each.id for each in stranded], load_output=False
    )
    read = {workflow.workflow_id: _read(workflow.input) for workflow in found}
    return {turn: ask for turn, ask in read.items() if ask is not None}


def _read(stored: Any) -> Ask | None:
    try:
        return _ASK.validate_python(stored["args"][0])
    except (ValidationError, LookupError, TypeError):
        return None


def _wordless(turn: StrandedTurn) -> Ask:
    return Ask(turn.place, turn.ts, Person(turn.place.team, UserId("")), Redacted(""))
