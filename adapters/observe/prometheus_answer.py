"""Reading answers of the Prometheus query API: the envelope, matrices, lists of names."""

import math
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Final

from pydantic import BaseModel, Field, TypeAdapter, ValidationError

from adapters.observe.backend import Answer
from tools.capabilities import Series
from tools.errors import UpstreamFailed

SweptRow = tuple[Mapping[str, str], Sequence[tuple[float, float]]]


class _Row(BaseModel):
    metric: dict[str, str] = Field(default_factory=dict)
    values: list[tuple[float, float]]  # the value is text, "NaN" and "+Inf" among it


class _Matrix(BaseModel):
    type: str = Field(alias="resultType")
    result: list[_Row]


class _Envelope(BaseModel):
    data: _Matrix
    warnings: list[str] = Field(default_factory=list)
    infos: list[str] = Field(default_factory=list)


class _Sample(BaseModel):
    metric: dict[str, str] = Field(default_factory=dict)
    value: tuple[float, float]


class _Vector(BaseModel):
    type: str = Field(alias="resultType")
    result: list[_Sample]


class _VectorEnvelope(BaseModel):
    data: _Vector


class _Instant(BaseModel):
    result: tuple[float, float] | list[_Sample]


class _InstantEnvelope(BaseModel):
    data: _Instant
    warnings: list[str] = Field(default_factory=list)
    infos: list[str] = Field(default_factory=list)


class _About(BaseModel):
    type: str = ""
    unit: str = ""


class _Metadata(BaseModel):
    data: dict[str, list[_About]] = Field(default_factory=dict)


class _Failure(BaseModel):
    type: str = Field(default="", alias="errorType")
    error: str = ""


class _Names(BaseModel):
    data: list[str] = Field(default_factory=list)


_ENVELOPE: Final = TypeAdapter(_Envelope)
_FAILURE: Final = TypeAdapter(_Failure)
_INSTANT: Final = TypeAdapter(_InstantEnvelope)
_VECTOR: Final = TypeAdapter(_VectorEnvelope)
_METADATA: Final = TypeAdapter(_Metadata)
_NAMES: Final = TypeAdapter(_Names)


def matrix_of(answer: Answer, before: datetime) -> tuple[Sequence[Series], Sequence[str]]:
    """The series in label order with their points before an instant, and the backend's warnings.

    A range query includes its end; intervals here do not. Raises UpstreamFailed.
    """
    _check(answer)
    try:
        envelope = _ENVELOPE.validate_json(answer.body)
    except ValidationError as error:
        raise UpstreamFailed("not a matrix of series", answer.status) from error
    rows = sorted(envelope.data.result, key=lambda row: sorted(row.metric.items()))
    end_s = before.timestamp()
    series = [_series(row, end_s) for row in rows]
    return [one for one in series if one.points], [*envelope.warnings, *envelope.infos]


def rows_of(answer: Answer, before: datetime) -> Sequence[SweptRow]:
    """Labels and finite values before an instant, as they came. Raises UpstreamFailed."""
    _check(answer)
    try:
        rows = _ENVELOPE.validate_json(answer.body).data.result
    except ValidationError as error:
        raise UpstreamFailed("not a matrix of series", answer.status) from error
    end_s = before.timestamp()
    return [
        (
            row.metric,
            [(at, value) for at, value in row.values if at < end_s and math.isfinite(value)],
        )
        for row in rows
    ]


def instant_of(answer: Answer) -> tuple[Sequence[Series], Sequence[str]]:
    """A vector as series of one point, a scalar as one without labels. Raises UpstreamFailed."""
    _check(answer)
    try:
        envelope = _INSTANT.validate_json(answer.body)
    except ValidationError as error:
        raise UpstreamFailed("neither a vector nor a number", answer.status) from error
    rows = envelope.data.result
    samples = rows if isinstance(rows, list) else [_Sample(value=rows)]
    series = [
        Series(
            {name: value for name, value in row.metric.items() if name != "__name__"},
            ((datetime.fromtimestamp(row.value[0], UTC), _finite(row.value[1])),),
        )
        for row in samples
    ]
    return series, [*envelope.warnings, *envelope.infos]


def vector_of(answer: Answer) -> Sequence[tuple[Mapping[str, str], float]]:
    """Labels and value of each row of an instant query. Raises UpstreamFailed."""
    _check(answer)
    try:
        rows = _VECTOR.validate_json(answer.body).data.result
    except ValidationError as error:
        raise UpstreamFailed("not a vector", answer.status) from error
    return [(row.metric, row.value[1]) for row in rows]


def metadata_of(answer: Answer) -> Mapping[str, tuple[str, str]]:
    """Type and unit by name; where targets disagree, the first says. Raises UpstreamFailed."""
    _check(answer)
    try:
        found = _METADATA.validate_json(answer.body).data
    except ValidationError as error:
        raise UpstreamFailed("not metadata of metrics", answer.status) from error
    return {name: (about[0].type, about[0].unit) for name, about in found.items() if about}


def names_of(answer: Answer) -> Sequence[str]:
    """The values of a label. Raises UpstreamFailed."""
    _check(answer)
    try:
        return sorted(_NAMES.validate_json(answer.body).data)
    except ValidationError as error:
        raise UpstreamFailed("not a list of label values", answer.status) from error


def _series(row: _Row, end_s: float) -> Series:
    labels = {name: value for name, value in row.metric.items() if name != "__name__"}
    points = tuple(
        (datetime.fromtimestamp(at_s, UTC), _finite(value))
        for at_s, value in row.values
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
        failure = _FAILURE.validate_json(answer.body)
        words = failure.error or answer.words()
    except ValidationError:
        words = answer.words()
    raise UpstreamFailed(words or "no explanation", answer.status)
