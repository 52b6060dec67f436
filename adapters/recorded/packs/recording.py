"""What one case holds, read and cut at the moment of the question. Nothing later exists."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final, TypeVar

import orjson
from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, JsonValue, TypeAdapter
from pydantic import ValidationError as Invalid

from adapters.recorded.packs.archive import CASE_FILE, BadPack, CaseFiles
from tools.capabilities import Span

_NS: Final = 1_000_000_000
M = TypeVar("M", bound=BaseModel)


class Case(BaseModel):
    """`case.json`: what is asked, where, and when."""

    model_config = ConfigDict(frozen=True)

    id: str
    set: str
    asked: str
    now: AwareDatetime
    products: tuple[str, ...]


class _Series(BaseModel):
    name: str
    labels: dict[str, str] = Field(default_factory=dict)
    unit: str | None = None
    points: list[tuple[float, float | None]]


class _Line(BaseModel):
    ts_ns: int
    labels: dict[str, str] = Field(default_factory=dict)
    line: str
    trace_id: str | None = None


class _Span(BaseModel):
    trace_id: str
    span_id: str
    parent_id: str | None = None
    service: str
    name: str
    start_ns: int
    end_ns: int
    status: str | None = None
    message: str = ""
    tags: dict[str, str] = Field(default_factory=dict)


class _Graph(BaseModel):
    edges: list[tuple[str, str]] = Field(default_factory=list)


class _Cluster(BaseModel):
    objects: list[dict[str, JsonValue]] = Field(default_factory=list)
    events: list[dict[str, JsonValue]] = Field(default_factory=list)


_SERIES: Final = TypeAdapter(_Series)
_LINE: Final = TypeAdapter(_Line)
_SPAN: Final = TypeAdapter(_Span)


@dataclass(frozen=True, slots=True)
class RecordedSeries:
    """One series of a metric: finite points in time order, at seconds since the epoch."""

    name: str
    labels: Mapping[str, str]
    unit: str | None
    points: Sequence[tuple[float, float]]


@dataclass(frozen=True, slots=True)
class RecordedLine:
    """One log line with the labels of its stream."""

    ts_ns: int
    labels: Mapping[str, str]
    text: str
    trace_id: str


@dataclass(frozen=True, slots=True)
class Recording:
    """All that a case shows. None: the case has no such backend."""

    case: Case
    series: Sequence[RecordedSeries] | None = None
    lines: Sequence[RecordedLine] | None = None  # oldest first
    spans: Mapping[str, Sequence[Span]] | None = None  # by trace id
    edges: Sequence[tuple[str, str]] = ()
    objects: Sequence[Mapping[str, JsonValue]] | None = None
    events: Sequence[Mapping[str, JsonValue]] = field(default=())


def read_case(found: CaseFiles) -> Case:
    """Only what is asked. Raises BadPack."""
    try:
        return Case.model_validate_json(found.files[CASE_FILE])
    except Invalid as error:
        raise BadPack(f"{found.place}/{CASE_FILE}: {_first(error)}") from error


def read_recording(found: CaseFiles) -> Recording:
    """Everything of a case but its truth. Raises BadPack."""
    case = read_case(found)
    reader = _Reader(found, case.now)
    cluster = reader.document("kubernetes.json", _Cluster)
    graph = reader.document("graph.json", _Graph)
    return Recording(
        case=case,
        series=reader.series(),
        lines=reader.lines(),
        spans=reader.spans(),
        edges=tuple(graph.edges) if graph else (),
        objects=cluster.objects if cluster else None,
        events=cluster.events if cluster else (),
    )


class _Reader:
    def __init__(self, found: CaseFiles, now: datetime) -> None:
        self._found = found
        self._now_s = now.astimezone(UTC).timestamp()
        self._now_ns = round(self._now_s * _NS)

    def document(self, name: str, model: type[M]) -> M | None:
        content = self._found.files.get(name)
        if content is None:
            return None
        try:
            return model.model_validate_json(content)
        except Invalid as error:
            raise BadPack(f"{self._found.place}/{name}: {_first(error)}") from error

    def series(self) -> Sequence[RecordedSeries] | None:
        rows = self._rows("metrics.ndjson", _SERIES)
        if rows is None:
            return None
        kept = []
        for row in rows:
            points = sorted((t, v) for t, v in row.points if v is not None and t <= self._now_s)
            kept.append(RecordedSeries(row.name, row.labels, row.unit, points))
        return kept

    def lines(self) -> Sequence[RecordedLine] | None:
        rows = self._rows("logs.ndjson", _LINE)
        if rows is None:
            return None
        kept = [
            RecordedLine(row.ts_ns, row.labels, row.line, row.trace_id or "")
            for row in rows
            if row.ts_ns <= self._now_ns
        ]
        return sorted(kept, key=lambda line: line.ts_ns)

    def spans(self) -> Mapping[str, Sequence[Span]] | None:
        rows = self._rows("traces.ndjson", _SPAN)
        if rows is None:
            return None
        traces: dict[str, list[Span]] = {}
        late: set[str] = set()
        for row in rows:
            if row.end_ns > self._now_ns:
                late.add(row.trace_id)
            traces.setdefault(row.trace_id, []).append(_span(row))
        return {trace: spans for trace, spans in traces.items() if trace not in late}

    def _rows(self, name: str, rows: TypeAdapter[M]) -> list[M] | None:
        content = self._found.files.get(name)
        if content is None:
            return None
        try:
            return [
                rows.validate_python(orjson.loads(line)) for line in content.splitlines() if line
            ]
        except (Invalid, orjson.JSONDecodeError) as error:
            raise BadPack(f"{self._found.place}/{name}: {_first(error)}") from error


def _span(row: _Span) -> Span:
    start_us = row.start_ns // 1000
    return Span(
        span_id=row.span_id,
        parent_id=row.parent_id or "",
        service=row.service,
        operation=row.name,
        start_us=start_us,
        duration_us=max(0, row.end_ns // 1000 - start_us),
        status=row.status or "unset",
        message=row.message,
        tags=row.tags,
    )


def _first(error: Exception) -> str:
    """The first thing wrong, in a line."""
    if not isinstance(error, Invalid):
        return str(error)
    wrong = error.errors(include_url=False, include_input=False)[0]
    return f"{'.'.join(str(part) for part in wrong['loc'])}: {wrong['msg']}"
