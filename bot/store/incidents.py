"""Searching incidents of the past, in tens of milliseconds among a million, by any text.

Candidates come from the index of words, newest first and bounded at every step; they are ranked
here, by how many of the asked words they hold and how rare those are. A plain bm25 over every match
would read half the table for a common word.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from bot.ports import StorageUnavailable
from bot.store.connection import Connection
from bot.store.engine import Database
from bot.store.tables import incidents
from tools.capabilities import IncidentQuery, PastIncident
from tools.errors import CapabilityUnavailable, InvalidArguments
from tools.search_words import month_labels, product_label, weight, words_of

MAX_WORDS = 12
CANDIDATES = 200
RARE = 500  # a word in fewer incidents than this is read out whole
MAX_MONTHS = 24
# PostgreSQL reads at most about so many of a word's incidents, at random ones when there are more.
_PG_SAMPLE = 3000
_PG_LOOK = 500
_PG_COMMON = 10  # of so many newest incidents, a word in more than these is common everywhere
# Of common words alone, these are enough to have candidates: all lists of many are long.
_PG_ALL_OF, _PG_WORDS = 3, 2


@dataclass(frozen=True, slots=True)
class _Asked:
    """`counts` says in how many incidents each word is, up to RARE + 1."""

    counts: Mapping[str, int]
    labels: tuple[str, ...]  # each must be there
    months: tuple[str, ...]  # one of them must be there
    where: sa.ColumnElement[bool]

    @property
    def rare(self) -> list[str]:
        return [word for word, count in self.counts.items() if count <= RARE]

    @property
    def common(self) -> list[str]:
        return [word for word, count in self.counts.items() if count > RARE]

    def weight(self, row: sa.Row[Any]) -> float:
        """How well a row answers."""
        return weight(self.counts, set(row.words.split()), set(words_of(row.title)))


class StoredIncidents:
    """`tools.capabilities.IncidentHistory` in the database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def search(self, query: IncidentQuery) -> Sequence[PastIncident]:
        """The best first. Raises InvalidArguments (no word to search by), CapabilityUnavailable."""
        words = words_of(query.text)[:MAX_WORDS]
        if not words:
            raise InvalidArguments("query: name words of the incident, e.g. 'checkout timeouts'")

        async def work(connection: Connection) -> Sequence[PastIncident]:
            index = _index_of(connection)
            await index.prepare()
            counts = {word: count for word in words if (count := await index.count(word))}
            if not counts:
                return []
            asked = _asked(query, counts)
            found = await _candidates(index, asked, query.limit)
            best = sorted(found.values(), key=lambda row: (-asked.weight(row), -row.number))
            return [_incident(row) for row in best[: query.limit]]

        try:
            if self._database.dialect == "postgresql":
                # Its settings for the search hold within a transaction only.
                return await self._database.transact(work)
            return await self._database.fetch(work)
        except StorageUnavailable as error:
            raise CapabilityUnavailable("the incident store cannot be read now") from error


def _asked(query: IncidentQuery, counts: Mapping[str, int]) -> _Asked:
    months: list[str] = []
    where = (
        incidents.c.scope.in_(["", query.channel]) if query.channel else (incidents.c.scope == "")
    )
    if query.interval is not None:
        months = month_labels(query.interval.start, query.interval.end)
        where &= incidents.c.opened_at >= query.interval.start
        where &= incidents.c.opened_at < query.interval.end
    return _Asked(
        counts,
        (product_label(query.product),) if query.product else (),
        tuple(months) if len(months) <= MAX_MONTHS else (),
        where,
    )


async def _candidates(index: "_Index", asked: _Asked, limit: int) -> dict[int, sa.Row[Any]]:
    """Those with every word; then those with a rare one; then those with any."""
    words = list(asked.counts)
    found: dict[int, sa.Row[Any]] = {}
    for step in (index.with_all(words, asked), index.with_any(asked.rare, asked)):
        found |= {row.number: row for row in await step}
    if len(found) < limit:
        found |= {row.number: row for row in await index.with_any(asked.common, asked)}
    return found


def _incident(row: sa.Row[Any]) -> PastIncident:
    return PastIncident(
        id=f"{row.source}:{row.external_id}",
        title=row.title,
        product=row.product,
        severity=row.severity,
        opened_at=row.opened_at,
        closed_at=row.closed_at,
        resolution=row.resolution,
    )


