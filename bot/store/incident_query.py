"""The query of a word index, and the interface of every such index."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from bot.store.tables import incidents
from tools.capabilities import IncidentQuery
from tools.search_words import TITLE_BONUS, month_labels, product_label, weight, words_of

CANDIDATES = 200
MAX_MONTHS = 24


@dataclass(frozen=True, slots=True)
class IncidentSearch:
    """`counts` says in how many incidents each word is, as far as its index counts."""

    counts: Mapping[str, int]
    labels: tuple[str, ...]  # each must be there
    months: tuple[str, ...]  # one of them must be there
    where: sa.ColumnElement[bool]
    rare_at_most: int

    @property
    def rare(self) -> list[str]:
        """Words in so few incidents that all of those are read."""
        return [word for word, count in self.counts.items() if count <= self.rare_at_most]

    @property
    def rare_groups(self) -> list[list[str]]:
        """The rare words, each to be read with those beside it.

        The rarest first, as many as can all be read: what holds one of them is not to be crowded
        out by newer incidents that hold a less rare one.
        """
        rarest: list[str] = []
        others: list[str] = []
        read = 0
        for word in sorted(self.rare, key=lambda word: self.counts[word]):
            read += self.counts[word]
            (rarest if read <= CANDIDATES else others).append(word)
        return [group for group in (rarest, others) if group]

    @property
    def common(self) -> list[str]:
        return [word for word, count in self.counts.items() if count > self.rare_at_most]

    def best(self, rows: Iterable[sa.Row[Any]], limit: int) -> list[sa.Row[Any]]:
        """The rows that answer best, newer ones first among equals."""
        held = [(weight(self.counts, set(row.words.split()), ()), row) for row in rows]
        held.sort(key=lambda pair: -pair[0])
        # Only words that can still rank are made from titles.
        least = held[:limit][-1][0] / (1.0 + TITLE_BONUS) if held else 0.0
        near = [row for score, row in held if score >= least]
        return sorted(near, key=lambda row: (-self._weight(row), -row.number))[:limit]

    def _weight(self, row: sa.Row[Any]) -> float:
        return weight(self.counts, set(row.words.split()), set(words_of(row.title)))


class WordIndex(Protocol):
    """The index of words of one database. Every read is bounded and newest first."""

    @property
    def rare_at_most(self) -> int: ...

    async def counts(self, words: Sequence[str]) -> Mapping[str, int]:
        """Of each word that is in some incident, in how many; above `rare_at_most` a guess."""
        ...

    async def with_all(self, asked: IncidentSearch) -> Sequence[sa.Row[Any]]: ...

    async def with_rare(self, asked: IncidentSearch) -> Sequence[sa.Row[Any]]: ...

    async def with_any(self, asked: IncidentSearch) -> Sequence[sa.Row[Any]]:
        """Incidents with a common word, when there are too few others."""
        ...


def asked_of(query: IncidentQuery, counts: Mapping[str, int], rare_at_most: int) -> IncidentSearch:
    """The question in words, labels and conditions."""
    months: list[str] = []
    where = (
        incidents.c.scope.in_(["", query.channel]) if query.channel else (incidents.c.scope == "")
    )
    if query.interval is not None:
        months = month_labels(query.interval.start, query.interval.end)
        where &= incidents.c.opened_at >= query.interval.start
        where &= incidents.c.opened_at < query.interval.end
    return IncidentSearch(
        counts,
        (product_label(query.product),) if query.product else (),
        tuple(months) if len(months) <= MAX_MONTHS else (),
        where,
        rare_at_most,
    )


async def newest(
    connection: AsyncConnection, condition: sa.ColumnElement[bool], asked: IncidentSearch
) -> Sequence[sa.Row[Any]]:
    found = await connection.execute(
        sa.select(incidents)
        .where(condition, asked.where)
        .order_by(incidents.c.number.desc())
        .limit(CANDIDATES)
    )
    return found.all()
