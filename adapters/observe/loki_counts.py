"""How many log lines of many products match, asked of Loki in one request."""

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final

from adapters.observe.backend import Backend
from adapters.observe.instants import check_order, to_ns
from adapters.observe.line_filter import as_pipeline
from adapters.observe.loki_answer import counts_of, level_stages
from adapters.observe.loki_places import LokiPlaces
from adapters.observe.loki_selector import Selecting
from tools.capabilities import LogSweepQuery
from tools.errors import InvalidArguments, UpstreamFailed

Way = tuple[Selecting, Sequence[str]]

_PART: Final = "kortex_part"  # which of the counts of one request


class LokiCounts:
    def __init__(self, backend: Backend, places: LokiPlaces) -> None:
        self._backend = backend
        self._places = places

    async def __call__(self, queries: Sequence[LogSweepQuery]) -> list[Mapping[str, int]]:
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
        marked = [
            f'label_replace({text}, "{_PART}", "{at}", "", "")'
            for at, text in enumerate(texts)
            if text
        ]
        form = {
            "query": " or ".join(marked),
            "time": str(to_ns(end) - 1),  # the start is exclusive
        }
        return counts_of(await self._backend.post_form("/loki/api/v1/query", form))


def pipeline(query: LogSweepQuery) -> str:
    levels = level_stages(query.min_level) if query.min_level else ""
    return f"{levels} {as_pipeline(query.filter)}".strip()


def _counting(way: Way, query: LogSweepQuery, end: datetime) -> str:
    selecting, members = way
    seconds = max(1, round((query.interval.end - query.interval.start).total_seconds()))
    before = round((end - query.interval.end).total_seconds())
    offset = f" offset {before}s" if before else ""
    selected = f"{selecting.of(members)} {pipeline(query)}".strip()
    return f"sum by ({selecting.label}) (count_over_time({selected} [{seconds}s]{offset}))"
