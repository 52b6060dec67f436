"""What becomes an incident of the past, and how it is kept: from outside events and from sessions.

Runs inside the transaction that stores what it comes from, so neither is there without the other.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Any, Final

import orjson
import sqlalchemy as sa
from pydantic import JsonValue
from sqlalchemy.ext.asyncio import AsyncConnection

from adapters.ingested_event import IngestedEvent
from adapters.llm.messages import Message, Role
from bot.domain.tenancy import HOME, scope_of
from bot.store.access_tables import installations
from bot.store.columns import clean
from bot.store.dialect import INSERT
from bot.store.session_rows import to_message
from bot.store.tables import incidents, sessions
from bot.store.tables import messages as messages_table
from tools.search_words import document, merged, month_label, product_label

MAX_TITLE_CHARS = 200
MAX_RESOLUTION_CHARS = 1000
SESSIONS = "kortex"  # the source of incidents that are our own sessions
_TITLE = ("title", "summary", "name", "alertname", "message")
_RESOLUTION = ("resolution_summary", "resolution", "root_cause")
_IDENTITY = ("incident_id", "fingerprint")
_UNTOLD = frozenset({*_IDENTITY, "status", "state"})
_CLOSING = frozenset({"closed", "resolved", "ended", "succeeded"})


@dataclass(frozen=True, slots=True)
class Incident:
    """One incident as it is stored. `texts` are only searched, `products` beyond the first too."""

    source: str
    external_id: str
    opened_at: datetime
    scope: str = ""
    products: tuple[str, ...] = ()
    title: str = ""
    severity: str = ""
    closed_at: datetime | None = None
    resolution: str = ""
    texts: tuple[str, ...] = ()


def of_event(event: IngestedEvent) -> Incident:
    """The incident that an event from outside opens, closes or adds a finding to."""
    data = event.data
    is_closing = _is_closing(event)
    return Incident(
        source=event.source,
        external_id=_first(data, _IDENTITY) or event.id,
        opened_at=event.at,
        products=(event.product,),
        title=_first(data, _TITLE)[:MAX_TITLE_CHARS],
        severity=_first(data, ("severity",)),
        closed_at=event.at if is_closing else None,
        resolution=_first(data, _RESOLUTION)[:MAX_RESOLUTION_CHARS],
        texts=tuple(texts_in({k: v for k, v in data.items() if k not in _UNTOLD})),
    )


async def keep(connection: AsyncConnection, found: Sequence[Incident]) -> None:
    """Insert each, or add to the incident that is there: what it was called first stays."""
    if not found:
        return
    values = [_values(incident) for incident in found]
    rows = await connection.execute(_inserting(connection.dialect.name), values)
    inserted = {(row.source, row.external_id) for row in rows}
    for incident, own in zip(found, values, strict=True):
        key = own["source"], own["external_id"]
        if key in inserted:
            inserted.remove(key)  # a later one adds to it
        else:
            await _add_to(connection, incident, own)


async def _add_to(
    connection: AsyncConnection, incident: Incident, values: Mapping[str, Any]
) -> None:
    rows = await connection.execute(_THERE, {"of": incident.source, "its": incident.external_id})
    before = rows.first()
    if before is None:  # deleted since
        await keep(connection, [incident])
        return
    title = before.title or incident.title
    added = {
        "title": title,
        "product": before.product or values["product"],
        "severity": incident.severity or before.severity,
        "opened_at": min(before.opened_at, incident.opened_at),
        "closed_at": incident.closed_at or before.closed_at,
        "resolution": incident.resolution or before.resolution,
        "words": merged(before.words, values["words"], title),
    }
    await connection.execute(_ADDING, {**added, "it": before.number})


_ADDED: Final = ("title", "product", "severity", "opened_at", "closed_at", "resolution", "words")
_THERE: Final = (
    sa.select(incidents.c.number, *(incidents.c[name] for name in _ADDED))
    .where(incidents.c.source == sa.bindparam("of"), incidents.c.external_id == sa.bindparam("its"))
    .with_for_update()
)
_ADDING: Final = (
    incidents.update()
    .where(incidents.c.number == sa.bindparam("it"))
    .values({name: sa.bindparam(name) for name in _ADDED})
)


@cache
def _inserting(dialect: str) -> sa.Executable:
    own = [each.name for each in incidents.c if each is not incidents.c.number]
    insert = INSERT[dialect](incidents).values({name: sa.bindparam(name) for name in own})
    once = insert.on_conflict_do_nothing(index_elements=["source", "external_id"])
    return once.returning(incidents.c.source, incidents.c.external_id)


# A session as it was asked in, and what its turn was asked.
_ASKED: Final = (
    sa.select(
        sessions.c.created_at,
        sessions.c.channel,
        sessions.c.name,
        installations.c.team.label("installed"),
        messages_table.c.body.label("asked"),
    )
    .select_from(
        sessions.outerjoin(installations, installations.c.team == sessions.c.team).outerjoin(
            messages_table,
            (messages_table.c.turn_id == sa.bindparam("turn")) & (messages_table.c.n == 0),
        )
    )
    .where(sessions.c.id == sa.bindparam("session"))
)


async def keep_session(
    connection: AsyncConnection,
    session_id: str,
    turn_id: str,
    said: Sequence[Message],
    at: datetime,
) -> None:
    """Make the session's answered turn findable in its channel: its question and its answer."""
    found = await connection.execute(_ASKED, {"turn": turn_id, "session": session_id})
    session = found.one()
    answer = next((m.text for m in reversed(said) if m.role is Role.ASSISTANT and m.text), "")
    if session.asked is None or not answer:
        return
    question = " ".join(to_message(session.asked).text.split())
    incident = Incident(
        source=SESSIONS,
        external_id=session_id,
        opened_at=session.created_at,
        scope=scope_of(session.channel, session.installed or HOME),
        products=_products_asked(said),
        title=question[:MAX_TITLE_CHARS],
        closed_at=at,
        resolution=answer[:MAX_RESOLUTION_CHARS],
        texts=(question, answer, session.name),
    )
    await keep(connection, [incident])


