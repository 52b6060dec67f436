"""Trace and span ids in one form, however a backend or a person writes them."""

import base64
import binascii
import re
from typing import Final

from tools.errors import InvalidArguments

_HEX: Final = re.compile(r"[0-9a-f]{1,32}")
_SPAN_ID_DIGITS: Final = 16
_TRACE_ID_DIGITS: Final = 32
_BASE64_CHARS: Final = {_SPAN_ID_DIGITS: 12, _TRACE_ID_DIGITS: 24}


def trace_id_of(text: str) -> str:
    """32 lower-case hex digits; a UUID's dashes are dropped. Raises InvalidArguments."""
    digits = text.strip().lower().replace("-", "")
    if _HEX.fullmatch(digits) is None:
        raise InvalidArguments(
            "request_id: a trace id is up to 32 hex digits; search the logs for another kind of id"
            " and use the trace_id of a line"
        )
    return digits.zfill(_TRACE_ID_DIGITS)


def spellings(trace_id: str) -> tuple[str, ...]:
    """The forms to look for: some stores match text, and keep 64-bit ids in 16 digits."""
    short = trace_id[-_SPAN_ID_DIGITS:]
    is_short = trace_id.removesuffix(short).strip("0") == ""
    return (trace_id, short) if is_short else (trace_id,)


def hex_id(text: str, digits: int) -> str:
    """An id as hex of that many digits, from hex or from OTLP JSON's base64; odd text stays.

    Jaeger writes OTLP ids in hex, Tempo in base64. The length distinguishes them: 16 or 32 hex
    digits against the 12 or 24 characters that base64 makes of 8 or 16 bytes.
    """
    if len(text) == _BASE64_CHARS[digits]:
        try:
            raw = base64.b64decode(text, validate=True)
        except (binascii.Error, ValueError):
            raw = b""
        if len(raw) * 2 == digits:
            return raw.hex()
    return text.lower().zfill(digits) if text else ""


def span_hex(text: str) -> str:
    """A span id in 16 digits."""
    return hex_id(text, _SPAN_ID_DIGITS)


def trace_hex(text: str) -> str:
    """A trace id in 32 digits."""
    return hex_id(text, _TRACE_ID_DIGITS)
