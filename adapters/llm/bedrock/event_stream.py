"""AWS event-stream framing (`application/vnd.amazon.eventstream`), cut into JSON payloads.

A message is: total length, headers length, CRC-32 of those 8 bytes, headers, payload, CRC-32 of
everything before it; all numbers are big-endian. Both checksums are verified.
"""

import struct
import zlib
from collections.abc import Mapping
from typing import Final

from adapters.llm.framing import BadFraming, FrameTooLong
from adapters.llm.wire_json import dump

# The Smithy specification's bounds: 128 KiB of headers, 16 MiB of payload.
MAX_HEADERS_BYTES: Final = 128 * 1024
MAX_MESSAGE_BYTES: Final = 16 * 1024 * 1024 + MAX_HEADERS_BYTES + 16
_PRELUDE: Final = struct.Struct(">III")
_CRC: Final = struct.Struct(">I")
_LENGTH: Final = struct.Struct(">H")
_STRING: Final = 7
# Bytes after the type byte of a header value; 6 (bytes) and 7 (string) carry their own length.
_FIXED_BYTES: Final[Mapping[int, int]] = {0: 0, 1: 0, 2: 1, 3: 2, 4: 4, 5: 8, 8: 8, 9: 16}
_OVERHEAD_BYTES: Final = _PRELUDE.size + _CRC.size


class EventStreamSplitter:
    """Messages of a byte stream, however the bytes are cut, each as one JSON object:
    `{"event": name, "data": payload}` or `{"exception": name, "data": payload}`.
    """

    __slots__ = ("_held", "heard")

    def __init__(self) -> None:
        self._held = bytearray()
        self.heard = 0

    def feed(self, data: bytes) -> list[bytes]:
        """The messages that became whole. Raises BadFraming, also for a wrong checksum."""
        self._held += data
        payloads: list[bytes] = []
        start = 0
        while len(self._held) - start >= _PRELUDE.size:
            size = self._size(start)
            if len(self._held) - start < size:
                break
            payloads.append(_payload(bytes(self._held[start : start + size])))
            start += size
        del self._held[:start]
        self.heard += len(payloads)
        return payloads

    def close(self) -> list[bytes]:
        """Nothing: a message without its end is none."""
        return []

    def _size(self, start: int) -> int:
        total, headers, crc = _PRELUDE.unpack_from(self._held, start)
        if zlib.crc32(self._held[start : start + 8]) != crc:
            raise BadFraming("a message's prelude does not match its checksum")
        if total > MAX_MESSAGE_BYTES or headers > MAX_HEADERS_BYTES:
            raise FrameTooLong(f"a message of {total} bytes")
        if total < _OVERHEAD_BYTES + headers:
            raise BadFraming("a message is shorter than its headers")
        return int(total)


def _payload(message: bytes) -> bytes:
    (crc,) = _CRC.unpack_from(message, len(message) - _CRC.size)
    if zlib.crc32(message[: -_CRC.size]) != crc:
        raise BadFraming("a message does not match its checksum")
    (headers_bytes,) = _CRC.unpack_from(message, 4)
    body_at = _PRELUDE.size + headers_bytes
    headers = _headers(message[_PRELUDE.size : body_at])
    body = message[body_at : -_CRC.size] or b"{}"
    match headers.get(":message-type"):
        case "exception":
            return _wrapped("exception", headers.get(":exception-type", ""), body)
        case "error":
            words = dump({"message": headers.get(":error-message", "")})
            return _wrapped("exception", headers.get(":error-code", ""), words)
        case _:
            return _wrapped("event", headers.get(":event-type", ""), body)


def _wrapped(kind: str, name: str, body: bytes) -> bytes:
    return b'{"%s":%s,"data":%s}' % (kind.encode("ascii"), dump(name), body)


def _headers(data: bytes) -> dict[str, str]:
    """The string headers by name; other types are passed over."""
    found: dict[str, str] = {}
    at = 0
    try:
        while at < len(data):
            name_end = at + 1 + data[at]
            name, kind = data[at + 1 : name_end], data[name_end]
            at = name_end + 1
            if kind in _FIXED_BYTES:
                at += _FIXED_BYTES[kind]
                continue
            (size,) = _LENGTH.unpack_from(data, at)
            value, at = data[at + 2 : at + 2 + size], at + 2 + size
            if kind == _STRING:
                found[name.decode()] = value.decode()
    except (IndexError, struct.error, UnicodeDecodeError):
        raise BadFraming("a message's headers cannot be read") from None
    if at != len(data):
        raise BadFraming("a message's headers do not end where they should")
    return found
