"""The format of a case's files, checked line by line; an error names file and line.

Times are bounded to the years that nanoseconds in 64 bits can say. Numbers are finite. Names have no
control characters.
"""

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Annotated, Final, TypeVar

import orjson
from pydantic import (
    AfterValidator,
    AwareDatetime,
    BaseModel,
    ConfigDict,
    Field,
    JsonValue,
    TypeAdapter,
)
from pydantic import ValidationError as Invalid

from adapters.kubernetes.reader import read_event
from adapters.observe.trace_ids import trace_id_of
from adapters.recorded.packs.archive import BadPack
from tools.errors import InvalidArguments

MAX_LINE_BYTES: Final = 8 << 20  # a day of samples each second has 2 MB
_FIRST: Final = datetime(1970, 1, 2, tzinfo=UTC)
_LAST: Final = datetime(2262, 1, 1, tzinfo=UTC)  # nanoseconds since 1970 in 64 bits end that April
_LAST_S: Final = _LAST.timestamp()
_LAST_NS: Final = round(_LAST_S) * 1_000_000_000
_MOST: Final = 1e300  # of a sample: the sum of a million of them is still a number
_MOST_WORDS: Final = 120
_LONG_POWER: Final = re.compile("10{12,}")  # pydantic writes out every nought of a bound
_MAX_OBJECTS: Final = 20_000
M = TypeVar("M", bound=BaseModel)


def _in_our_time(at: datetime) -> datetime:
    if not _FIRST <= at <= _LAST:
        raise ValueError("not between 1970 and 2262")
    return at


def _trace_id(text: str) -> str:
    try:
        return trace_id_of(text)
    except InvalidArguments as error:
        raise ValueError("not a trace id (up to 32 hex digits)") from error


def _event(raw: dict[str, JsonValue]) -> dict[str, JsonValue]:
    read_event(raw)
    return raw


Instant = Annotated[AwareDatetime, AfterValidator(_in_our_time)]
Seconds = Annotated[float, Field(ge=0, le=_LAST_S, allow_inf_nan=False)]
Nanoseconds = Annotated[int, Field(ge=0, le=_LAST_NS)]
# Recorders write their language's zero time for lines with an unreadable clock.
LineNanoseconds = Annotated[int, Field(ge=-(2**63), le=_LAST_NS)]
Value = Annotated[float, Field(ge=-_MOST, le=_MOST, allow_inf_nan=False)]
Name = Annotated[str, Field(min_length=1, max_length=500, pattern=r"^[^\x00-\x1f\x7f]*$")]
Text = Annotated[str, Field(max_length=MAX_LINE_BYTES)]
Labels = dict[Name, str]


class Case(BaseModel):
    """`case.json`: the question, its channel's products, and its time."""

    model_config = ConfigDict(frozen=True)

    id: Name
    set: Name
    asked: Annotated[str, Field(min_length=1, max_length=10_000)]
    now: Instant
    products: tuple[Name, ...]


class SeriesRow(BaseModel):
    """A line of `metrics.ndjson`. A value of null is a gap."""

    name: Name
    labels: Labels = Field(default_factory=dict)
    unit: str | None = None
    points: list[tuple[Seconds, Value | None]]


class LineRow(BaseModel):
    """A line of `logs.ndjson`."""

    ts_ns: LineNanoseconds
    labels: Labels = Field(default_factory=dict)
    line: Text
    trace_id: str | None = None


class SpanRow(BaseModel):
    """A line of `traces.ndjson`."""

    trace_id: Annotated[str, AfterValidator(_trace_id)]
    span_id: Name
    parent_id: str | None = None
    service: Name
    name: str
    start_ns: Nanoseconds
    end_ns: Nanoseconds
    status: str | None = None
    message: str = ""
    tags: dict[str, str] = Field(default_factory=dict)


class DeployRow(BaseModel):
    """An element of `deploys.json`."""

    product: Name
    version: Name
    at: Instant
    actor: str = ""
    host: str = ""
    commit: str = ""
    status: str = "ok"
    previous_version: str = ""


class Deployed(BaseModel):
    """`deploys.json`."""

    deploys: list[DeployRow]


class Graph(BaseModel):
    """`graph.json`: calls between services, as (caller, called)."""

    edges: list[tuple[Name, Name]] = Field(default_factory=list)


class ClusterState(BaseModel):
    """`kubernetes.json`: objects and events as the API returns them."""

    objects: list[dict[str, JsonValue]] = Field(default_factory=list, max_length=_MAX_OBJECTS)
    events: list[Annotated[dict[str, JsonValue], AfterValidator(_event)]] = Field(
        default_factory=list, max_length=_MAX_OBJECTS
    )


def document_of(content: bytes, model: type[M], place: str) -> M:
    """A file that is one JSON object. Raises BadPack."""
    try:
        return model.model_validate(orjson.loads(content))
    except (Invalid, orjson.JSONDecodeError) as error:
        raise BadPack(f"{place}: {first_of(error)}") from error


def rows_of(content: bytes, rows: TypeAdapter[M], place: str) -> Sequence[M]:
    """Read a file of one JSON object a line, without its empty lines. Raises BadPack with the line."""
    found = []
    for number, line in enumerate(content.split(b"\n"), start=1):
        if not line.strip():
            continue
        if len(line) > MAX_LINE_BYTES:
            size = f"{len(line) >> 20} MiB, more than {MAX_LINE_BYTES >> 20}"
            raise BadPack(f"{place}:{number}: the line has {size}")
        try:
            found.append(rows.validate_python(orjson.loads(line)))
        except (Invalid, orjson.JSONDecodeError) as error:
            raise BadPack(f"{place}:{number}: {first_of(error)}") from error
    return found


def first_of(error: Exception) -> str:
    """The first thing wrong, in a line, without the value that is."""
    if not isinstance(error, Invalid):
        return f"not JSON: {error}"
    wrong = error.errors(include_url=False, include_input=False)[0]
    words = _LONG_POWER.sub(lambda power: f"1e{len(power[0]) - 1}", wrong["msg"])
    return f"{'.'.join(str(part) for part in wrong['loc']) or 'it'}: {words[:_MOST_WORDS]}"