class _Index:
    """The index of words of one database. Every read is bounded."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def prepare(self) -> None:
        """Once per transaction."""

    async def count(self, word: str) -> int:
        """In how many incidents the word is; RARE + 1 stands for more."""
        raise NotImplementedError

    async def with_all(self, words: Sequence[str], asked: _Asked) -> Sequence[sa.Row[Any]]:
        """The newest incidents that hold every word."""
        raise NotImplementedError

    async def with_any(self, words: Sequence[str], asked: _Asked) -> Sequence[sa.Row[Any]]:
        """The newest incidents that hold one of the words."""
        raise NotImplementedError

    async def _newest(
        self, condition: sa.ColumnElement[bool], asked: _Asked
    ) -> Sequence[sa.Row[Any]]:
        found = await self._connection.execute(
            sa.select(incidents)
            .where(condition, asked.where)
            .order_by(incidents.c.number.desc())
            .limit(CANDIDATES)
        )
        return found.all()


class _Fts5(_Index):
    """SQLite's. A match is read in the order of row ids, so a limit ends it early."""

    async def count(self, word: str) -> int:
        matching = sa.text("SELECT 1 FROM incidents_fts WHERE incidents_fts MATCH :m LIMIT :n")
        counted = sa.select(sa.func.count()).select_from(
            matching.bindparams(m=_quoted([word]), n=RARE + 1).columns(sa.column("one")).subquery()
        )
        return await self._connection.scalar(counted) or 0

    async def with_all(self, words: Sequence[str], asked: _Asked) -> Sequence[sa.Row[Any]]:
        return await self._matching(" AND ".join(_quoted([word]) for word in words), asked)

    async def with_any(self, words: Sequence[str], asked: _Asked) -> Sequence[sa.Row[Any]]:
        return await self._matching(_quoted(words), asked) if words else []

    async def _matching(self, words: str, asked: _Asked) -> Sequence[sa.Row[Any]]:
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


class _Gin(_Index):
    """PostgreSQL's. It reads a word's whole list first, so a common one is sampled."""

    def __init__(self, connection: Connection) -> None:
        super().__init__(connection)
        self._newest_words: Counter[str] = Counter()

    async def prepare(self) -> None:
        newest = await self._connection.scalars(
            sa.select(incidents.c.words).order_by(incidents.c.number.desc()).limit(_PG_LOOK)
        )
        for words in newest:
            self._newest_words.update(words.split())
        # A wrong guess of the planner, a scan of the table or along its key, would take seconds, and
        # compiling a plan longer than running it.
        for setting in ("enable_seqscan", "enable_indexscan", "jit"):
            await self._connection.execute(sa.text(f"SET LOCAL {setting} = off"))
        await self._set_sample(RARE * 4)

    async def count(self, word: str) -> int:
        seen = self._newest_words[word]
        if seen >= _PG_COMMON:
            return RARE + seen
        held = sa.select(sa.literal(1)).where(_words().contains([word])).limit(RARE + 1)
        return (
            await self._connection.scalar(sa.select(sa.func.count()).select_from(held.subquery()))
            or 0
        )

    async def with_all(self, words: Sequence[str], asked: _Asked) -> Sequence[sa.Row[Any]]:
        await self._set_sample(0 if asked.rare else _PG_SAMPLE)
        together = list(words) if asked.rare else list(words)[:_PG_ALL_OF]
        return await self._newest(self._labelled(_words().contains(together), asked), asked)

    async def with_any(self, words: Sequence[str], asked: _Asked) -> Sequence[sa.Row[Any]]:
        if set(words) <= set(asked.rare):
            await self._set_sample(0)
            overlapping = self._labelled(_words().overlap(list(words)), asked)
            return await self._newest(overlapping, asked) if words else []
        # A list is sampled only when each word of a query is common: one word at a time.
        await self._set_sample(_PG_SAMPLE)
        found: list[sa.Row[Any]] = []
        for word in words[:_PG_WORDS]:
            found += await self._newest(self._labelled(_words().contains([word]), asked), asked)
        return found

    @staticmethod
    def _labelled(condition: sa.ColumnElement[bool], asked: _Asked) -> sa.ColumnElement[bool]:
        if asked.labels:
            condition &= _words().contains(list(asked.labels))
        return condition & _words().overlap(list(asked.months)) if asked.months else condition

    async def _set_sample(self, most: int) -> None:
        await self._connection.execute(sa.text(f"SET LOCAL gin_fuzzy_search_limit = {int(most)}"))


def _words() -> Any:
    return sa.type_coerce(
        sa.func.string_to_array(incidents.c.words, sa.literal_column("' '")),
        sa.dialects.postgresql.ARRAY(sa.Text()),
    )


def _index_of(connection: Connection) -> _Index:
    return _Gin(connection) if connection.dialect.name == "postgresql" else _Fts5(connection)
