"""Reading foreign JSON without trusting its shape: each reader answers an empty value instead of raising."""

import json
from collections.abc import Mapping, Sequence
from typing import Final

import orjson

_NOTHING: Final[Mapping[str, object]] = {}


def parse(data: bytes | str) -> object:
    """The value of a JSON text. Raises ValueError (the fast parser's error is one)."""
    return orjson.loads(data)


def dump(value: object) -> bytes:
    """Compact JSON with keys in the order given, so that equal requests are equal bytes."""
    return orjson.dumps(value)


def dump_text(value: object) -> str:
    """Compact JSON as text."""
    return orjson.dumps(value).decode()


def as_object(value: object) -> Mapping[str, object]:
    """The value if it is an object, else an empty one."""
    return value if isinstance(value, dict) else _NOTHING


def as_list(value: object) -> Sequence[object]:
    """The value if it is an array, else an empty one."""
    return value if isinstance(value, list) else ()


def as_text(value: object) -> str:
    """The value if it is a string, else an empty one."""
    return value if isinstance(value, str) else ""


def as_int(value: object) -> int | None:
    """The value if it is a whole number, zero or more."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)  # written so by servers that count in floats
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        return None
    return value


def arguments_object(text: str) -> Mapping[str, object]:
    """The arguments a model wrote, as an object; empty when they are not one.

    For replaying history: what the model wrote wrongly was already answered with an error.
    """
    try:
        return as_object(json.loads(text))
    except ValueError:
        return _NOTHING


def is_complete(text: str) -> bool:
    """Whether a text is one whole JSON value."""
    try:
        json.loads(text)
    except ValueError:
        return False
    return True
