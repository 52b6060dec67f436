"""SQLite's index of words, FTS5. A match is read in the order of row ids, so a limit ends it early."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from bot.store.database import Database
from bot.store.incident_query import CANDIDATES, IncidentSearch
from bot.store.tables import incidents

RARE = 500
_MERGED_PAGES: Final = 500


class FtsWords:
    """A `WordIndex`."""

    rare_at_most = RARE

    def __init__(self, connection: AsyncConnection) -> None:
        self._connection = connection

    async def counts(self, words: Sequence[str]) -> Mapping[str, int]:
        """Up to RARE + 1 of each."""
        found = {word: await self._count(word) for word in words}
        return {word: count for word, count in found.items() if count}

    async def with_all(self, asked: IncidentSearch) -> Sequence[sa.Row[Any]]:
        return await self._matching(" AND ".join(_quoted([word]) for word in asked.counts), asked)

    async def with_rare(self, asked: IncidentSearch) -> Sequence[sa.Row[Any]]:
        found: list[sa.Row[Any]] = []
        for group in asked.rare_groups:
            found += await self._matching(_quoted(group), asked)
        return found

    async def with_any(self, asked: IncidentSearch) -> Sequence[sa.Row[Any]]:
        return await self._matching(_quoted(asked.common), asked) if asked.common else []

    async def _count(self, word: str) -> int:
        matching = sa.text("SELECT 1 FROM incidents_fts WHERE incidents_fts MATCH :m LIMIT :n")
        counted = sa.select(sa.func.count()).select_from(
            matching.bindparams(m=_quoted([word]), n=RARE + 1).columns(sa.column("one")).subquery()
        )
        return await self._connection.scalar(counted) or 0

    async def _matching(self, words: str, asked: IncidentSearch) -> Sequence[sa.Row[Any]]:
        terms = [words, *(_quoted([label]) for label in asked.labels)]
        if asked.months:
            terms.append(_quoted(asked.months))
        match = " AND ".join(f"({term})" for term in terms)
        index = sa.table("incidents_fts", sa.column("rowid"), sa.column("incidents_fts"))
        found = await self._connection.execute(
            sa.select(incidents)
            .select_from(index.join(incidents, incidents.c.number == index.c.rowid))
            .where(index.c.incidents_fts.match(match), asked.where)
            .order_by(index.c.rowid.desc())
            .limit(CANDIDATES)
        )
        return found.all()


def _quoted(words: Sequence[str]) -> str:
    """Words hold letters, digits and `_` only; the quotes keep AND, OR and NOT from being read."""
    return " OR ".join(f'"{word}"' for word in words)


async def merge_words(database: Database) -> None:
    """Remove the words of deleted rows from the index, which keeps them until pages are merged.

    In steps, since a large index takes a while. No work on PostgreSQL, whose words are in the row.
    https://www.sqlite.org/fts5.html#the_merge_command: a negative number begins to merge
    everything, positive ones continue; fewer than two changes mean no work was done.
    """
    if database.dialect != "sqlite":
        return
    await database.transact(partial(_merge, -_MERGED_PAGES))
    while await database.transact(partial(_merge, _MERGED_PAGES)) > 1:
        pass


async def _merge(pages: int, connection: AsyncConnection) -> int:
    changes = sa.text("SELECT total_changes()")
    before = int(await connection.scalar(changes))
    merge = sa.text("INSERT INTO incidents_fts (incidents_fts, rank) VALUES ('merge', :pages)")
    await connection.execute(merge.bindparams(pages=pages))
    return int(await connection.scalar(changes)) - before
