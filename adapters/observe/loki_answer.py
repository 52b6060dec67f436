"""A level as LogQL, and Loki's answers: [timestamp, line, metadata] to one list."""

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Final

from pydantic import BaseModel, Field, TypeAdapter, ValidationError

from adapters.observe.backend import Answer, read_body
from adapters.observe.levels import KEYED, KLOG, WORD, at_least
from adapters.observe.log_entry import DETECTED, PUSHED, Entry
from tools.errors import InvalidArguments, UpstreamFailed

FROM_LINE: Final = ("kortex_key", "kortex_word", "kortex_klog")  # the first that is there counts


@cache  # of the few levels there are; an unknown one is none
def level_stages(minimum: str) -> str:
    """Stages that keep a level and above. Raises InvalidArguments on an unknown one."""
    wanted = f'=~"(?i)\\\\[?({"|".join(sorted(at_least(minimum)))})\\\\]?"'
    pushed = " or ".join(f"{label}{wanted}" for label in PUSHED)
    not_pushed = " and ".join(f'{label}=""' for label in PUSHED)
    key, word, klog = FROM_LINE
    line = f'({key}{wanted} or ({key}="" and ({word}{wanted} or ({word}="" and {klog}{wanted}))))'
    guessed = f'({DETECTED}{wanted} or ({DETECTED}=~"(unknown)?" and {line}))'
    extracted = " ".join(
        f"| regexp `{pattern.replace('?P<level>', f'?P<{name}>')}`"
        for name, pattern in zip(FROM_LINE, (KEYED, WORD, KLOG), strict=True)
    )
    return f"{extracted} | ({pushed} or ({not_pushed} and {guessed}))"


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


class _Count(BaseModel):
    metric: dict[str, str] = Field(default_factory=dict)
    value: tuple[float, float]


class _Counts(BaseModel):
    result: list[_Count] = Field(default_factory=list)


class _CountEnvelope(BaseModel):
    data: _Counts


class _Values(BaseModel):
    data: list[str] | None = None


class _Series(BaseModel):
    data: list[dict[str, str]] | None = None


_ENVELOPE: Final = TypeAdapter(_Envelope)
_COUNTS: Final = TypeAdapter(_CountEnvelope)
_VALUES: Final = TypeAdapter(_Values)
_SERIES: Final = TypeAdapter(_Series)


def check(answer: Answer) -> None:
    """Loki's errors are plain text; its parser's words are good enough to hand on.

    Raises InvalidArguments for a filter that it cannot read, UpstreamFailed otherwise.
    """
    if answer.ok:
        return
    words = answer.words()
    if answer.status == 400 and "parse error" in words:
        raise InvalidArguments(f"Loki does not understand the filter: {words}")
    raise UpstreamFailed(words or "no explanation", answer.status)


def counts_of(answer: Answer) -> Sequence[tuple[Mapping[str, str], int]]:
    """Labels and value of each row of a metric query. Raises as `check`."""
    check(answer)
    try:
        rows = _COUNTS.validate_json(answer.body).data.result
    except ValidationError as error:
        raise UpstreamFailed("not a vector of counts", answer.status) from error
    return [(row.metric, round(row.value[1])) for row in rows]


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


async def series_of(answer: Answer) -> Sequence[Mapping[str, str]]:
    """The labels of each stream. Raises as `check`."""
    check(answer)
    body = await read_body(answer, _SERIES)
    if body is None:
        raise UpstreamFailed("not a list of streams", answer.status)
    return body.data or ()


def _entries(stream: _Stream) -> Iterator[Entry]:
    for ts_ns, line, *rest in stream.values:
        labels = stream.stream
        for extra in rest:
            labels = {**extra.parsed, **extra.structured, **labels}
        # Nanoseconds come as text and only int keeps them all.
        yield Entry(int(ts_ns), line, labels)
