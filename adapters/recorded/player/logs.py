"""The log lines of a case."""

import asyncio
from collections.abc import Mapping, Sequence
from difflib import get_close_matches

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
    Interval,
    LogLine,
    LogPage,
    LogQuery,
    LogsFound,
    LogSweepQuery,
    SweptLogs,
)
from tools.errors import InvalidArguments

_OWNER_LABELS = ("service", "service_name", "app", "pod", "host")
_HOST_LABELS = ("pod", "host", "node", "instance")


class PackedLogs:
    """Lines belong to the product that one of their labels names."""

    def __init__(self, lines: Sequence[RecordedLine], codec: CursorCodec) -> None:
        self._codec = codec
        self._lines: dict[str, list[LogLine]] = {}
        for line in reversed(lines):
            read = _line(line)
            for owner in {line.labels[label] for label in _OWNER_LABELS if label in line.labels}:
                self._lines.setdefault(owner, []).append(read)
        for of_product in self._lines.values():
            of_product.sort(key=lambda one: (-one.ts_ns, one.host, one.message))

    async def query(self, query: LogQuery) -> LogPage:
        """Newest first. Raises InvalidArguments for a name that no line has."""
        if query.product not in self._lines:
            near = get_close_matches(query.product, self._lines) or sorted(self._lines)[:20]
            raise InvalidArguments(
                f"unknown product {query.product!r}: lines are of {', '.join(near)}"
            )
        position = resume(query, self._codec)
        matches = self._matches(query, position)
        total = position.total if position.last_ns is not None else len(matches)
        if position.last_ns is not None:
            matches = _undelivered(matches, position)
        size = page_size(query)
        if len(matches) <= size:
            return LogPage(tuple(matches), total_matches=total)
        page = matches[:size]
        marks = [(line.ts_ns, line_hash(line.host, line.message)) for line in page]
        cursor = suspend(query, advanced(position, marks, total), self._codec)
        return LogPage(tuple(page), cursor, total)

    async def discover(self, products: Sequence[str], interval: Interval) -> LogsFound:
        """Which of these have lines; all names that lines belong to when none is given."""
        check_order(interval)
        wanted = tuple(dict.fromkeys(products)) or tuple(sorted(self._lines))
        without = tuple(product for product in wanted if product not in self._lines)
        count = len(wanted) - len(without)
        return LogsFound(wanted, without, {"product": count} if count else {})

    async def count(self, queries: Sequence[LogSweepQuery]) -> Sequence[Mapping[str, int]]:
        """How many lines match, by product, of each query."""
        return [(await self.sweep(query)).counts for query in queries]

    async def sweep(self, query: LogSweepQuery) -> SweptLogs:
        """The lines of many products, the newest of each."""
        check_order(query.interval)
        known = [product for product in dict.fromkeys(query.products) if product in self._lines]
        each = max(1, query.limit // max(1, len(known)))
        frozen = Position(to_ns(query.interval.start), to_ns(query.interval.end))
        lines: dict[str, Sequence[LogLine]] = {}
        counts: dict[str, int] = {}
        for product in known:
            one = LogQuery(product, query.interval, query.filter, query.min_level)
            found = self._matches(one, frozen)
            if found:
                lines[product], counts[product] = found[:each], len(found)
            await asyncio.sleep(0)
        return SweptLogs(lines, counts)

    def _matches(self, query: LogQuery, position: Position) -> list[LogLine]:
        test = line_test(query.filter)
        levels = at_least(query.min_level) if query.min_level else None
        return [
            line
            for line in self._lines.get(query.product, ())
            if position.start_ns <= line.ts_ns < position.end_ns
            and (levels is None or normalized(line.level) in levels)
            and test(line.message)
        ]


def _line(line: RecordedLine) -> LogLine:
    host = next((line.labels[label] for label in _HOST_LABELS if label in line.labels), "")
    level = line.labels.get("level", "")
    return LogLine(line.ts_ns, level, host, line.text, line.trace_id)


def _undelivered(matches: Sequence[LogLine], position: Position) -> list[LogLine]:
    """Lines are in a fixed order, so those delivered at the last timestamp are the first ones."""
    last_ns = position.last_ns or 0
    tied = [line for line in matches if line.ts_ns == last_ns]
    return [*tied[position.count :], *(line for line in matches if line.ts_ns < last_ns)]
