"""A level as LogQL, and Loki's answers: [timestamp, line, metadata] to one list."""

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Annotated, Final

from pydantic import BeforeValidator, Field, FiniteFloat, TypeAdapter, ValidationError

from adapters.observe.backend import Answer, read_body
from adapters.observe.instants import checked_ns
from adapters.observe.levels import KEYED, KLOG, WORD, at_least
from adapters.observe.log_entry import DETECTED, PUSHED, Entry, Newest
from adapters.observe.prometheus_answer import Envelope, notes_of
from tools.errors import InvalidArguments, UpstreamFailed
from tools.outside_json import Entries, OutsideModel, Texts, Unread, parse

FROM_LINE: Final = ("kortex_key", "kortex_word", "kortex_klog")  # the first that is there counts


@cache  # there are few levels; None for an unknown one
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


class _Extra(OutsideModel):
    structured: Texts = Field(default_factory=dict, alias="structuredMetadata")
    parsed: Texts = Field(default_factory=dict)


def _nanoseconds(text: object) -> int:
    if not isinstance(text, str):
        raise ValueError("no text")
    return checked_ns(int(text))


# Nanoseconds come as text and only int keeps them all.
_Time = Annotated[int, BeforeValidator(_nanoseconds)]


class _Stream(OutsideModel):
    stream: Texts = Field(default_factory=dict)
    # Two elements, or three with categorize-labels.
    values: Entries[tuple[_Time, str] | tuple[_Time, str, _Extra | None]]


class _Data(OutsideModel):
    type: str = Field(default="streams", alias="resultType")
    result: Entries[_Stream] = Field(default_factory=list)


class _Streams(OutsideModel, Envelope):
    data: _Data = _Data()


class _Count(OutsideModel):
    metric: Texts = Field(default_factory=dict)
    value: tuple[float, FiniteFloat]


class _Counts(OutsideModel):
    result: Entries[_Count] = Field(default_factory=list)


class _Vector(OutsideModel, Envelope):
    data: _Counts = _Counts()


class _Values(OutsideModel, Envelope):
    data: Entries[str] = Field(default_factory=list)


class _Series(OutsideModel, Envelope):
    data: Entries[Texts] = Field(default_factory=list)


_NOT_PASSED_ON: Final = (403, 404, 405, 501)

_STREAMS: Final = TypeAdapter(_Streams)
_COUNTS: Final = TypeAdapter(_Vector)
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
        found = parse(_COUNTS, answer.body)
    except ValidationError as error:
        raise UpstreamFailed("not a vector of counts", answer.status) from error
    notes_of(found, answer.status)
    return [(row.metric, round(row.value[1])) for row in found.data.result]


def streams_of(answer: Answer, limit: int) -> Newest:
    """The entries, in no particular order; `limit` were asked for.

    Raises UpstreamFailed when they are not log lines.
    """
    unread = Unread()
    try:
        found = parse(_STREAMS, answer.body, unread)
    except ValidationError as error:
        raise UpstreamFailed("not a list of log streams", answer.status) from error
    notes_of(found, answer.status)
    data = found.data
    if data.type != "streams":
        raise UpstreamFailed(f"answered {data.type}, not log lines", answer.status)
    entries = [entry for stream in data.result for entry in _entries(stream)]
    return Newest(entries, len(entries) + unread.count >= limit, unread.count)


def label_values_of(answer: Answer) -> list[str]:
    return _listed(answer) or []


def label_names_of(answer: Answer) -> list[str] | None:
    """The names of labels; None from a proxy that passes on queries alone. Raises as `check`."""
    if answer.status in _NOT_PASSED_ON:
        return None
    check(answer)
    return _listed(answer)


def _listed(answer: Answer) -> list[str] | None:
    try:
        found = parse(_VALUES, answer.body)
    except ValidationError:
        return None
    notes_of(found, answer.status)
    return found.data


async def series_of(answer: Answer) -> Sequence[Mapping[str, str]]:
    """The labels of each stream. Raises as `check`."""
    check(answer)
    body = await read_body(answer, _SERIES)
    if body is None:
        raise UpstreamFailed("not a list of streams", answer.status)
    notes_of(body, answer.status)
    return body.data


def _entries(stream: _Stream) -> Iterator[Entry]:
    for ts_ns, line, *rest in stream.values:
        labels = stream.stream
        for extra in filter(None, rest):
            labels = {**extra.parsed, **extra.structured, **labels}
        yield Entry(ts_ns, line, labels)
