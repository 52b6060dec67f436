"""Rows that wait for the record of the step that made them, and are written in one transaction with it.

Such as what a round has cost, once it is paid. What must be there before an effect, or is read back by
the step, is written at once.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TypeVar

from sqlalchemy.ext.asyncio import AsyncConnection

from bot.domain.audit import AuditEvent
from bot.store.database import Database
from bot.store.dialect import Work

_T = TypeVar("_T")


@dataclass(slots=True)
class Entry:
    """What the first transaction of a turn begins with, whichever it is; `done` once it is committed."""

    work: Work[None]
    done: bool = False


@dataclass(slots=True)
class StepRows:
    """Of one step, or of several that are recorded together. What is in it may be written twice."""

    works: list[Work[None]] = field(default_factory=list)
    events: list[AuditEvent] = field(default_factory=list)
    telling: list[Work[Sequence[AuditEvent]]] = field(default_factory=list)
    takes: bool = True
    entry: Entry | None = None

    def __bool__(self) -> bool:
        return bool(self.works or self.telling or self.events)

    def add(self, others: "StepRows") -> None:
        """Take over what those hold."""
        self.works += others.works
        self.telling += others.telling
        self.events += others.events


_of_step: ContextVar[StepRows | None] = ContextVar("rows_of_step", default=None)


@contextmanager
def gathered(entry: Entry | None = None) -> Iterator[StepRows]:
    """What waits, of everything that runs in this context until it ends."""
    rows = StepRows(entry=entry)
    token = _of_step.set(rows)
    try:
        yield rows
    finally:
        rows.takes = False  # a task that outlives its step still sees it
        _of_step.reset(token)


def waiting_rows() -> StepRows | None:
    """Those of the step under way; None outside of any."""
    rows = _of_step.get()
    return rows if rows is not None and rows.takes else None


async def write_at_once(database: Database, work: Work[_T]) -> _T:
    """For what the step under way reads back, or has to precede an effect. Raises StorageUnavailable.

    Where it is the first transaction of a turn, the turn enters its thread with it. Raises
    `bot.store.tickets.Superseded` then.
    """
    rows = waiting_rows()
    entry = rows.entry if rows is not None else None
    if entry is None or entry.done:
        return await database.transact(work)

    async def entering(connection: AsyncConnection) -> _T:
        await entry.work(connection)
        return await work(connection)

    written = await database.transact(entering)
    entry.done = True
    return written


async def write_with_step(database: Database, work: Work[None]) -> None:
    """Idempotent `work`, with the record of the step under way; at once outside of any.

    Raises StorageUnavailable.
    """
    rows = waiting_rows()
    if rows is None:
        await database.transact(work)
    else:
        rows.works.append(work)
