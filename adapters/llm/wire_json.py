"""Reading foreign JSON without trusting its shape: each reader answers an empty value instead of raising."""

import json
from collections.abc import Mapping, Sequence
from typing import Final

import orjson

from adapters.llm import odd_json

_NOTHING: Final[Mapping[str, object]] = {}
# No answer counts further; databases hold 64 bits, and sums have to fit.
_MAX_COUNT: Final = 2**31


def parse(data: bytes | str) -> object:
    """The value of a JSON text, or of what nearly is one. Raises ValueError."""
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError:
        return odd_json.read(data)


def dump(value: object) -> bytes:
    """Compact JSON with keys in the order given, so that equal requests are equal bytes.

    What JSON cannot say is null.
    """
    try:
        return orjson.dumps(value)
    except TypeError:  # a number over 64 bits, a lone surrogate, nesting
        return orjson.dumps(odd_json.sayable(value))


def dump_text(value: object) -> str:
    """Compact JSON as text."""
    return dump(value).decode()


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
    """The value if it is a whole number, zero or more, that something could count up to."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)  # written so by servers that count in floats
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= _MAX_COUNT:
        return None
    return value


def arguments_text(arguments: object) -> str:
    """The text of arguments that came as an object; no JSON where JSON cannot say them.

    Then the tool refuses them, and the model is told so.
    """
    return json.dumps(
        odd_json.sayable(as_object(arguments)), ensure_ascii=False, separators=(",", ":")
    )


def arguments_object(text: str) -> Mapping[str, object]:
    """The arguments a model wrote, as an object; empty when they are not one that all vendors read.

    For replaying history: what the model wrote wrongly was already answered with an error.
    """
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError:
        return _NOTHING
    return as_object(value) if odd_json.is_shallow(value) else _NOTHING


def is_complete(text: str) -> bool:
    """Whether a text is one whole JSON value."""
    try:
        orjson.loads(text)
    except orjson.JSONDecodeError:
        return False
    return True
