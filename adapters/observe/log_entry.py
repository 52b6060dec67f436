"""One line as a backend gave it, with the labels or fields that came with it, and its place in the order.

Backends name a level, a host and a trace differently; here is what collectors call them.
"""

import asyncio
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from typing import Final, NamedTuple, TypeVar

from adapters.observe.cursor import line_hash
from adapters.observe.levels import level_in, normalized
from tools.capabilities import LogLine
from tools.errors import UpstreamFailed

T = TypeVar("T")
_MANY: Final = 500  # entries that take longer to parse and sort than the loop may block
DETECTED: Final = "detected_level"  # Loki's guess at ingest

# The most specific first: labels of Loki and VictoriaLogs, then OpenTelemetry's and ECS's fields.
PUSHED: Final = ("level", "severity", "severity_text")
LEVELS: Final = (*PUSHED, "log.level", "severityText", "SeverityText", "log_level", "lvl")
HOSTS: Final = (
    "host", "hostname", "host.name", "pod", "k8s_pod_name", "k8s.pod.name", "kubernetes.pod.name",
    "kubernetes.pod_name", "resource.attributes.k8s.pod.name", "resource.attributes.host.name",
    "instance", "node_name", "node", "@logStream",
)  # fmt: skip
_WHEN: Final = attrgetter("ts_ns")
TRACE_IDS: Final = ("trace_id", "traceID", "traceid", "TraceId", "traceId", "trace.id")


class Entry(NamedTuple):
    """`labels` are all labels of the line. `copy` numbers otherwise equal lines."""

    ts_ns: int
    line: str
    labels: Mapping[str, str]
    copy: int = 0

    def hash(self) -> str:
        """Distinguishes entries of one timestamp."""
        copy = (str(self.copy),) if self.copy else ()
        return line_hash(_canonical(self.labels), self.line, *copy)

    def order(self) -> tuple[str, str]:
        """Its place among those of its timestamp."""
        return (_canonical(self.labels), self.line)


@dataclass(frozen=True, slots=True)
class Newest:
    """The newest entries of one answer.

    `unread` could not be parsed; `more`: there may be further ones.
    """

    entries: Sequence[Entry]
    more: bool = False
    unread: int = 0


async def in_order(entries: Sequence[Entry]) -> list[Entry]:
    """Newest first, with equal lines numbered: only Loki stores them once."""
    if len(entries) > _MANY:
        return await asyncio.to_thread(_ordered, entries)
    return _ordered(entries)


async def made(
    rows: Sequence[T], make: Callable[[T], Entry], limit: int, unread: int = 0
) -> Newest:
    """An entry for each row, made in a thread if there are many.

    `make` raises ValueError for a row without a time; such rows are counted with the `unread` ones.
    Raises UpstreamFailed when no row can be parsed.
    """
    if len(rows) > _MANY:
        return await asyncio.to_thread(_made, rows, make, limit, unread)
    return _made(rows, make, limit, unread)


def _made(rows: Sequence[T], make: Callable[[T], Entry], limit: int, unread: int) -> Newest:
    entries: list[Entry] = []
    for row in rows:
        with suppress(ValueError, OverflowError):
            entries.append(make(row))
    if rows and not entries:
        raise UpstreamFailed("none of its lines has a time")
    total = len(rows) + unread
    return Newest(entries, total >= limit, total - len(entries))


def lines_of(entries: Sequence[Entry]) -> Sequence[LogLine]:
    told: dict[
        int, _LineDetails
    ] = {}  # those of one stream share their labels, while `entries` holds them
    lines = []
    for entry in entries:
        of = told.get(id(entry.labels))
        if of is None:
            of = told[id(entry.labels)] = _line_details(entry.labels)
        lines.append(_line(entry, of))
    return tuple(lines)


def line_of(entry: Entry) -> LogLine:
    """An entry as a line, its level as it was selected by.

    A level that was pushed with the line counts most; then what Loki detected at ingest, which is a
    guess (any "error" in a URL), and only where there is neither, the line.
    """
    return _line(entry, _line_details(entry.labels))


def _ordered(entries: Iterable[Entry]) -> list[Entry]:
    ordered: list[Entry] = []
    for _, together in groupby(sorted(entries, key=_WHEN, reverse=True), key=_WHEN):
        tied = list(together)
        ordered += tied if len(tied) == 1 else _numbered(sorted(tied, key=Entry.order))
    return ordered


def unlevelled(newest: Sequence[LogLine]) -> tuple[str, ...]:
    """What to say where nothing of a level was found: it may mean that nothing states its level."""
    if not newest or any(line.level != "unknown" for line in newest):
        return ()
    return (
        f"none of the {len(newest)} newest lines states a level (no label, no metadata, not in "
        "the line). Nothing can be selected by level: ask again without it",
    )


class _LineDetails(NamedTuple):
    level: str
    host: str
    trace_id: str


def _line_details(labels: Mapping[str, str]) -> _LineDetails:
    pushed = normalized(_first(labels, LEVELS))
    detected = normalized(labels.get(DETECTED, ""))
    level = pushed or (detected if detected != "unknown" else "")
    return _LineDetails(level, _first(labels, HOSTS), _first(labels, TRACE_IDS))


def _line(entry: Entry, told: _LineDetails) -> LogLine:
    level = told.level or level_in(entry.line) or "unknown"
    return LogLine(entry.ts_ns, level, told.host, entry.line, told.trace_id)


def _numbered(ordered: Iterable[Entry]) -> Iterator[Entry]:
    before: Entry | None = None
    for entry in ordered:
        alike = before is not None and before._replace(copy=0) == entry
        before = entry._replace(copy=before.copy + 1) if before is not None and alike else entry
        yield before


def _first(labels: Mapping[str, str], names: Sequence[str]) -> str:
    for name in names:
        if found := labels.get(name):
            return found
    return ""


def _canonical(labels: Mapping[str, str]) -> str:
    return json.dumps(labels, sort_keys=True)
