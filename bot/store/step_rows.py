"""Rows that wait for the record of the step that made them, and are written in one transaction with it.

Such as what a round has cost, once it is paid. What must be there before an effect, or is read back by
the step, is written at once.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

from bot.domain.audit import AuditEvent
from bot.store.database import Database
from bot.store.dialect import Work


@dataclass(slots=True)
class StepRows:
    """Of one step, or of several that are recorded together. What is in it may be written twice."""

    works: list[Work[None]] = field(default_factory=list)
    events: list[AuditEvent] = field(default_factory=list)
    takes: bool = True

    def add(self, others: "StepRows") -> None:
        """Take over what those hold."""
        self.works += others.works
        self.events += others.events


_of_step: ContextVar[StepRows | None] = ContextVar("rows_of_step", default=None)


@contextmanager
def gathered() -> Iterator[StepRows]:
    """What waits, of everything that runs in this context until it ends."""
    rows = StepRows()
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


async def write_with_step(database: Database, work: Work[None]) -> None:
    """Idempotent `work`, with the record of the step under way; at once outside of any.

    Raises StorageUnavailable.
    """
    rows = waiting_rows()
    if rows is None:
        await database.transact(work)
    else:
        rows.works.append(work)
