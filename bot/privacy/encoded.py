"""Base64 that people can read once it is decoded, in which a secret may stand."""

import base64
import binascii
from collections.abc import Iterator
from typing import Final

from bot.privacy.matching import finder

_SHORTEST: Final = 40
# So much of a text is decoded: enough for a Kubernetes Secret, and little work for hostile text.
_MOST_BYTES: Final = 128 * 1024
_UNREADABLE: Final = bytes(set(range(256)) - set(range(0x20, 0x7F)) - {0x09, 0x0A, 0x0D})


class Encoded:
    """Finds readable Base64."""

    def __init__(self) -> None:
        self._find = finder(b"[A-Za-z0-9+/]{%d,}={0,2}" % _SHORTEST)

    def pieces(self, data: bytes) -> Iterator[tuple[int, int, bytes]]:
        """Start and end of each, and what it says."""
        at, left = 0, _MOST_BYTES
        while left > 0:
            start, end = self._find(data, at, len(data))[0]
            if start < 0:
                return
            at = end
            raw = data[start : min(end, start + left)]
            left -= len(raw)
            text = _decoded(raw)
            if text:
                yield start, end, text


def _decoded(raw: bytes) -> bytes:
    """What it says; empty when that is not text."""
    plain = raw.rstrip(b"=")
    try:
        text = base64.b64decode(plain[: len(plain) // 4 * 4])
    except binascii.Error:
        return b""
    return b"" if text.translate(None, _UNREADABLE) != text else text
