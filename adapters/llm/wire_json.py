"""Lenient readers of foreign JSON: a wrong shape gives an empty value, never an error.

Model servers send invalid JSON; it is read for its meaning, and cut below a depth. Values without a
JSON form (NaN, infinities, numbers beyond a double) and deeper nesting become NaN. Written out
again they are invalid JSON, so a tool refuses them and the model sees the refusal.
"""

import json
import math
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Final

import orjson

_NOTHING: Final[Mapping[str, object]] = {}
# No answer counts further; databases hold 64 bits, and sums have to fit.
_MAX_COUNT: Final = 2**31

# A line this long that is not JSON would only cost other turns time.
MAX_ODD_BYTES: Final = 2 * 1024 * 1024
# .NET's reader gives up at 64, the strictest of those behind the wires; requests wrap it in some.
MAX_DEPTH: Final = 50
# The most levels around the arguments in an event.
_READ_DEPTH: Final = MAX_DEPTH + 14
_STEP: Final = re.compile(r'"(?:[^"\\]|\\.)*+(?:"|\Z)|[\[{]|[\]}]', re.DOTALL)
_MAX_INT: Final = 2**63
# Arguments of calls that each round of a turn sends again, of some long threads at once.
_REPLAYED: Final = 512
_SHORT: Final = 500


def parse(data: bytes | str) -> object:
    """The value of a JSON text, or of what nearly is one. Raises ValueError."""
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError:
        return read_malformed(data)


def dump(value: object) -> bytes:
    """Compact JSON with keys in the order given, so that equal requests are equal bytes.

    What JSON cannot say is null.
    """
    try:
        return orjson.dumps(value)
    except TypeError:  # a number over 64 bits, a lone surrogate, nesting
        return orjson.dumps(sayable(value))


def dump_text(value: object) -> str:
    return dump(value).decode()


def as_object(value: object) -> Mapping[str, object]:
    return value if isinstance(value, dict) else _NOTHING


def as_list(value: object) -> Sequence[object]:
    """The value if it is an array, else an empty one."""
    return value if isinstance(value, list) else ()


def as_text(value: object) -> str:
    return value if isinstance(value, str) else ""


def as_int(value: object) -> int | None:
    """The value if it is a whole number, zero or more, that something could count up to."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)  # written so by servers that count in floats
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= _MAX_COUNT:
        return None
    return value


def arguments_text(arguments: object) -> str:
    """The text of arguments that came as an object; invalid JSON if they have no JSON form.

    Then the tool refuses them, and the model sees the refusal.
    """
    return json.dumps(sayable(as_object(arguments)), ensure_ascii=False, separators=(",", ":"))


def arguments_object(text: str) -> Mapping[str, object]:
    """The arguments a model wrote, as an object; empty when they are not one that all vendors read.

    For replaying history: what the model wrote wrongly was already answered with an error. Each round
    replays all of it, so the same one may be given again: it is to be read only.
    """
    return _short_arguments(text) if len(text) <= _SHORT else _arguments(text)


def _arguments(text: str) -> Mapping[str, object]:
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError:
        return _NOTHING
    return as_object(value) if is_shallow(value) else _NOTHING


_short_arguments = lru_cache(_REPLAYED)(_arguments)


def is_complete(text: str) -> bool:
    try:
        orjson.loads(text)
    except orjson.JSONDecodeError:
        return False
    return True


def read_malformed(data: bytes | str) -> object:
    """The value of a text that a strict parser refused. Raises ValueError."""
    if len(data) > MAX_ODD_BYTES:
        raise ValueError("too long to be read leniently")
    text = data if isinstance(data, str) else data.decode("utf-8", "replace")
    value: object = json.loads(
        _cut(text), strict=False, parse_int=_whole, parse_float=_number, parse_constant=_nan
    )
    return sayable(value, _READ_DEPTH)


def sayable(value: object, depth: int = MAX_DEPTH) -> object:
    """A copy that every JSON writer takes, but for NaN: without lone surrogates and depth."""
    match value:
        case str():
            return _whole_characters(value)
        case dict() if depth > 0:
            return {
                _whole_characters(str(key)): sayable(inner, depth - 1)
                for key, inner in value.items()
            }
        case list() | tuple() if depth > 0:
            return [sayable(inner, depth - 1) for inner in value]
        case dict() | list() | tuple():
            return math.nan
        case int() if not -_MAX_INT <= value < _MAX_INT:
            return _number(str(value)) if value.bit_length() <= 1024 else math.nan
        case _:
            return value


def is_shallow(value: object, depth: int = MAX_DEPTH) -> bool:
    """Whether arrays and objects are nested no deeper than that."""
    if not isinstance(value, dict | list):
        return True
    inner = value.values() if isinstance(value, dict) else value
    return depth > 0 and all(is_shallow(each, depth - 1) for each in inner)


def _cut(text: str) -> str:
    kept: list[str] = []
    depth = at = 0
    for step in _STEP.finditer(text):
        match step[0]:
            case "[" | "{":
                depth += 1
                if depth == _READ_DEPTH + 1:
                    kept += (text[at : step.start()], "NaN")
            case "]" | "}":
                if depth == _READ_DEPTH + 1:
                    at = step.end()
                depth -= 1
            case _:
                pass
    return "".join((*kept, text[at:] if depth <= _READ_DEPTH else ""))


def _whole(digits: str) -> int | float:
    # Twenty characters hold every 64-bit number; thousands would take quadratic time.
    number = int(digits) if len(digits) <= 20 else _MAX_INT
    return number if -_MAX_INT <= number < _MAX_INT else _number(digits)


def _number(digits: str) -> float:
    try:
        number = float(digits)
    except (OverflowError, ValueError):
        return math.nan
    return number if math.isfinite(number) else math.nan


def _nan(word: str) -> float:
    del word
    return math.nan


def _whole_characters(text: str) -> str:
    if text.isascii():
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
