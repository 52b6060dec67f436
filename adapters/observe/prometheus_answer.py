"""Reading answers of the Prometheus query API: the envelope, matrices, lists of names."""

import math
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Final

from pydantic import BaseModel, Field, TypeAdapter, ValidationError

from adapters.observe.backend import Answer
from tools.capabilities import Series
from tools.errors import UpstreamFailed
from tools.outside_json import (
    Entries,
    EpochSeconds,
    Lenient,
    OutsideModel,
    Texts,
    Unread,
    left_out,
    parse,
    readable,
    shaped,
    unread_note,
)

SweptRow = tuple[Mapping[str, str], Sequence[tuple[float, float]]]


class _Row(OutsideModel):
    metric: Texts = Field(default_factory=dict)
    # The value is text, "NaN" and "+Inf" among it. Absent where all samples are native histograms.
    values: Entries[tuple[EpochSeconds, float]] | None = None
    value: tuple[EpochSeconds, float] | None = None
    histograms: object = None
    histogram: object = None


class _Data(OutsideModel):
    result: list[object] = Field(default_factory=list)


class Envelope(BaseModel):
    """What the query APIs of Prometheus, Loki and VictoriaMetrics say about an answer."""

    status: Lenient[str] = ""
    error: Lenient[str] = ""
    warnings: Lenient[Entries[str]] = Field(default_factory=list)
    infos: Lenient[Entries[str]] = Field(default_factory=list)
    # VictoriaMetrics: https://docs.victoriametrics.com/victoriametrics/cluster-victoriametrics/#cluster-availability
    is_partial: Lenient[bool] = Field(default=False, alias="isPartial")


class _Matrix(Envelope):
    data: _Data | None


class _About(OutsideModel):
    type: str = ""
    unit: str = ""


class _Metadata(OutsideModel):
    data: dict[str, object] = Field(default_factory=dict)


class _Failure(BaseModel):
    type: str = Field(default="", alias="errorType")
    error: str = ""


class _Names(OutsideModel, Envelope):
    data: list[object] = Field(default_factory=list)


_PARTIAL: Final = "the answer is partial: some storage nodes did not answer"
_OF_THE_QUERY: Final = "PromQL "  # begins warnings about its functions and types
_MATRIX: Final = TypeAdapter(_Matrix)
_ROWS: Final = TypeAdapter(Entries[_Row])
_ABOUT: Final = TypeAdapter(Entries[_About])
_FAILURE: Final = TypeAdapter(_Failure)
_METADATA: Final = TypeAdapter(_Metadata)
_NAMES: Final = TypeAdapter(_Names)


def matrix_of(answer: Answer, before: datetime) -> tuple[Sequence[Series], Sequence[str]]:
    """The series in label order with their points before an instant, and notes.

    Notes are the backend's warnings, and how many series could not be read. A range query includes
    its end; intervals here do not. Raises UpstreamFailed.
    """
    rows, notes = _rows(answer, "not a matrix of series", _is_range)
    rows.sort(key=lambda row: sorted(row.metric.items()))
    end_s = before.timestamp()
    series = [_series(row, end_s) for row in rows]
    return [one for one in series if one.points], notes


def rows_of(answer: Answer, before: datetime) -> Sequence[SweptRow]:
    """Labels and finite values before an instant, as they came. Raises UpstreamFailed."""
    rows, _notes = _rows(answer, "not a matrix of series", _is_range)
    end_s = before.timestamp()
    return [
        (
            row.metric,
            [(at, value) for at, value in row.values or () if at < end_s and math.isfinite(value)],
        )
        for row in rows
    ]


def instant_of(answer: Answer) -> tuple[Sequence[Series], Sequence[str]]:
    """A vector as series of one point, a scalar as one without labels. Raises UpstreamFailed."""
    rows, notes = _rows(answer, "neither a vector nor a number", _is_instant)
    series = [
        Series(
            {name: value for name, value in row.metric.items() if name != "__name__"},
            ((datetime.fromtimestamp(row.value[0], UTC), _finite(row.value[1])),),
        )
        for row in rows
        if row.value is not None
    ]
    return series, notes


