"""Reads JSON that other systems wrote: null is an absent field, and lists are read entry by entry.

Servers written in Go send null for an empty list or map. One entry that is not in the documented
shape must not lose the rest: readers count such entries and say how many there were.
"""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Final, TypeVar

from pydantic import BaseModel, TypeAdapter, ValidationError, model_validator

_UNIX_ZERO: Final = datetime(1970, 1, 1, tzinfo=UTC)
T = TypeVar("T")


class OutsideModel(BaseModel):
    """A model whose fields keep their defaults where the sender wrote null."""

    @model_validator(mode="before")
    @classmethod
    def _null_is_absent(cls, data: object) -> object:
        if not isinstance(data, Mapping):
            return data
        return {name: value for name, value in data.items() if value is not None}


def set_instant(at: datetime | None) -> datetime | None:
    """The instant that a sender set; None for the zero of its clock.

    Servers written in Go send the year 1 for an instant that nobody set, and others send 1970.
    """
    return at if at is not None and at > _UNIX_ZERO else None


def readable(kind: TypeAdapter[T], entries: Iterable[object]) -> tuple[list[T], int]:
    """The entries of that kind in their order, and how many could not be read."""
    found: list[T] = []
    unreadable = 0
    for entry in entries:
        try:
            found.append(kind.validate_python(entry))
        except ValidationError:
            unreadable += 1
    return found, unreadable


def unread_note(unreadable: int, what: str) -> str:
    """`3 spans could not be read`; empty for none."""
    return f"{unreadable} {what} could not be read" if unreadable else ""
