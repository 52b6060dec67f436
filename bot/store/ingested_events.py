"""Events from outside as rows, and the deploys among them as a capability."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import orjson
import sqlalchemy as sa
from pydantic import JsonValue
from sqlalchemy.ext.asyncio import AsyncConnection

from adapters.told import IngestedEvent
from bot.ports.failures import StorageUnavailable
from bot.store.columns import json_text
from bot.store.database import Database
from bot.store.dialect import insert_into, now
from bot.store.incident_rows import keep, of_event
from bot.store.sealing import sealing_of
from bot.store.tables import events
from tools.capabilities import Deploy, Interval
from tools.errors import CapabilityUnavailable

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

    async def add(self, event: IngestedEvent) -> bool:
        """Insert unless (source, id) is there, or it is no news. Raises StorageUnavailable."""

        kind = kind_of(event.type)

        async def work(connection: AsyncConnection) -> bool:
            if event.course and await _is_at(connection, event):
                return False
            kept = replace(event, data=sealing_of(connection).data(event.data))
            inserted = await connection.execute(
                insert_into(connection, events)
                .values(
                    source=event.source,
                    external_id=event.id,
                    type=event.type,
                    kind=kind,
                    product=event.product,
                    at=event.at,
                    data=json_text(dict(kept.data)),
                    received_at=now(),
                )
                .on_conflict_do_nothing(index_elements=["source", "external_id"])
                .returning(events.c.source)
            )
            if inserted.first() is None:
                return False
            if kind in ("incident", "finding"):
                await keep(connection, of_event(kept))
            return True

        return await self._database.transact(work)


async def _is_at(connection: AsyncConnection, event: IngestedEvent) -> bool:
    """Whether the newest of its course says the same. Two replicas told at once may both say no."""
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

    async def between(self, product: str, interval: Interval) -> Sequence[Deploy]:
        """Newest first, at most 1000. Raises CapabilityUnavailable."""
        about = sa.true() if product == "*" else events.c.product == product

        async def work(connection: AsyncConnection) -> Sequence[Deploy]:
            found = await connection.execute(
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
            return [_deploy(row) for row in found]

        try:
            return await self._database.fetch(work)
        except StorageUnavailable as error:
            raise CapabilityUnavailable("the event store cannot be read now") from error


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
    """Senders have many words; what is none of them went well."""
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
