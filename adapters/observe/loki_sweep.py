"""The log lines of many products in a few requests: counted first, then read by shares.

Newest-first over many products would give one chatty product everything.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Final

from adapters.observe.backend import Backend
from adapters.observe.cursor import Position
from adapters.observe.instants import check_order, to_ns
from adapters.observe.line_filter import as_pipeline
from adapters.observe.loki_answer import Entry, counts_of, level_stages, line_of
from adapters.observe.loki_places import LokiPlaces
from adapters.observe.loki_selector import Selecting
from tools.capabilities import LogLine, LogSweepQuery, SweptLogs

Newest = Callable[[str, Position, int], Awaitable[Sequence[Entry]]]

_MOST_AT_ONCE: Final = 5000  # entries of one answer, Loki's own default limit
_MOST_TOGETHER: Final = 2  # requests that read products whole, the quiet ones first
_MOST_SHARED: Final = 2  # requests for the loud ones, the quieter and the louder half
_LEAST_SHARE: Final = 500  # lines


@dataclass(frozen=True, slots=True)
class _Read:
    """One request: products that are selected alike, and how many lines."""

    way: Selecting
    products: Sequence[str]
    limit: int


class LokiSweep:
    """Reads for one query."""

    def __init__(self, backend: Backend, places: LokiPlaces, newest: Newest) -> None:
        self._backend = backend
        self._places = places
        self._newest = newest

    async def read(self, query: LogSweepQuery) -> SweptLogs:
        """As the Logs port says."""
        check_order(query.interval)
        stages = [level_stages(query.min_level)] if query.min_level else []
        pipeline = " ".join([*stages, as_pipeline(query.filter)]).strip()
        products = tuple(dict.fromkeys(query.products))
        ways = await self._places.selecting(products, query.interval)
        counted = await asyncio.gather(
            *(self._count(way, members, pipeline, query) for way, members in ways)
        )
        reads = [
            read
            for (way, members), counts in zip(ways, counted, strict=True)
            for read in _reads(way, members, counts, query.limit)
        ]
        found = await asyncio.gather(*(self._lines(read, pipeline, query) for read in reads))
        lines: dict[str, list[LogLine]] = {}
        for part in found:
            for product, line in part:
                lines.setdefault(product, []).append(line)
        counts = sum(counted, Counter[str]())
        return SweptLogs(lines, dict(counts), _notes(lines, counts), len(ways) + len(reads))

    async def _count(
        self, way: Selecting, members: Sequence[str], pipeline: str, query: LogSweepQuery
    ) -> Counter[str]:
        seconds = round((query.interval.end - query.interval.start).total_seconds())
        counted = f"count_over_time({way.of(members)} {pipeline} [{max(1, seconds)}s])"
        params = {
            "query": f"sum by ({way.label}) ({counted})",
            "time": str(to_ns(query.interval.end) - 1),  # it looks at what is after its start
        }
        counts: Counter[str] = Counter()
        for labels, count in counts_of(await self._backend.get("/loki/api/v1/query", params)):
            for product in members:
                if way.matches(product, labels.get(way.label, "")):
                    counts[product] += count
        return counts

    async def _lines(
        self, read: _Read, pipeline: str, query: LogSweepQuery
    ) -> list[tuple[str, LogLine]]:
        position = Position(to_ns(query.interval.start), to_ns(query.interval.end))
        logql = f"{read.way.of(read.products)} {pipeline}".strip()
        entries = sorted(await self._newest(logql, position, read.limit))
        return [
            (product, line_of(entry))
            for entry in entries
            for product in read.products
            if read.way.matches(product, entry.labels.get(read.way.label, ""))
        ]


def _reads(way: Selecting, members: Sequence[str], counts: Counter[str], limit: int) -> list[_Read]:
    """Products read whole as far as that goes, the loud ones with a share of what is left."""
    waiting = sorted((p for p in members if counts[p]), key=lambda product: counts[product])
    reads: list[_Read] = []
    left = limit
    while waiting and len(reads) < _MOST_TOGETHER:
        together: list[str] = []
        size = 0
        while waiting and size + counts[waiting[0]] <= min(_MOST_AT_ONCE, left):
            size += counts[waiting[0]]
            together.append(waiting.pop(0))
        if not together:
            break
        reads.append(_Read(way, together, size))
        left -= size
    half = -(-len(waiting) // _MOST_SHARED)
    shared = [loud for loud in (waiting[:half], waiting[half:]) if loud]
    for loud in shared:
        share = max(left // len(shared), _LEAST_SHARE)
        size = sum(counts[product] for product in loud)
        reads.append(_Read(way, loud, min(_MOST_AT_ONCE, share, size)))
    return reads


def _notes(lines: dict[str, list[LogLine]], counts: Counter[str]) -> list[str]:
    cut = [product for product, count in counts.items() if len(lines.get(product, ())) < count]
    if not cut:
        return []
    return [f"only the newest lines were read of: {', '.join(sorted(cut)[:10])}"]
