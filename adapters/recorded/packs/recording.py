"""What one case holds, read and cut at the moment of the question. Nothing later exists."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final, TypeVar

from pydantic import BaseModel, JsonValue, TypeAdapter

from adapters.recorded.packs.archive import (
    CASE_FILE,
    CLUSTER_FILE,
    DEPLOYS_FILE,
    GRAPH_FILE,
    LOGS_FILE,
    METRICS_FILE,
    TRACES_FILE,
    CaseFiles,
)
from adapters.recorded.packs.schema import (
    Case,
    ClusterState,
    Deployed,
    Graph,
    LineRow,
    SeriesRow,
    SpanRow,
    document_of,
    rows_of,
)
from tools.capabilities import Deploy, Span
from tools.signals import MetricType

_NS: Final = 1_000_000_000
M = TypeVar("M", bound=BaseModel)


_SERIES: Final = TypeAdapter(SeriesRow)
_LINE: Final = TypeAdapter(LineRow)
_SPAN: Final = TypeAdapter(SpanRow)


@dataclass(frozen=True, slots=True)
class RecordedSeries:
    """One series of a metric: finite points in time order, at seconds since the epoch."""

    name: str
    labels: Mapping[str, str]
    unit: str | None
    points: Sequence[tuple[float, float]]
    type: MetricType = ""  # empty where the source does not say


@dataclass(frozen=True, slots=True)
class RecordedLine:
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
    deploys: Sequence[Deploy] | None = None


def read_case(found: CaseFiles) -> Case:
    """The question, time and products of a case. Raises BadPack."""
    return document_of(found.files[CASE_FILE], Case, f"{found.place}/{CASE_FILE}")


def read_recording(found: CaseFiles) -> Recording:
    """Everything of a case but its truth. Raises BadPack."""
    case = read_case(found)
    reader = _Reader(found, case.now)
    cluster = reader.document(CLUSTER_FILE, ClusterState)
    graph = reader.document(GRAPH_FILE, Graph)
    return Recording(
        case=case,
        series=reader.series(),
        lines=reader.lines(),
        spans=reader.spans(),
        edges=tuple(graph.edges) if graph else (),
        objects=cluster.objects if cluster else None,
        events=cluster.events if cluster else (),
        deploys=reader.deploys(),
    )


class _Reader:
    def __init__(self, found: CaseFiles, now: datetime) -> None:
        self._found = found
        self._now = now
        self._now_s = now.astimezone(UTC).timestamp()
        self._now_ns = round(self._now_s * _NS)

    def document(self, name: str, model: type[M]) -> M | None:
        content = self._found.files.get(name)
        return None if content is None else document_of(content, model, self._place(name))

    def series(self) -> Sequence[RecordedSeries] | None:
        rows = self._rows(METRICS_FILE, _SERIES)
        if rows is None:
            return None
        kept = []
        for row in rows:
            points = sorted((t, v) for t, v in row.points if v is not None and t <= self._now_s)
            kept.append(RecordedSeries(row.name, row.labels, row.unit, points))
        return kept

    def lines(self) -> Sequence[RecordedLine] | None:
        rows = self._rows(LOGS_FILE, _LINE)
        if rows is None:
            return None
        kept = [
            RecordedLine(row.ts_ns, row.labels, row.line, row.trace_id or "")
            for row in rows
            if 0 <= row.ts_ns <= self._now_ns  # a line without a time is of no window
        ]
        return sorted(kept, key=lambda line: line.ts_ns)

    def spans(self) -> Mapping[str, Sequence[Span]] | None:
        rows = self._rows(TRACES_FILE, _SPAN)
        if rows is None:
            return None
        traces: dict[str, list[Span]] = {}
        late: set[str] = set()
        for row in rows:
            if row.end_ns > self._now_ns:
                late.add(row.trace_id)
            traces.setdefault(row.trace_id, []).append(_span(row))
        return {trace: spans for trace, spans in traces.items() if trace not in late}

    def deploys(self) -> Sequence[Deploy] | None:
        found = self.document(DEPLOYS_FILE, Deployed)
        if found is None:
            return None
        return [Deploy(**row.model_dump()) for row in found.deploys if row.at <= self._now]

    def _rows(self, name: str, rows: TypeAdapter[M]) -> Sequence[M] | None:
        content = self._found.files.get(name)
        return None if content is None else rows_of(content, rows, self._place(name))

    def _place(self, name: str) -> str:
        return f"{self._found.place}/{name}"


def _span(row: SpanRow) -> Span:
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
