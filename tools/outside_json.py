"""Reads JSON that other systems wrote: null is an absent field, and lists are read entry by entry.

Servers written in Go send null for an empty list or map. One entry that is not in the documented
shape must not lose the rest: readers count such entries and say how many there were. A list without
any readable entry is an error.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Annotated, Any, Final, TypeVar

import structlog
from pydantic import (
    AfterValidator,
    AwareDatetime,
    BaseModel,
    BeforeValidator,
    Field,
    TypeAdapter,
    ValidationError,
    ValidationInfo,
    ValidatorFunctionWrapHandler,
    WrapValidator,
    model_validator,
)
from pydantic_core import PydanticUseDefault

_MOST_DIGITS: Final = 15  # a longer number counts nothing, and some readers cannot keep it
_UNIX_ZERO: Final = datetime(1970, 1, 1, tzinfo=UTC)
_LAST_DAY: Final = datetime(9999, 12, 31, tzinfo=UTC)
T = TypeVar("T")
_log = structlog.stdlib.get_logger(__name__)


@dataclass(slots=True)
class Unread:
    """Counts the entries of answers that could not be read.

    `fields` names the fields of readable entries that have their default instead.
    """

    count: int = 0
    fields: set[str] = field(default_factory=set)

    def notes(self, what: str) -> tuple[str, ...]:
        """`3 lines could not be read`; none for none."""
        return (unread_note(self.count, what),) if self.count else ()


_of_call: Final[ContextVar[Unread | None]] = ContextVar("unread_of_call", default=None)


@contextmanager
def counting_unread() -> Iterator[Unread]:
    """Counts every entry that readers leave out within the block, in its tasks and threads too.

    The tool runner states the count in the result of the call, independent of the tool's own text.
    """
    counted = Unread()
    token = _of_call.set(counted)
    try:
        yield counted
    finally:
        _of_call.reset(token)


def left_out(count: int) -> None:
    """Adds entries to the count of the call under way, for a reader that skips them itself."""
    of_call = _of_call.get()
    if of_call is not None:
        of_call.count += count


def _by_entry(value: Any, read: ValidatorFunctionWrapHandler, info: ValidationInfo) -> Any:
    if value is None:
        return []
    unread = info.context if isinstance(info.context, Unread) else Unread()
    before = unread.count
    try:
        return read(value)
    except ValidationError:
        unread.count = before
        if not isinstance(value, list | tuple):
            raise
    found: list[Any] = []
    for entry in value:
        counted = unread.count
        try:
            found += read([entry])
        except ValidationError:
            unread.count = counted + 1
    if not found:
        unread.count = before
        raise ValueError(f"none of its {len(value)} entries can be read")
    return found


Entries = Annotated[list[T], WrapValidator(_by_entry)]
"""A list without its unreadable entries, which `parse` counts; null is an empty list."""


def as_text(value: object) -> str | None:
    """A number, a flag, a list or an object as JSON writes it; a text or null as it is."""
    if value is None or isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)


Text = Annotated[
    str, BeforeValidator(lambda value: value if isinstance(value, list | dict) else as_text(value))
]
"""A text, which some senders write as a number or a flag."""


def _as_texts(given: object) -> object:
    if not isinstance(given, dict):
        return given
    return {name: as_text(value) for name, value in given.items() if value is not None}


Texts = Annotated[dict[str, str], BeforeValidator(_as_texts)]
"""A map of texts, such as labels. A null value is an absent name; other values become text."""


def _or_default(value: object, read: ValidatorFunctionWrapHandler, info: ValidationInfo) -> object:
    try:
        return read(value)
    except ValidationError:
        if isinstance(info.context, Unread):
            info.context.fields.add(info.field_name or "")
        raise PydanticUseDefault from None


Lenient = Annotated[T, WrapValidator(_or_default)]
"""A field that has its default where its value cannot be read. Such fields are logged.

