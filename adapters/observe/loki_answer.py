"""Reading Loki's answers: streams of [timestamp, line, metadata], to one list in one order."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from pydantic import BaseModel, Field, TypeAdapter, ValidationError

from adapters.observe.backend import Answer
from adapters.observe.cursor import line_hash
from adapters.observe.levels import normalized
from tools.capabilities import LogLine
from tools.errors import UpstreamFailed

# Labels and metadata that collectors use, most telling first.
_HOSTS: Final = ("host", "hostname", "pod", "k8s_pod_name", "instance", "node_name", "node")
_LEVELS: Final = ("detected_level", "level", "severity", "severity_text")
_TRACE_IDS: Final = ("trace_id", "traceID", "traceid", "TraceId")


@dataclass(frozen=True, slots=True)
class Entry:
    """One line as Loki gave it. `labels` holds the stream's labels and the line's metadata."""

    ts_ns: int
    line: str
    labels: Mapping[str, str]

    def hash(self) -> str:
        """Tells entries of one timestamp apart: Loki stores equal ones once."""
        return line_hash(_canonical(self.labels), self.line)

    def __lt__(self, other: "Entry") -> bool:
        return self._order() < other._order()

    def _order(self) -> tuple[int, str, str]:
        return (-self.ts_ns, _canonical(self.labels), self.line)


class _Extra(BaseModel):
    structured: dict[str, str] = Field(default_factory=dict, alias="structuredMetadata")
    parsed: dict[str, str] = Field(default_factory=dict)


class _Stream(BaseModel):
    stream: dict[str, str] = Field(default_factory=dict)
    # Two elements, or three with categorize-labels.
    values: list[tuple[str, str] | tuple[str, str, _Extra]]


class _Data(BaseModel):
    type: str = Field(alias="resultType")
    result: list[_Stream]


class _Envelope(BaseModel):
    data: _Data


class _Values(BaseModel):
    data: list[str] | None = None


_ENVELOPE: Final = TypeAdapter(_Envelope)
_VALUES: Final = TypeAdapter(_Values)


def streams_of(answer: Answer) -> Sequence[Entry]:
    """The entries, in no particular order. Raises UpstreamFailed when they are not log lines."""
    try:
        data = _ENVELOPE.validate_json(answer.body).data
    except ValidationError as error:
        raise UpstreamFailed("not a list of log streams", answer.status) from error
    if data.type != "streams":
        raise UpstreamFailed(f"answered {data.type}, not log lines", answer.status)
    return [entry for stream in data.result for entry in _entries(stream)]


def label_values_of(answer: Answer) -> list[str]:
    """The values of a label; empty when the answer is not a list of them."""
    try:
        return _VALUES.validate_json(answer.body).data or []
    except ValidationError:
        return []


def lines_of(entries: Sequence[Entry]) -> Sequence[LogLine]:
    """The entries as lines, in their order."""
    return tuple(
        LogLine(
            entry.ts_ns,
            normalized(_first(entry.labels, _LEVELS)) or "unknown",
            _first(entry.labels, _HOSTS),
            entry.line,
            _first(entry.labels, _TRACE_IDS),
        )
        for entry in entries
    )


def _entries(stream: _Stream) -> Iterator[Entry]:
    for ts_ns, line, *rest in stream.values:
        extra = rest[0] if rest else _Extra()
        labels = {**extra.parsed, **extra.structured, **stream.stream}
        # Nanoseconds come as text and only int keeps them all.
        yield Entry(int(ts_ns), line, labels)


def _first(labels: Mapping[str, str], names: Sequence[str]) -> str:
    return next((labels[name] for name in names if labels.get(name)), "")


def _canonical(labels: Mapping[str, str]) -> str:
    return json.dumps(labels, sort_keys=True)
