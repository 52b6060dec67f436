"""Whether the clock's jobs have anything to do, asked in one statement.

A replica looks every few seconds, mostly for nothing. A job that is due asks for its own rows.
"""

from collections.abc import Collection, Mapping
from functools import cache
from typing import Any, Final

import sqlalchemy as sa

from bot.domain.session import TurnState
from bot.store import alerts, proposal_rows, proposals, watches
from bot.store.accepted_table import accepted
from bot.store.database import Database
from bot.store.dialect import Connection, seconds_ago
from bot.store.prepared import prepared
from bot.store.tables import tickets, turns, undelivered
from bot.store.tickets import GOES_ON, workflow_status

CARDS: Final = "cards"
EXPIRY: Final = "expiry"
WATCHES: Final = "watches"
ALERTS: Final = "alerts"
DELIVERY: Final = "delivery"
THREADS: Final = "threads"


class Due:
    """Raises StorageUnavailable."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def look(self) -> Collection[str]:
        """Names of those above for which there are rows; of threads also where all goes well."""

        async def work(connection: Connection) -> Collection[str]:
            found = await connection.execute(_asked(connection.dialect.name))
            return [name for name, is_due in found.mappings().one().items() if is_due]

        return await self._database.fetch(work)


@cache
def _asked(dialect: str) -> sa.Select[Any]:
    columns: list[sa.ColumnElement[Any]] = [
        each.label(name) for name, each in _parts(dialect).items()
    ]
    return prepared(sa.select(*columns))


def _parts(dialect: str) -> Mapping[str, sa.ColumnElement[bool]]:
    held_back = sa.select(undelivered.c.turn_id).where(undelivered.c.due_at <= seconds_ago(0))
    # As the index of running turns has it.
    running = turns.c.state == sa.literal_column(f"'{TurnState.RUNNING.value}'")
    workflows = sa.select(workflow_status(dialect).c.workflow_uuid)
    return {
        CARDS: _any(proposal_rows.DUE),
        EXPIRY: _any(proposals.DUE),
        WATCHES: _any(watches.DUE),
        ALERTS: _any(alerts.DUE),
        DELIVERY: _any(held_back),
        THREADS: sa.or_(
            _any(sa.select(tickets.c.id)),
            _any(sa.select(accepted.c.id)),
            _any(sa.select(turns.c.id).where(running)),
            *(_any(workflows.where(is_)) for is_ in GOES_ON),
        ),
    }


def _any(rows: sa.Select[Any]) -> sa.ColumnElement[bool]:
    """Not EXISTS: of that PostgreSQL forgets order and limit, and reads all of a table for them."""
    first = rows.with_only_columns(next(iter(rows.selected_columns)))
    return first.limit(1).scalar_subquery().is_not(None)
