"""Searching incidents of the past, in tens of milliseconds among a million, by any text.

Candidates come from the index of words, newest first and bounded at every step; they are ranked
here, by how many of the asked words they hold and how rare those are. A plain bm25 over every match
would read half the table for a common word.
"""

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from bot.ports.failures import StorageUnavailable
from bot.store.database import Database
from bot.store.incident_query import IncidentSearch, WordIndex, asked_of
from bot.store.incident_rows import SESSIONS
from bot.store.incident_words_postgresql import GinWords
from bot.store.incident_words_sqlite import FtsWords
from tools.capabilities import IncidentQuery, PastIncident
from tools.errors import CapabilityUnavailable, InvalidArguments
from tools.search_words import words_of

MAX_WORDS = 12


class StoredIncidents:
    """`tools.capabilities.IncidentHistory` in the database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def search(self, query: IncidentQuery) -> Sequence[PastIncident]:
        """The best first. Raises InvalidArguments (no word to search by), CapabilityUnavailable."""
        words = words_of(query.text)[:MAX_WORDS]
        if not words:
            raise InvalidArguments("query: name words of the incident, e.g. 'checkout timeouts'")

        async def work(connection: AsyncConnection) -> Sequence[PastIncident]:
            index = _index_of(connection)
            counts = await index.counts(words)
            if not counts:
                return []
            asked = asked_of(query, counts, index.rare_at_most)
            found = await _candidates(index, asked, query.limit)
            return [_incident(row) for row in _best(asked, list(found.values()), query.limit)]

        try:
            if self._database.dialect == "postgresql":
                # Its settings for the search hold within a transaction only.
                return await self._database.transact(work)
            return await self._database.fetch(work)
        except StorageUnavailable as error:
            raise CapabilityUnavailable("the incident store is not available now") from error


async def _candidates(
    index: WordIndex, asked: IncidentSearch, limit: int
) -> dict[int, sa.Row[Any]]:
    found = {row.number: row for row in await index.with_all(asked)}
    found |= {row.number: row for row in await index.with_rare(asked)}
    if len(found) < limit:
        found |= {row.number: row for row in await index.with_any(asked)}
    return found


def _best(asked: IncidentSearch, found: Sequence[sa.Row[Any]], limit: int) -> Sequence[sa.Row[Any]]:
    incidents = asked.best((row for row in found if row.source != SESSIONS), limit)
    answers = asked.best((row for row in found if row.source == SESSIONS), limit)
    places = max(limit - len(answers), limit - limit // 2)
    return [*incidents[:places], *answers][:limit]


def _incident(row: sa.Row[Any]) -> PastIncident:
    return PastIncident(
        id=f"{row.source}:{row.external_id}",
        title=row.title,
        product=row.product,
        severity=row.severity,
        opened_at=row.opened_at,
        closed_at=row.closed_at,
        resolution=row.resolution,
        is_own_answer=row.source == SESSIONS,
    )


def _index_of(connection: AsyncConnection) -> WordIndex:
    return GinWords(connection) if connection.dialect.name == "postgresql" else FtsWords(connection)
