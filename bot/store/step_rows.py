"""Rows that wait for the record of the step that made them, and are written in its transaction.

The cost of a round is one. A row that must precede an effect, or that the step reads back, is written
at once.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

from bot.domain.audit import AuditEvent
from bot.store.database import Database
from bot.store.dialect import Work


@dataclass(slots=True)
class StepRows:
    """The rows of one step, or of steps that are recorded together. Each may be written twice."""

    works: list[Work[None]] = field(default_factory=list)
    events: list[AuditEvent] = field(default_factory=list)
    telling: list[Work[Sequence[AuditEvent]]] = field(default_factory=list)
    takes: bool = True

    def __bool__(self) -> bool:
        return bool(self.works or self.telling or self.events)

    def add(self, others: "StepRows") -> None:
        self.works += others.works
        self.telling += others.telling
        self.events += others.events


_of_step: ContextVar[StepRows | None] = ContextVar("rows_of_step", default=None)


@contextmanager
def gathered() -> Iterator[StepRows]:
    """Collect the waiting rows of everything that runs in this context."""
    rows = StepRows()
    token = _of_step.set(rows)
    try:
        yield rows
    finally:
        rows.takes = False  # a task that outlives its step still sees it
        _of_step.reset(token)


def waiting_rows() -> StepRows | None:
    """The rows of the current step; None outside of a step."""
    rows = _of_step.get()
    return rows if rows is not None and rows.takes else None


async def write_with_step(database: Database, work: Work[None]) -> None:
    """Run idempotent `work` with the record of the current step; at once outside of a step.

    Raises StorageUnavailable.
    """
    rows = waiting_rows()
    if rows is None:
        await database.transact(work)
    else:
        rows.works.append(work)