def vector_of(answer: Answer) -> Sequence[tuple[Mapping[str, str], float]]:
    """Labels and value of each row of an instant query. Raises UpstreamFailed."""
    rows, _notes = _rows(answer, "not a vector", _is_instant)
    return [(row.metric, row.value[1]) for row in rows if row.value is not None]


def metadata_of(answer: Answer) -> Mapping[str, tuple[str, str]]:
    """Type and unit by name; where targets disagree, the first says. Raises UpstreamFailed."""
    _check(answer)
    try:
        data = parse(_METADATA, answer.body).data
    except ValidationError as error:
        raise UpstreamFailed("not metadata of metrics", answer.status) from error
    found = {}
    for name, entries in data.items():
        about, _unread = readable(_ABOUT, entries if isinstance(entries, list) else [entries])
        if about:
            found[name] = (about[0].type, about[0].unit)
    return found


def names_of(answer: Answer) -> Sequence[str]:
    """The values of a label. Entries that are no text are counted. Raises UpstreamFailed."""
    _check(answer)
    try:
        found = parse(_NAMES, answer.body)
    except ValidationError as error:
        raise UpstreamFailed("not a list of label values", answer.status) from error
    notes_of(found, answer.status)
    data = found.data
    names = sorted(name for name in data if isinstance(name, str))
    left_out(len(data) - len(names))
    return names


def _rows(
    answer: Answer, problem: str, is_shaped: Callable[[_Row], bool]
) -> tuple[list[_Row], list[str]]:
    """Every row that can be read, and notes. A scalar is a row without labels."""
    _check(answer)
    try:
        envelope = parse(_MATRIX, answer.body)
        notes = notes_of(envelope, answer.status)
        result = envelope.data.result if envelope.data else []
        if _is_scalar(result):
            result = [{"value": result}]
        unread = Unread()
        read = shaped(_ROWS, result, unread)
    except ValidationError as error:
        raise UpstreamFailed(problem, answer.status) from error
    values = unread.count - (len(result) - len(read))
    rows = [row for row in read if is_shaped(row)]
    left_out(len(read) - len(rows))
    unreadable = len(result) - len(rows)
    if result and unreadable == len(result):
        raise UpstreamFailed(problem, answer.status)
    native = sum(row.histograms is not None or row.histogram is not None for row in rows)
    if native:
        notes.append(f"{native} series hold native histograms; ask for histogram_quantile of them")
    if unreadable:
        notes.append(f"{unreadable} of {len(result)} series could not be read")
    if values:
        notes.append(unread_note(values, "values of a series"))
    return rows, notes


def notes_of(envelope: Envelope, status: int) -> list[str]:
    """Warnings and infos. Stores that did not answer count as entries that could not be read.

    Raises UpstreamFailed for an error.
    """
    if envelope.status == "error":  # proxies send it with a 200
        raise UpstreamFailed(envelope.error or "no explanation", status)
    partial = [_PARTIAL] if envelope.is_partial else []
    of_stores = [each for each in envelope.warnings if not each.startswith(_OF_THE_QUERY)]
    left_out(len(of_stores) + len(partial))
    return [*envelope.warnings, *partial, *envelope.infos]


def _is_range(row: _Row) -> bool:
    return row.values is not None or row.histograms is not None


def _is_instant(row: _Row) -> bool:
    return row.value is not None or row.histogram is not None


def _is_scalar(result: Sequence[object]) -> bool:
    return len(result) == 2 and isinstance(result[0], int | float) and isinstance(result[1], str)


def _series(row: _Row, end_s: float) -> Series:
    labels = {name: value for name, value in row.metric.items() if name != "__name__"}
    points = tuple(
        (datetime.fromtimestamp(at_s, UTC), _finite(value))
        for at_s, value in row.values or ()
        if at_s < end_s
    )
    return Series(labels, points)


def _finite(value: float) -> float | None:
    """NaN, +Inf and -Inf are values here, but JSON cannot carry them on."""
    return value if math.isfinite(value) else None


def _check(answer: Answer) -> None:
    """Errors come in an envelope, from proxies in front as anything at all."""
    if answer.ok:
        return
    try:
        failure = parse(_FAILURE, answer.body)
        words = failure.error or answer.words()
    except ValidationError:
        words = answer.words()
    raise UpstreamFailed(words or "no explanation", answer.status)
