"""Bodies of answers: read up to a size, and decompressed in pieces of a bounded size."""

import asyncio
import zlib
from collections.abc import AsyncIterator
from typing import Final

import httpx

from adapters.errors import BadAnswer
from adapters.http.errors import mapped_errors

ENCODINGS: Final = "gzip, deflate"
_ON_LOOP_BYTES: Final = 64 * 1024  # of output: 0.3 ms of work
_IN_THREAD_BYTES: Final = 1024 * 1024
# RFC 1952 lets a file have any number of members, and a server's answer has one.
_MOST_MEMBERS: Final = 16
_GZIP_WBITS: Final = zlib.MAX_WBITS | 16


async def read_capped(response: httpx.Response, max_bytes: int) -> bytes:
    """The whole body of a streamed response, decompressed, at most `max_bytes`.

    Raises BadAnswer when it is larger (the rest is not read), Unreachable or TimedOut when it
    breaks off.
    """
    parts: list[bytes] = []
    size = 0
    host = response.request.url.host
    with mapped_errors(host):
        async for part in response.aiter_bytes():
            size += len(part)
            if size > max_bytes:
                raise BadAnswer(f"{host} answered more than {max_bytes} bytes")
            parts.append(part)
    return b"".join(parts)


def decompressed(parts: AsyncIterator[bytes], encoding: str) -> AsyncIterator[bytes]:
    """The body behind one layer of gzip or deflate; `encoding` is the Content-Encoding header.

    Reading raises httpx.DecodingError for other encodings, several layers and damaged data.
    """
    names = [name for each in encoding.lower().split(",") if (name := each.strip())]
    layers = [name for name in names if name != "identity"]
    return _inflated(parts, layers) if layers else parts


async def _inflated(parts: AsyncIterator[bytes], layers: list[str]) -> AsyncIterator[bytes]:
    layer: _Layer | None = None
    async for part in parts:
        if layer is None:
            layer = _Layer(layers)
        piece, rest = layer.inflate(part, _ON_LOOP_BYTES)
        while True:
            if piece:
                yield piece
            if not rest:
                break
            piece, rest = await asyncio.to_thread(layer.inflate, rest, _IN_THREAD_BYTES)
    if layer is not None:
        layer.check_end()


class _Layer:
    """One compression. `deflate` is zlib's format, or without its header as some servers send it."""

    def __init__(self, layers: list[str]) -> None:
        if len(layers) > 1 or layers[0] not in {"gzip", "x-gzip", "deflate"}:
            raise httpx.DecodingError("compressed in an unrequested way")
        self._is_gzip = layers[0] != "deflate"
        self._inflating = zlib.decompressobj(_GZIP_WBITS if self._is_gzip else zlib.MAX_WBITS)
        self._may_lack_header = not self._is_gzip
        self._members = 1

    def inflate(self, data: bytes, max_bytes: int) -> tuple[bytes, bytes]:
        """At most `max_bytes` of output, and the input that is left over."""
        if self._inflating.eof and not (data := self._next_member(data)):
            return b"", b""
        try:
            piece = self._inflating.decompress(data, max_bytes)
        except zlib.error as error:
            if not self._may_lack_header:
                raise httpx.DecodingError("not compressed as its header says") from error
            self._inflating = zlib.decompressobj(-zlib.MAX_WBITS)
            piece, rest = b"", data
        else:
            rest = self._inflating.unconsumed_tail or self._inflating.unused_data
        self._may_lack_header = False
        return piece, rest

    def _next_member(self, data: bytes) -> bytes:
        """gzip's next member; the zeros after the last one are padding."""
        data = data.lstrip(b"\0")
        if not (self._is_gzip and data):
            return b""
        self._members += 1
        if self._members > _MOST_MEMBERS:
            raise httpx.DecodingError("compressed in too many parts")
        self._inflating = zlib.decompressobj(_GZIP_WBITS)
        return data

    def check_end(self) -> None:
        if not self._inflating.eof:
            raise httpx.DecodingError("breaks off")
