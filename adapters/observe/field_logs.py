"""The Logs port over a backend with fields: VictoriaLogs, Elasticsearch, CloudWatch."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from adapters.observe.cursor import CursorCodec, Position, page_size, resume, suspend
from adapters.observe.field_places import FieldPlaces, FoundField
from adapters.observe.instants import check_order, to_ns
from adapters.observe.levels import at_least
from adapters.observe.line_filter import line_test, stages_of
from adapters.observe.log_entry import Newest, lines_of, unlevelled
from adapters.observe.log_page import next_page
from adapters.observe.log_source import LogSource, Wanted
from adapters.observe.log_sweep import LogSweep, Share
from adapters.observe.loki_selector import check_product
from tools.capabilities import Interval, LogPage, LogQuery, LogsFound, LogSweepQuery, SweptLogs
from tools.errors import InvalidArguments
from tools.outside_json import Unread

_SHOWN_VALUES: Final = 20
_SAMPLE: Final = 20
_OF_A_LOOK: Final = 2  # requests: the fields, and the lines found by them


class FieldLogs:
    """Log lines of a source. `product_field` names a product; empty: it is found."""

    def __init__(
        self,
        source: LogSource,
        codec: CursorCodec,
        product_field: str = "",
        preferred_fields: Sequence[str] = (),
    ) -> None:
        self._source = source
        self._codec = codec
        self._places = FieldPlaces(source, product_field, preferred_fields)
        self._sweeps = LogSweep(self._places, self._counts, self._newest_of, source.most)

    async def query(self, query: LogQuery) -> LogPage:
        """Newest first. `total_matches` is known only when the first page is the last."""
        _check(query.filter, query.min_level)
        check_product(query.product)
        position = resume(query, self._codec)
        way = await self._way(query)
        keep = None if self._source.filters(query.filter) else line_test(query.filter)

        values = way.of([query.product])

        async def read(at: Position, limit: int) -> Newest:
            end_ns = at.end_ns if at.last_ns is None else at.last_ns + 1
            asked = (at.start_ns, end_ns, query.min_level, query.filter)
            return await self._source.newest(Wanted(way.label, values, *asked), limit)

        page = await next_page(read, position, page_size(query), self._source.most, keep)
        lines = lines_of(page.entries)
        notes = Unread(page.unread).notes("log lines")
        if page.behind is None:
            first = position.last_ns is None
            if first and not lines and query.min_level:
                of_any = Wanted(way.label, values, position.start_ns, position.end_ns)
                sample = await self._source.newest(of_any, _SAMPLE)
                notes += unlevelled(lines_of(sample.entries))
            return LogPage(lines, total_matches=len(lines) if first else None, notes=notes)
        if keep and len(lines) < page_size(query):
            notes += _searched(page.looked_at)
        return LogPage(lines, suspend(query, page.behind, self._codec), notes=notes)

    async def discover(self, products: Sequence[str], interval: Interval) -> LogsFound:
        """Which of these have lines, a day before at the earliest; all that are known else."""
        check_order(interval)
        wanted = tuple(dict.fromkeys(products)) or tuple(await self._places.products(interval))
        ways = await self._places.selecting(wanted, interval)
        there = {product for _way, members in ways for product in members}
        labels = {way.label: len(members) for way, members in ways}
        without = tuple(product for product in wanted if product not in there)
        return LogsFound(wanted, without, labels, requests=_OF_A_LOOK)

    async def count(self, queries: Sequence[LogSweepQuery]) -> Sequence[Mapping[str, int]]:
        return await self._sweeps.count(queries)

    async def sweep(self, query: LogSweepQuery) -> SweptLogs:
        _check(query.filter, query.min_level)
        found = await self._sweeps.read(query)
        if self._source.filters(query.filter):
            return found
        looked = (
            f"{self._source.name} cannot search by this filter: at most the newest {self._source.most} "
            "lines of the products together were looked through for it"
        )
        return replace(found, notes=(*found.notes, looked))

    async def _way(self, query: LogQuery) -> FoundField:
        ways = await self._places.selecting([query.product], query.interval)
        if ways:
            return ways[0][0]
        known = await self._places.products(query.interval)
        there = f"; there are {len(known)}: {', '.join(known[:_SHOWN_VALUES])}"
        if not known:
            there = ", nor of any other: no field names products, or product_field is a wrong one"
        raise InvalidArguments(
            f"no lines of {query.product!r} within a day of this range in {self._source.name}{there}"
        )

    async def _newest_of(self, share: Share[FoundField], query: LogSweepQuery) -> Newest:
        exact = self._source.filters(query.filter)
        limit = share.limit if exact else self._source.most
        found = await self._source.newest(_wanted(share.way, share.products, query), limit)
        keep = line_test("" if exact else query.filter)
        return replace(found, entries=[entry for entry in found.entries if keep(entry.line)])

    async def _counts(self, queries: Sequence[LogSweepQuery]) -> list[Mapping[str, int]]:
        return await asyncio.gather(*(self._count(query) for query in queries))

    async def _count(self, query: LogSweepQuery) -> Mapping[str, int]:
        _check(query.filter, query.min_level)
        counts: dict[str, int] = {}
        for way, members in await self._places.selecting(query.products, query.interval):
            if self._source.filters(query.filter):
                found = await self._source.counts(_wanted(way, members, query))
            else:
                share = Share(way, members, self._source.most)
                newest = await self._newest_of(share, query)
                values = [entry.labels.get(way.label, "") for entry in newest.entries]
                found = {value: values.count(value) for value in set(values)}
            for product in members:
                count = sum(n for value, n in found.items() if way.matches(product, value))
                if count:
                    counts[product] = counts.get(product, 0) + count
        return counts


def _check(text: str, min_level: str) -> None:
    stages_of(text)
    if min_level:
        at_least(min_level)


def _wanted(way: FoundField, products: Sequence[str], query: LogSweepQuery) -> Wanted:
    start, end = to_ns(query.interval.start), to_ns(query.interval.end)
    return Wanted(way.label, way.of(products), start, end, query.min_level, query.filter)


def _searched(number: int) -> tuple[str, ...]:
    return (
        f"looked through {number} lines for the filter, which this backend cannot search by; the next "
        "page looks further back",
    )