Only for messages without a resend: without it, one odd field loses the whole message.
"""


class OutsideModel(BaseModel):
    """A model whose fields keep their defaults if the sender wrote null."""

    @model_validator(mode="before")
    @classmethod
    def _null_is_absent(cls, data: object) -> object:
        if not isinstance(data, Mapping):
            return data
        return {name: value for name, value in data.items() if value is not None}


def set_instant(at: datetime | None) -> datetime | None:
    """The instant that a sender set; None for the zero of its clock, and for its last day.

    Servers written in Go send the year 1 for an unset instant, and some send 1970. The last day of
    the calendar has no time in every zone.
    """
    return at if at is not None and _UNIX_ZERO < at < _LAST_DAY else None


SetInstant = Annotated[AwareDatetime | None, AfterValidator(set_instant)]
"""An instant with its zone; None for an unset one."""


def _required(at: datetime) -> datetime:
    if set_instant(at) is None:
        raise ValueError("this instant is not set")
    return at


RequiredInstant = Annotated[AwareDatetime, AfterValidator(_required)]
"""The same, of an entry that is useless without it."""


EpochSeconds = Annotated[float, Field(ge=0, lt=253_402_300_800)]
"""Seconds since 1970, until the last year that a date can hold."""


def count_of(value: object) -> int | None:
    """A count from text or a number; None for another value, or a too long one."""
    text = str(value) if isinstance(value, str) or type(value) is int else ""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS else None


def readable(kind: TypeAdapter[list[T]], entries: Sequence[object]) -> tuple[list[T], int]:
    """The readable ones of parsed entries, and how many are not; `kind` is of `Entries`.

    A caller that has to go on without any readable entry asks this instead of `shaped`.
    """
    counted = Unread()
    try:
        found = kind.validate_python(entries, context=counted)
    except ValidationError:
        found = []
    _log_fields(counted)
    left_out(len(entries) - len(found))
    return found, len(entries) - len(found)


def parse(kind: TypeAdapter[T], body: bytes | str, unread: Unread | None = None) -> T:
    """A body of JSON as that kind. Half a character (a lone surrogate) becomes `?`.

    `unread` counts the entries that could not be read; without it they are logged. Raises
    ValidationError.
    """
    counted = Unread() if unread is None else unread
    before = counted.count
    try:
        found = kind.validate_json(body, context=counted)
    except ValidationError as error:
        counted.count = before
        mended = (
            in_whole_characters(body)
            if error.errors(include_url=False)[0]["type"] == _NO_JSON
            else None
        )
        if mended is None:
            raise
        found = kind.validate_json(mended, context=counted)
    left_out(counted.count - before)
    _log_unread(unread, counted)
    return found


def shaped(kind: TypeAdapter[T], value: object, unread: Unread | None = None) -> T:
    """A value that is parsed already, as that kind. Counts and raises as `parse`."""
    counted = Unread() if unread is None else unread
    before = counted.count
    found = kind.validate_python(value, context=counted)
    left_out(counted.count - before)
    _log_unread(unread, counted)
    return found


_NO_JSON: Final = "json_invalid"


def _log_fields(counted: Unread) -> None:
    if counted.fields:
        _log.warning("answer.unreadable_fields", fields=sorted(counted.fields))


def _log_unread(asked: Unread | None, counted: Unread) -> None:
    _log_fields(counted)
    if asked is None and counted.count:
        _log.warning("answer.unreadable_entries", count=counted.count)


def in_whole_characters(body: bytes | str) -> bytes | None:
    """JSON in UTF-8 with `?` for lone surrogates; None for text that is not JSON.

    Bytes may be in UTF-16 or UTF-32, and begin with a byte order mark.
    """
    try:
        text = body
        if isinstance(text, bytes):
            text = text.decode(json.detect_encoding(text), "replace")
        whole = json.loads(text.removeprefix("\ufeff"))
        return json.dumps(whole, ensure_ascii=False).encode("utf-8", "replace")
    except (ValueError, RecursionError):
        return None


def unread_note(unreadable: int, what: str) -> str:
    """`3 spans could not be read`; empty for none."""
    return f"{unreadable} {what} could not be read" if unreadable else ""
