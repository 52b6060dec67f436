"""The log lines of a case."""

from collections.abc import Sequence
from dataclasses import replace
from difflib import get_close_matches

from adapters.observe.cursor import CursorCodec, Position, line_hash, page_size, resume, suspend
from adapters.observe.levels import at_least, normalized
from adapters.observe.line_filter import line_test
from adapters.recorded.packs.recording import RecordedLine
from tools.capabilities import LogLine, LogPage, LogQuery
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
        cursor = suspend(query, _after(position, page, total), self._codec)
        return LogPage(tuple(page), cursor, total)

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
    assert position.last_ns is not None  # noqa: S101 - said by the caller
    left = list(position.delivered)
    kept = []
    for line in matches:
        if line.ts_ns > position.last_ns:
            continue
        if line.ts_ns == position.last_ns and (mark := line_hash(line.host, line.message)) in left:
            left.remove(mark)
            continue
        kept.append(line)
    return kept


def _after(position: Position, page: Sequence[LogLine], total: int | None) -> Position:
    last_ns = page[-1].ts_ns
    here = tuple(line_hash(line.host, line.message) for line in page if line.ts_ns == last_ns)
    earlier = position.delivered if last_ns == position.last_ns else ()
    return replace(position, last_ns=last_ns, delivered=earlier + here, total=total)