def _values(incident: Incident) -> dict[str, Any]:
    labels = [*map(product_label, incident.products), month_label(incident.opened_at)]
    texts = (incident.title, incident.resolution, incident.severity, *incident.texts)
    return {
        "source": clean(incident.source),
        "external_id": clean(incident.external_id),
        "scope": incident.scope,
        "product": next(iter(incident.products), ""),
        "title": incident.title,
        "severity": incident.severity,
        "opened_at": incident.opened_at,
        "closed_at": incident.closed_at,
        "resolution": incident.resolution,
        "words": document((*texts, *incident.products), labels),
    }


def _is_closing(event: IngestedEvent) -> bool:
    said = {event.type.lower().rsplit(".", 1)[-1], _first(event.data, ("status", "state")).lower()}
    return bool(said & _CLOSING)


def _first(data: Mapping[str, JsonValue], names: Sequence[str]) -> str:
    found = (data.get(name) for name in names)
    return next((value.strip() for value in found if isinstance(value, str) and value), "")


def texts_in(value: object) -> Iterator[str]:
    """Every text in the data; the parser has limited its nesting."""
    waiting = [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, str):
            yield item
        elif isinstance(item, Mapping):
            waiting.extend(item.values())
        elif isinstance(item, list | tuple):
            waiting.extend(item)


def _products_asked(said: Sequence[Message]) -> tuple[str, ...]:
    counts: dict[str, int] = {}
    for message in said:
        for call in message.tool_calls:
            product = _product_in(call.arguments)
            if product and product != "*":
                counts[product] = counts.get(product, 0) + 1
    return tuple(sorted(counts, key=lambda name: -counts[name]))


def _product_in(arguments: str) -> str:
    try:
        found = orjson.loads(arguments)
    except ValueError:
        return ""
    product = found.get("product") if isinstance(found, dict) else None
    return product if isinstance(product, str) else ""
