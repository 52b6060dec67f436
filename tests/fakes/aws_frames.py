"""AWS event-stream messages as bytes: what a Bedrock server writes."""

import json
import struct
import zlib
from collections.abc import Mapping
from typing import Any

from tests.fakes.model_wires import on_the_wire


def frame(headers: Mapping[str, str], payload: bytes) -> bytes:
    """One message with string headers and both checksums."""
    packed = b"".join(
        struct.pack(">B", len(name)) + name.encode() + struct.pack(">BH", 7, len(value)) + value
        for name, value in ((name, text.encode()) for name, text in headers.items())
    )
    lengths = struct.pack(">II", 16 + len(packed) + len(payload), len(packed))
    head = lengths + struct.pack(">I", zlib.crc32(lengths))
    body = head + packed + payload
    return body + struct.pack(">I", zlib.crc32(body))


def event(name: str, data: Mapping[str, Any]) -> bytes:
    """A message of type event, padded as the service pads."""
    headers = {":event-type": name, ":content-type": "application/json", ":message-type": "event"}
    whole = json.dumps({**data, "p": "abcd"}, ensure_ascii=False)
    return frame(headers, on_the_wire(whole))


def exception(name: str, message: str) -> bytes:
    """A message of type exception."""
    headers = {
        ":exception-type": name,
        ":content-type": "application/json",
        ":message-type": "exception",
    }
    return frame(headers, json.dumps({"message": message}).encode())
