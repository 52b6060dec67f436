"""PostgreSQL's index of words, GIN.

It reads a word's whole list before anything else, which for a common word exceeds the time limit.
So only the most selective words use it; its rows are then searched for the rest. Words that are
common everywhere are looked for in the newest incidents, by key.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from bot.store.incident_query import CANDIDATES, IncidentSearch, newest
from bot.store.tables import incidents

RARE = 50
# Of so many newest incidents, a word in more than these is common everywhere.
LOOK, COMMON = 500, 10
WINDOW = 5000  # the newest incidents that common words are looked for in
# Longer lists are read at random places only, about so many of each; of several that must all hold
# a word, more are read, or few would be in all of them.
SAMPLE, SAMPLE_OF_SEVERAL = 1000, 10_000
SAMPLE_OF_EACH, MOST_SAMPLED = 400, 2
_COUNT_OF_COMMON = 10_000  # more than any that is counted, so that it weighs less


class GinWords:
    """A `WordIndex`. Its settings hold within a transaction, which it must be in."""

    rare_at_most = RARE

    def __init__(self, connection: AsyncConnection) -> None:
        self._connection = connection
        self._newest_with: Mapping[str, int] = {}
        self._everywhere: frozenset[str] = frozenset()

    async def counts(self, words: Sequence[str]) -> Mapping[str, int]:
        """Up to RARE + 1 of each that is not common everywhere."""
        seen = self._newest_with = await self._seen(words)
        self._everywhere = frozenset(word for word, count in seen.items() if count >= COMMON)
        counted = await self._counted([word for word in words if word not in self._everywhere])
        found = {word: _COUNT_OF_COMMON + seen[word] for word in self._everywhere} | counted
        return {word: found[word] for word in words if found.get(word)}

    async def with_all(self, asked: IncidentSearch) -> Sequence[sa.Row[Any]]:
        if asked.rare:
            rest = [*asked.common, *asked.labels]
            return await self._found(
                _words().contains(asked.rare) & _each_of(rest) & _months(asked), asked
            )
        lists = [*self._medium(asked), *asked.labels]
        if lists or asked.months:
            everywhere = _each_of([word for word in asked.common if word in self._everywhere])
            selective = _in_index(lists, asked.months)
            alone = len(lists) + bool(asked.months) == 1
            sample = SAMPLE if alone else SAMPLE_OF_SEVERAL
            return await self._found(selective & everywhere, asked, sample)
        return await self._in_window(_each_of(asked.common), asked)

    async def with_rare(self, asked: IncidentSearch) -> Sequence[sa.Row[Any]]:
        labelled = _each_of(asked.labels) & _months(asked)
        found: list[sa.Row[Any]] = []
        for group in asked.rare_groups:
            found += await self._found(_words().overlap(group) & labelled, asked)
        return found

    async def with_any(self, asked: IncidentSearch) -> Sequence[sa.Row[Any]]:
        """Incidents that hold a common word: rather one that is not common everywhere."""
        everywhere = [word for word in asked.common if word in self._everywhere]
        labelled = _each_of(asked.labels) & _months(asked)
        found: list[sa.Row[Any]] = []
        # One at a time: of several lists none is sampled unless all of them are long.
        for word in self._medium(asked)[:MOST_SAMPLED]:
            held = _words().contains([word])
            found += await self._found(held & labelled, asked, SAMPLE_OF_EACH)
        if everywhere and len(found) < CANDIDATES:
            found += await self._with_everywhere(_one_of(everywhere), asked)
        return found

    async def _with_everywhere(
        self, condition: sa.ColumnElement[bool], asked: IncidentSearch
    ) -> Sequence[sa.Row[Any]]:
        if asked.labels or asked.months:
            selective = _in_index(list(asked.labels), asked.months)
            return await self._found(selective & condition, asked, SAMPLE)
        return await self._in_window(condition, asked)

    def _medium(self, asked: IncidentSearch) -> list[str]:
        medium = [word for word in asked.common if word not in self._everywhere]
        return sorted(medium, key=lambda word: self._newest_with[word])

    async def _seen(self, words: Sequence[str]) -> Mapping[str, int]:
        look = (
            sa.select(_words().label("held"))
            .order_by(incidents.c.number.desc())
            .limit(LOOK)
            .subquery()
        )
        held = sa.type_coerce(look.c.held, _ARRAY)
        columns = [sa.func.count().filter(held.contains([word])) for word in words]
        row = (await self._connection.execute(sa.select(*columns).select_from(look))).one()
        return dict(zip(words, row, strict=True))

    async def _counted(self, words: Sequence[str]) -> dict[str, int]:
        if not words:
            return {}
        await self._set(indexed=True, sample=SAMPLE)
        columns = []
        for word in words:
            held = sa.select(sa.literal(1)).where(_words().contains([word])).limit(RARE + 1)
            columns.append(
                sa.select(sa.func.count()).select_from(held.subquery()).scalar_subquery()
            )
        row = (await self._connection.execute(sa.select(*columns))).one()
        return dict(zip(words, row, strict=True))

    async def _found(
        self, condition: sa.ColumnElement[bool], asked: IncidentSearch, sample: int = 0
    ) -> Sequence[sa.Row[Any]]:
        await self._set(indexed=True, sample=sample)
        return await newest(self._connection, condition, asked)

    async def _in_window(
        self, condition: sa.ColumnElement[bool], asked: IncidentSearch
    ) -> Sequence[sa.Row[Any]]:
        await self._set(indexed=False, sample=0)
        last = sa.select(sa.func.max(incidents.c.number)).scalar_subquery()
        return await newest(
            self._connection, (incidents.c.number > last - WINDOW) & condition, asked
        )

    async def _set(self, *, indexed: bool, sample: int) -> None:
        """A wrong guess of the planner would take seconds, and compiling a plan longer than running it."""
        by_key = "off" if indexed else "on"
        settings = {
            "enable_seqscan": "off",
            "enable_indexscan": by_key,
            "enable_bitmapscan": "on" if indexed else "off",
            "jit": "off",
            "gin_fuzzy_search_limit": str(sample),
        }
        await self._connection.execute(
            sa.select(*(sa.func.set_config(name, value, True) for name, value in settings.items()))
        )


_ARRAY = sa.dialects.postgresql.ARRAY(sa.Text())


def _words() -> Any:
    split = sa.func.string_to_array(incidents.c.words, sa.literal_column("' '"))
    return sa.type_coerce(split, _ARRAY)


def _in_index(each: Sequence[str], one_of: Sequence[str]) -> sa.ColumnElement[bool]:
    condition = sa.true()
    if each:
        condition &= _words().contains(list(each))
    return condition & _words().overlap(list(one_of)) if one_of else condition


def _holds(word: str) -> sa.ColumnElement[bool]:
    """Looked for in the row, never in the index. Words are separated by one blank."""
    padded = sa.literal(" ").concat(incidents.c.words).concat(" ")
    return sa.func.strpos(padded, f" {word} ") > 0


def _each_of(words: Sequence[str]) -> sa.ColumnElement[bool]:
    return sa.and_(sa.true(), *(_holds(word) for word in words))


def _one_of(words: Sequence[str]) -> sa.ColumnElement[bool]:
    return sa.or_(sa.false(), *(_holds(word) for word in words))


def _months(asked: IncidentSearch) -> sa.ColumnElement[bool]:
    return _one_of(asked.months) if asked.months else sa.true()
