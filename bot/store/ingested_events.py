"""Events from outside as rows, and the deploys among them as a capability."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import orjson
import sqlalchemy as sa
from pydantic import JsonValue
from sqlalchemy.ext.asyncio import AsyncConnection

from adapters.ingested_event import IngestedEvent
from bot.ports.failures import StorageUnavailable
from bot.ports.ingested_events import FeedStates
from bot.store.columns import clean
from bot.store.database import Database
from bot.store.dialect import insert_into, now
from bot.store.incident_rows import keep, of_event
from bot.store.sealing import sealing_of
from bot.store.tables import events
from tools.capabilities import Deploy, Interval
from tools.errors import CapabilityUnavailable
from tools.outside_json import left_out

AT_ONCE = 200  # events in a transaction: other writers wait for SQLite's single one
MAX_DEPLOYS = 1000  # more than a reader can use; keeps a wide interval from filling the memory
_KINDS = {
    "deploy": ("deploy", "deployed", "deployment", "rollout", "rollback"),
    "incident": ("incident", "alert"),
    "finding": ("finding",),
}
_STATUS = {
    "failed": ("failed", "failure", "error"),
    "rolled_back": ("rolled_back", "rolledback", "rollback"),
    "running": ("running", "started", "in_progress", "pending"),
}


def kind_of(event_type: str) -> str:
    """`deploy`, `incident`, `finding` or `other`, from the dotted parts of a CloudEvents type."""
    parts = event_type.lower().split(".")
    return next((kind for kind, words in _KINDS.items() if set(words) & set(parts)), "other")


class StoredEvents:
    """`bot.ports.ingested_events.EventStore` in the database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def add(self, found: Sequence[IngestedEvent]) -> int:
        """See `EventStore`. A transaction takes `AT_ONCE` events. Raises StorageUnavailable."""
        once = {(event.source, event.id): event for event in reversed(found)}  # the first counts
        left = list(reversed(once.values()))
        parts = [left[first : first + AT_ONCE] for first in range(0, len(left), AT_ONCE)]
        return sum([await self._database.transact(partial(_add, part)) for part in parts])


async def _add(found: Sequence[IngestedEvent], connection: AsyncConnection) -> int:
    bodies = sealing_of(connection).bodies([event.data for event in found])
    rows = [_row(event, body) for event, body in zip(found, bodies, strict=True)]
    new = await _insert(
        connection, [row for event, row in zip(found, rows, strict=True) if not event.course]
    )
    for event, row in zip(found, rows, strict=True):
        if event.course and not await _is_at(connection, event):
            new |= await _insert(connection, [row])
    told = [
        of_event(replace(event, data=orjson.loads(row["data"])))
        for event, row in zip(found, rows, strict=True)
        if (row["source"], row["external_id"]) in new and row["kind"] in ("incident", "finding")
    ]
    await keep(connection, told)
    return len(new)


def _row(event: IngestedEvent, body: str) -> dict[str, Any]:
    return {
        "source": clean(event.source),  # as it is stored: inserted rows are known by it
        "external_id": clean(event.id),
        "type": event.type,
        "kind": kind_of(event.type),
        "product": event.product,
        "at": event.at,
        "data": body,
    }


async def _insert(
    connection: AsyncConnection, rows: Sequence[Mapping[str, Any]]
) -> set[tuple[str, str]]:
    if not rows:
        return set()
    inserting = (
        insert_into(connection, events)
        .values(received_at=now())
        .on_conflict_do_nothing(index_elements=["source", "external_id"])
        .returning(events.c.source, events.c.external_id)
    )
    inserted = await connection.execute(inserting, rows)
    return {(row.source, row.external_id) for row in inserted}


async def _is_at(connection: AsyncConnection, event: IngestedEvent) -> bool:
    newest = await connection.scalar(
        sa.select(events.c.external_id)
        .where(
            events.c.source == event.source,
            events.c.external_id > f"{event.course}/",
            events.c.external_id < f"{event.course}0",  # what follows "/"
        )
        .order_by(events.c.at.desc())
        .limit(1)
    )
    return newest is not None and newest.startswith(f"{event.course}/{event.step}/")


class StoredDeploys:
    """`tools.capabilities.Deploys` over the deploy events that came in."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.feeds = FeedStates()

    def unread_sources(self) -> int:
        """How many feeds fail now."""
        return self.feeds.failing

    async def between(self, product: str, interval: Interval) -> Sequence[Deploy]:
        """Newest first, at most 1000; unread entries of feeds are counted. Raises CapabilityUnavailable."""
        left_out(self.feeds.unread)
        about = sa.true() if product == "*" else events.c.product == product

        statement = (
            sa.select(events)
            .where(
                events.c.kind == "deploy",
                about,
                events.c.at >= interval.start,
                events.c.at < interval.end,
            )
            .order_by(events.c.at.desc(), events.c.external_id.desc())
            .limit(MAX_DEPLOYS)
        )
        try:
            return [_deploy(row) for row in await self._database.rows(statement)]
        except StorageUnavailable as error:
            raise CapabilityUnavailable("the event store is not available now") from error


def _deploy(row: sa.Row[Any]) -> Deploy:
    data: dict[str, JsonValue] = orjson.loads(row.data)
    return Deploy(
        product=row.product,
        version=_text(data, "version") or "unknown",
        at=row.at,
        actor=_text(data, "actor"),
        host=_text(data, "host"),
        commit=_text(data, "commit"),
        status=_status(_text(data, "status") or row.type.rsplit(".", 1)[-1]),
        previous_version=_text(data, "previous_version"),
        duration_s=_number(data, "duration_s"),
    )


def _status(word: str) -> str:
    said = word.lower().replace("-", "_")
    return next((status for status, words in _STATUS.items() if said in words), "ok")


def _text(data: dict[str, JsonValue], name: str) -> str:
    value = data.get(name)
    if value is None or isinstance(value, list | dict | bool):
        return ""
    return str(value)


def _number(data: dict[str, JsonValue], name: str) -> float | None:
    value = data.get(name)
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
