"""Log lines of a recorded incident: pages, sweeps and counts."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from difflib import get_close_matches
from typing import Final, Protocol

from adapters.observe.cursor import (
    CursorCodec,
    Position,
    advanced,
    line_hash,
    page_size,
    resume,
    suspend,
)
from adapters.observe.instants import check_order, to_ns
from adapters.observe.levels import at_least, normalized
from adapters.observe.line_filter import line_test
from adapters.recorded.packs.recording import RecordedLine
from tools.capabilities import (
    Clock,
    Interval,
    LogLine,
    LogPage,
    LogQuery,
    LogsFound,
    LogSweepQuery,
    SweptLogs,
)
from tools.errors import InvalidArguments

_OWNER_LABELS: Final = ("service", "service_name", "app", "pod", "host")
_HOST_LABELS: Final = ("pod", "host", "node", "instance")
_ERROR_LEVELS: Final = frozenset({"error", "fatal"})
_BLOCKS_BETWEEN_YIELDS: Final = 8  # of a simulated minute each, some 5 ms of work
_MOST_NAMES: Final = 20


class LineSource(Protocol):
    """The lines of an incident. `label` names the products that have lines."""

    label: str
    products: Sequence[str]

    def blocks(
        self, products: Sequence[str], start_ns: int, end_ns: int, *, errors: bool
    ) -> Iterator[Mapping[str, Sequence[LogLine]]]:
        """Lines by product, the newest first in a block and from block to block.

        A block may reach beyond the range. With `errors`, lines below that level may be missing.
        """
        ...


class RecordedLogs:
    """Nothing later than the clock's now is returned."""

    def __init__(self, source: LineSource, clock: Clock, codec: CursorCodec) -> None:
        self._source = source
        self._clock = clock
        self._codec = codec

    async def query(self, query: LogQuery) -> LogPage:
        """Newest first. The first page counts all matches; later ones read only what they need."""
        check_product(query.product, self._source.products)
        position = resume(query, self._codec)
        if position.last_ns is None:
            position = replace(position, end_ns=min(position.end_ns, self._until_ns()))
        size, count = page_size(query), 0
        lines: list[LogLine] = []
        async with aclosing(self._matches(query, position)) as matches:
            async for line in matches:
                count += 1
                if count <= size:
                    lines.append(line)
                elif position.total is not None:
                    break
        total = count if position.total is None else position.total
        if count <= size:
            return LogPage(tuple(lines), total_matches=total)
        marks = [(line.ts_ns, line_hash(line.host, line.message)) for line in lines]
        cursor = suspend(query, advanced(position, marks, total), self._codec)
        return LogPage(tuple(lines), cursor, total)

    async def discover(self, products: Sequence[str], interval: Interval) -> LogsFound:
        check_order(interval)
        known = self._source.products
        wanted = tuple(dict.fromkeys(products)) or tuple(known)
        without = tuple(product for product in wanted if product not in known)
        count = len(wanted) - len(without)
        return LogsFound(wanted, without, {self._source.label: count} if count else {})

    async def count(self, queries: Sequence[LogSweepQuery]) -> Sequence[Mapping[str, int]]:
        return [(await self.sweep(query)).counts for query in queries]

    async def sweep(self, query: LogSweepQuery) -> SweptLogs:
        check_order(query.interval)
        known = self._source.products
        products = [one for one in dict.fromkeys(query.products) if one in known]
        each = max(1, query.limit // max(1, len(products)))
        fits = _test(query.filter, query.min_level)
        start_ns = to_ns(query.interval.start)
        end_ns = min(to_ns(query.interval.end), self._until_ns())
        found: dict[str, list[LogLine]] = {}
        is_errors = query.min_level in _ERROR_LEVELS
        for block in self._source.blocks(products, start_ns, end_ns, errors=is_errors):
            for product, lines in block.items():
                kept = [one for one in lines if start_ns <= one.ts_ns < end_ns and fits(one)]
                if kept:
                    found.setdefault(product, []).extend(kept)
            await asyncio.sleep(0)
        lines_of = {product: found[product][:each] for product in products if product in found}
        counts = {product: len(found[product]) for product in lines_of}
        cut = [product for product, count in counts.items() if count > each]
        notes = [f"only the newest lines were read of: {', '.join(cut)}"] if cut else []
        return SweptLogs(lines_of, counts, notes)

    def _until_ns(self) -> int:
        return to_ns(self._clock.now()) + 1

    async def _matches(self, query: LogQuery, position: Position) -> AsyncGenerator[LogLine, None]:
        fits = _test(query.filter, query.min_level)
        start_ns, last_ns = position.start_ns, position.last_ns
        newest_ns = position.end_ns if last_ns is None else last_ns + 1
        # Lines are in a fixed order, so those delivered at the last timestamp are the first ones.
        delivered = position.count
        blocks = self._source.blocks([query.product], start_ns, newest_ns, errors=False)
        for number, block in enumerate(blocks, start=1):
            for line in block.get(query.product, ()):
                if not start_ns <= line.ts_ns < newest_ns or not fits(line):
                    continue
                if line.ts_ns == last_ns and delivered:
                    delivered -= 1
                    continue
                yield line
            if number % _BLOCKS_BETWEEN_YIELDS == 0:
                await asyncio.sleep(0)


class PackLines:
    """The lines of a pack. A line belongs to each product that one of its labels names."""

    label = "product"

    def __init__(self, lines: Sequence[RecordedLine]) -> None:
        self._lines: dict[str, list[LogLine]] = {}
        for line in reversed(lines):
            read = _line(line)
            for owner in {line.labels[label] for label in _OWNER_LABELS if label in line.labels}:
                self._lines.setdefault(owner, []).append(read)
        for of_product in self._lines.values():
            of_product.sort(key=lambda one: (-one.ts_ns, one.host, one.message))
        self.products: Sequence[str] = sorted(self._lines)

    def blocks(
        self,
        products: Sequence[str],
        start_ns: int,  # noqa: ARG002 - the port's
        end_ns: int,  # noqa: ARG002 - the port's
        *,
        errors: bool,  # noqa: ARG002 - the port's
    ) -> Iterator[Mapping[str, Sequence[LogLine]]]:
        return ({product: self._lines[product]} for product in products)


def check_product(product: str, products: Sequence[str]) -> None:
    """Raise InvalidArguments for a product that is not recorded, with names that resemble it."""
    if product not in products:
        near = get_close_matches(product, products) or products[:_MOST_NAMES]
        raise InvalidArguments(f"unknown product {product!r}; products are: {', '.join(near)}")


def _test(text: str, min_level: str) -> Callable[[LogLine], bool]:
    passes = line_test(text)
    if not min_level:
        return lambda line: passes(line.message)
    levels = at_least(min_level)
    return lambda line: normalized(line.level) in levels and passes(line.message)


def _line(line: RecordedLine) -> LogLine:
    host = next((line.labels[label] for label in _HOST_LABELS if label in line.labels), "")
    return LogLine(line.ts_ns, line.labels.get("level", ""), host, line.text, line.trace_id)
