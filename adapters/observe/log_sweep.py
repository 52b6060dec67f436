"""The log lines of many products in a few requests: counted first, then read by shares.

Newest-first over many products would give one chatty product everything.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Final, Generic, Protocol, TypeVar

from adapters.observe.instants import check_order
from adapters.observe.log_entry import Newest, in_order, line_of
from adapters.observe.remembered import Remembered
from tools.capabilities import Interval, LogLine, LogSweepQuery, SweptLogs
from tools.outside_json import Unread

_LEAST_SHARE: Final = 500  # lines
# An investigation looks at the same time again within seconds; the lines are tens of megabytes.
_LINES_LAST: Final = timedelta(minutes=1)
_MOST_SWEEPS: Final = 6


class ProductSelector(Protocol):
    """How a group of products is found: by a label whose values name them."""

    @property
    def label(self) -> str: ...

    def matches(self, product: str, value: str) -> bool: ...


WayT = TypeVar("WayT", bound=ProductSelector)
WayT_co = TypeVar("WayT_co", bound=ProductSelector, covariant=True)
Counts = Callable[[Sequence[LogSweepQuery]], Awaitable[Sequence[Mapping[str, int]]]]


class ProductSelectors(Protocol[WayT_co]):
    async def selecting(
        self, products: Sequence[str], interval: Interval
    ) -> Sequence[tuple[WayT_co, Sequence[str]]]:
        """Products grouped by way; products without data are left out."""
        ...


@dataclass(frozen=True, slots=True)
class Share(Generic[WayT]):
    """One request: products found the same way, and the most lines to read."""

    way: WayT
    products: Sequence[str]
    limit: int


# Reads the newest entries of a share.
ReadShare = Callable[[Share[WayT], LogSweepQuery], Awaitable[Newest]]


@dataclass(frozen=True, slots=True)
class _Lines:
    """Lines by product. `is_cut`: there are more than were read."""

    lines: dict[str, list[LogLine]]
    is_cut: bool
    notes: Sequence[str]


class LogSweep(Generic[WayT]):
    """Reads, and for a minute knows what it read. `most` entries fit one answer."""

    def __init__(
        self, ways: ProductSelectors[WayT], counts: Counts, newest: ReadShare[WayT], most: int
    ) -> None:
        self._ways = ways
        self._counts = counts
        self._newest = newest
        self._most = most
        self._counted: Remembered[Sequence[Mapping[str, int]]] = Remembered(_LINES_LAST)
        self._swept: Remembered[SweptLogs] = Remembered(_LINES_LAST, _MOST_SWEEPS)

    async def count(self, queries: Sequence[LogSweepQuery]) -> Sequence[Mapping[str, int]]:
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
        ways = await self._ways.selecting(query.products, query.interval)
        counts, requests = query.counts, 0
        if counts is None:
            whole = [Share(way, members, min(self._most, query.limit)) for way, members in ways]
            found = await self._lines(whole, query)
            if not found.is_cut:
                read = {product: len(of) for product, of in found.lines.items()}
                return SweptLogs(found.lines, read, found.notes, len(whole))
            (counts,) = await self._counts([query])
            requests = len(whole) + 1
        reads = [
            read
            for way, members in ways
            for read in self._shares(way, members, counts, query.limit)
        ]
        found = await self._lines(reads, query)
        notes = (*_notes(found.lines, counts), *found.notes)
        return SweptLogs(found.lines, dict(counts), notes, requests + len(reads))

    async def _lines(self, reads: Sequence[Share[WayT]], query: LogSweepQuery) -> _Lines:
        answers = await asyncio.gather(*(self._newest(read, query) for read in reads))
        lines: dict[str, list[LogLine]] = {}
        for read, answer in zip(reads, answers, strict=True):
            for entry in await in_order(answer.entries):
                for product in read.products:
                    if read.way.matches(product, entry.labels.get(read.way.label, "")):
                        lines.setdefault(product, []).append(line_of(entry))
        unread = Unread(sum(answer.unread for answer in answers))
        return _Lines(lines, any(answer.more for answer in answers), unread.notes("log lines"))

    def _shares(
        self, way: WayT, members: Sequence[str], counts: Mapping[str, int], limit: int
    ) -> list[Share[WayT]]:
        """The quiet products whole in one request; the loud ones share the rest in another."""
        waiting = sorted((p for p in members if counts.get(p)), key=lambda product: counts[product])
        together: list[str] = []
        size = 0
        while waiting and size + counts[waiting[0]] <= min(self._most, limit):
            size += counts[waiting[0]]
            together.append(waiting.pop(0))
        reads = [Share(way, together, size)] if together else []
        if waiting:
            left = max(limit - size, _LEAST_SHARE)
            reads.append(
                Share(way, waiting, min(self._most, left, sum(counts[p] for p in waiting)))
            )
        return reads


def _named(query: LogSweepQuery) -> LogSweepQuery:
    check_order(query.interval)
    return replace(query, products=tuple(dict.fromkeys(query.products)))


def _notes(lines: dict[str, list[LogLine]], counts: Mapping[str, int]) -> list[str]:
    cut = [product for product, count in counts.items() if len(lines.get(product, ())) < count]
    if not cut:
        return []
    return [f"only the newest lines were read of: {', '.join(sorted(cut)[:10])}"]
