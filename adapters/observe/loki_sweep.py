"""The log lines of many products in a few requests: counted first, then read by shares.

Newest-first over many products would give one chatty product everything.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

from adapters.observe.backend import Backend
from adapters.observe.cursor import Position
from adapters.observe.instants import check_order, to_ns
from adapters.observe.line_filter import as_pipeline
from adapters.observe.loki_answer import Entry, counts_of, level_stages, line_of
from adapters.observe.loki_places import LokiPlaces
from adapters.observe.loki_selector import Selecting
from adapters.observe.remembered import Remembered
from tools.capabilities import LogLine, LogSweepQuery, SweptLogs
from tools.errors import InvalidArguments, UpstreamFailed

Newest = Callable[[str, Position, int], Awaitable[tuple[Sequence[Entry], bool]]]
Way = tuple[Selecting, Sequence[str]]

_MOST_AT_ONCE: Final = 5000  # entries of one answer, Loki's own default limit
_LEAST_SHARE: Final = 500  # lines
_PART: Final = "kortex_part"  # which of the counts of one request
# An investigation looks at the same time again within seconds; the lines are tens of megabytes.
_LINES_LAST: Final = timedelta(minutes=1)
_MOST_SWEEPS: Final = 6


@dataclass(frozen=True, slots=True)
class _Read:
    """One request: products that are selected alike, and how many lines."""

    way: Selecting
    products: Sequence[str]
    limit: int


class LokiSweep:
    """Counts and reads, and for a minute knows what it read. `newest` says whether there is more."""

    def __init__(self, backend: Backend, places: LokiPlaces, newest: Newest) -> None:
        self._backend = backend
        self._places = places
        self._newest = newest
        self._counted: Remembered[Sequence[Mapping[str, int]]] = Remembered(_LINES_LAST)
        self._swept: Remembered[SweptLogs] = Remembered(_LINES_LAST, _MOST_SWEEPS)

    async def count(self, queries: Sequence[LogSweepQuery]) -> Sequence[Mapping[str, int]]:
        """As the Logs port says, in one request."""
        wanted = tuple(_named(query) for query in queries)
        return await self._counted.get(wanted, lambda: self._counts(wanted))

    async def read(self, query: LogSweepQuery) -> SweptLogs:
        """As the Logs port says. Not counted, it is read at once where that holds everything."""
        wanted = _named(query)
        asked = False

        async def reading() -> SweptLogs:
            nonlocal asked
            asked = True
            return await self._read(wanted)

        found = await self._swept.get(wanted, reading)
        return found if asked else replace(found, requests=0)

    async def _read(self, query: LogSweepQuery) -> SweptLogs:
        ways = await self._places.selecting(query.products, query.interval)
        counts, requests = query.counts, 0
        if counts is None:
            whole = [_Read(way, members, min(_MOST_AT_ONCE, query.limit)) for way, members in ways]
            lines, is_cut = await self._lines(whole, query)
            if not is_cut:
                read = {product: len(of) for product, of in lines.items()}
                return SweptLogs(lines, read, (), len(whole))
            (counts,) = await self._counts([query])
            requests = len(whole) + 1
        reads = [
            read for way, members in ways for read in _reads(way, members, counts, query.limit)
        ]
        lines, _is_cut = await self._lines(reads, query)
        return SweptLogs(lines, dict(counts), _notes(lines, counts), requests + len(reads))

    async def _lines(
        self, reads: Sequence[_Read], query: LogSweepQuery
    ) -> tuple[dict[str, list[LogLine]], bool]:
        """By product, and whether there is more than was read."""
        found = await asyncio.gather(*(self._one(read, query) for read in reads))
        lines: dict[str, list[LogLine]] = {}
        for entries, _more in found:
            for product, line in entries:
                lines.setdefault(product, []).append(line)
        return lines, any(more for _entries, more in found)

    async def _one(
        self, read: _Read, query: LogSweepQuery
    ) -> tuple[list[tuple[str, LogLine]], bool]:
        position = Position(to_ns(query.interval.start), to_ns(query.interval.end))
        logql = f"{read.way.of(read.products)} {_pipeline(query)}".strip()
        entries, more = await self._newest(logql, position, read.limit)
        of_products = [
            (product, line_of(entry))
            for entry in sorted(entries)
            for product in read.products
            if read.way.matches(product, entry.labels.get(read.way.label, ""))
        ]
        return of_products, more

    async def _counts(self, queries: Sequence[LogSweepQuery]) -> list[Mapping[str, int]]:
        """Each query in each way, joined in one request; one by one where Loki takes no such."""
        for query in queries:
            check_order(query.interval)
        parts = [
            (number, way)
            for number, query in enumerate(queries)
            for way in await self._places.selecting(query.products, query.interval)
        ]
        end = max(query.interval.end for query in queries)
        texts = [_counting(way, queries[number], end) for number, way in parts]
        try:
            rows = [await self._rows(texts, end)] if parts else []
        except (InvalidArguments, UpstreamFailed) as error:
            if len(parts) == 1 or getattr(error, "status", 400) != 400:
                raise
            rows = await asyncio.gather(
                *(self._rows([*[""] * at, text], end) for at, text in enumerate(texts))
            )
        counts: list[Counter[str]] = [Counter() for _ in queries]
        for labels, count in (row for of in rows for row in of):
            number, (way, members) = parts[int(labels.get(_PART, "0"))]
            for product in members:
                if way.matches(product, labels.get(way.label, "")):
                    counts[number][product] += count
        return list(counts)

    async def _rows(
        self, texts: Sequence[str], end: datetime
    ) -> Sequence[tuple[Mapping[str, str], int]]:
        """Rows marked by the place of their text; an empty one is not asked for."""
        marked = [
            f'label_replace({text}, "{_PART}", "{at}", "", "")'
            for at, text in enumerate(texts)
            if text
        ]
        form = {
            "query": " or ".join(marked),
            "time": str(to_ns(end) - 1),  # it looks at what is after its start
        }
        return counts_of(await self._backend.post_form("/loki/api/v1/query", form))


def _named(query: LogSweepQuery) -> LogSweepQuery:
    """The same, as a key. Raises InvalidArguments for an interval that is none."""
    check_order(query.interval)
    return replace(query, products=tuple(dict.fromkeys(query.products)))


def _pipeline(query: LogSweepQuery) -> str:
    levels = level_stages(query.min_level) if query.min_level else ""
    return f"{levels} {as_pipeline(query.filter)}".strip()


def _counting(way: Way, query: LogSweepQuery, end: datetime) -> str:
    """Lines by label, of a time that may have ended before `end`."""
    selecting, members = way
    seconds = max(1, round((query.interval.end - query.interval.start).total_seconds()))
    before = round((end - query.interval.end).total_seconds())
    offset = f" offset {before}s" if before else ""
    selected = f"{selecting.of(members)} {_pipeline(query)}".strip()
    return f"sum by ({selecting.label}) (count_over_time({selected} [{seconds}s]{offset}))"


def _reads(
    way: Selecting, members: Sequence[str], counts: Mapping[str, int], limit: int
) -> list[_Read]:
    """The quiet ones whole in one request, the loud ones share what is left in another."""
    waiting = sorted((p for p in members if counts.get(p)), key=lambda product: counts[product])
    together: list[str] = []
    size = 0
    while waiting and size + counts[waiting[0]] <= min(_MOST_AT_ONCE, limit):
        size += counts[waiting[0]]
        together.append(waiting.pop(0))
    reads = [_Read(way, together, size)] if together else []
    if waiting:
        left = max(limit - size, _LEAST_SHARE)
        reads.append(_Read(way, waiting, min(_MOST_AT_ONCE, left, sum(counts[p] for p in waiting))))
    return reads


def _notes(lines: dict[str, list[LogLine]], counts: Mapping[str, int]) -> list[str]:
    cut = [product for product, count in counts.items() if len(lines.get(product, ())) < count]
    if not cut:
        return []
    return [f"only the newest lines were read of: {', '.join(sorted(cut)[:10])}"]
