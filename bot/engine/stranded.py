"""Turns that nobody can carry on any more: each is ended with a word, and its thread goes on.

A turn strands when its workflow was ended from outside: by this sweep, because it was begun by a
version of the steps that no process knows any more, or by the releases that counted starts.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final

import structlog
from dbos import DBOS
from pydantic import TypeAdapter, ValidationError

from bot.domain.ids import Person, UserId
from bot.domain.session import Ask
from bot.store.earlier_work import EarlierWork
from bot.store.replicas import Replicas
from bot.store.stranded import StrandedTurn, StrandedTurns
from bot.store.tickets import Tickets
from tools.redactor import Redacted

log = structlog.get_logger(__name__)

BATCH: Final = 100
_ASK: Final = TypeAdapter(Ask)

# Starts the durable end of a turn, as its `ending_workflow`. True: people have seen its end already.
StartEnding = Callable[[Ask, bool], Awaitable[None]]


class StrandedWork:
    """The sweep of one replica. Any number of them end each turn once.

    `replicas` is None where this process is the only one.
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
        """How many turns were ended. Raises StorageUnavailable; the next sweep goes on."""
        await self._end_unknown_versions()
        stranded = await self._rows.find(BATCH)
        asks = await _asks([each for each in stranded if not each.is_told])
        for each in stranded:
            if each.is_open or not each.is_told:
                log.error("turn_stranded", turn=each.id, told=each.is_told)
                await start_ending(asks.get(each.id) or _wordless(each), each.is_told)
        # Only now: what is durably started may let the next one in.
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
            return  # a replica of a release that does not say what it knows
        if taken := await self._earlier.take_queued(alive):
            log.info("work_of_earlier_version_taken", work=taken)
        known = {self._version, *self._earlier.versions, *alive}
        found = await self._rows.of_other_versions([each for each in known if each], BATCH)
        # Seen twice: after an outage of the database nobody's lease is fresh for a moment.
        if lost := [each for each in found if each in self._unknown]:
            log.warning("work_of_unknown_version_ended", known=sorted(map(str, known)), work=lost)
            await DBOS.cancel_workflows_async(lost)
        self._unknown = found


async def _asks(stranded: Sequence[StrandedTurn]) -> Mapping[str, Ask]:
    """What was asked, as far as this version can read how it was stored."""
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
