"""What a result must be before it leaves: clean text and strict JSON.

How a result that is too large is cut lives in `tools.rendering`.
"""

import math
import re
from collections.abc import Callable, Mapping
from typing import Final

import orjson
from pydantic import JsonValue

MAX_DEPTH = 100  # orjson and pydantic give up at about 250

# ANSI sequences (CSI, OSC with its text), then C0/C1 controls but tab and newline, line separators,
# zero-width and bidirectional controls, Unicode tag characters, lone surrogates.
_HOSTILE = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]{0,4096}(?:\x07|\x1b\\)?|\x1b[@-Z\\-_]"
    r"|[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]"
    r"|[\ud800-\udfff]|[\U000e0000-\U000e007f]"
)


_64_BITS = range(-(2**63), 2**64)
_LINE_END = re.compile(r"\r\n|\r|\n")


class NotStrictJson(ValueError):
    """A value that has no place in JSON, or is nested too deep."""


_MOST_DECIMAL_BITS: Final = 14_000  # Python writes at most 4,300 digits


def clean_text(text: str) -> str:
    """Without terminal controls and invisible characters; tabs and newlines stay."""
    return text if text.isascii() and text.isprintable() else _HOSTILE.sub("", text)


def lines_of(text: str) -> list[str]:
    """The lines of outside text, which end with LF, CRLF or CR, without these.

    `str.splitlines` also splits at form feed, NEL and U+2028, which are characters of a line.
    """
    lines = _LINE_END.split(text)
    return lines if lines[-1] else lines[:-1]


def clean_words(text: str, most: int) -> str:
    """Foreign text on one line, at most so many characters, for use in our sentence."""
    return " ".join(clean_text(text[: 8 * most]).split())[:most]


def json_number(value: float) -> float:
    """The number as every JSON writer takes it: an integer beyond 64 bits is a float.

    Raises NotStrictJson for one that no float holds.
    """
    if not isinstance(value, int) or value in _64_BITS:
        return value
    try:
        return float(value)
    except OverflowError:
        raise NotStrictJson("not a finite number") from None


def clean_value(value: object, depth: int = 0) -> JsonValue:
    """A copy with clean texts. Raises NotStrictJson for NaN, infinities, foreign types, depth."""
    if isinstance(value, str):
        return clean_text(value)
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        return json_number(value)
    if isinstance(value, float):
        if math.isfinite(value):
            return value
        raise NotStrictJson("not a finite number")
    if depth >= MAX_DEPTH:
        raise NotStrictJson("nested too deep")
    depth += 1
    if isinstance(value, dict):
        return {
            clean_text(str(key)): clean_text(item)
            if isinstance(item, str)
            else clean_value(item, depth)
            for key, item in value.items()
        }
    if isinstance(value, list | tuple):
        return [clean_value(item, depth) for item in value]
    raise NotStrictJson("not a JSON type")


def to_json(value: JsonValue) -> str:
    """Compact strict JSON. Raises NotStrictJson (an integer over 64 bits)."""
    try:
        return orjson.dumps(value).decode()
    except TypeError as error:
        raise NotStrictJson("not serializable") from error


def json_bytes(
    value: object, option: int = 0, default: Callable[[object], object] | None = None
) -> bytes:
    """JSON bytes of any JSON value, with any numbers and texts; the options are orjson's.

    An integer that no writer accepts becomes a float, or text beyond a float's range. Half a
    character (a lone surrogate) is `?`.
    """
    try:
        return orjson.dumps(value, default, option)
    except TypeError:
        return orjson.dumps(_writable(value), default, option)


def _writable(value: object) -> object:
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, Mapping):
        return {_writable(str(name)): _writable(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_writable(item) for item in value]
    return written_number(value) if isinstance(value, int) else value


def written_number(value: int) -> float | str:
    """The number as `json_number`, or its digits where no float holds it; hexadecimal if too many."""
    try:
        return json_number(value)
    except NotStrictJson:
        return str(value) if value.bit_length() < _MOST_DECIMAL_BITS else hex(value)


def weight(value: object, stop_at: int) -> int:
    """Roughly how many characters of text a value holds; counting ends past `stop_at`."""
    total, waiting = 0, [value]
    while waiting and total <= stop_at:
        item = waiting.pop()
        if isinstance(item, str):
            total += len(item)
        elif isinstance(item, dict):
            total += 8 * len(item)
            waiting.extend(item.values())
        elif isinstance(item, list | tuple):
            total += 8 * len(item)
            waiting.extend(item)
    return total
