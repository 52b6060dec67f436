"""An answer over HTTP: open, while its body arrives, or whole."""

import json
import zlib
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

import aiohttp
from aiohttp.connector import Connection
from multidict import CIMultiDictProxy
from yarl import URL

_PIECE_BYTES: Final = 64 * 1024  # of what is decompressed at a time, however small it came
_GZIP: Final = zlib.MAX_WBITS | 16
_MOST_LAYERS: Final = 5  # one is usual, and each multiplies what the next has to do


@dataclass(slots=True)
class Request:
    """What is sent. Names of headers are in lower case."""

    method: str
    url: URL
    headers: dict[str, str] = field(repr=False)
    body: bytes | AsyncIterator[bytes] | None = field(repr=False)
    times: aiohttp.ClientTimeout


class DecodingError(Exception):
    """A body is not compressed as its header says."""


class Content(Protocol):
    """A body as it arrives."""

    async def readany(self) -> bytes:
        """What came since, as soon as there is something; empty at the end."""
        ...

    def at_eof(self) -> bool:
        """Whether all of it was read."""
        ...


class Carrier(Protocol):
    """What an answer comes by: aiohttp's response, or a connection that is written on directly."""

    @property
    def connection(self) -> Connection | None:
        """None once it was let go of."""
        ...

    @property
    def content(self) -> aiohttp.StreamReader:
        """The body, as it arrives."""
        ...

    def release(self) -> object:
        """Nobody reads the rest."""
        ...

    async def wait_for_close(self) -> None:
        """Once it was let go of."""
        ...


class Headers(Mapping[str, str]):
    """By name, whatever its case; what stands there more than once is joined by commas."""

    __slots__ = ("_fields",)

    def __init__(self, fields: CIMultiDictProxy[str]) -> None:
        self._fields = fields

    def __getitem__(self, name: str) -> str:
        return ", ".join([_text(value) for value in self._fields.getall(name)])

    def __contains__(self, name: object) -> bool:
        return name in self._fields

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys(name.lower() for name in self._fields))

    def __len__(self) -> int:
        return len({name.lower() for name in self._fields})

    def multi_items(self) -> list[tuple[str, str]]:
        """Each line of its own."""
        return [(name.lower(), _text(value)) for name, value in self._fields.items()]


def _text(value: str) -> str:
    """What is not UTF-8 is Latin-1."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return value.encode("utf-8", "surrogateescape").decode("latin-1")
    return value


class Answered:
    """Status and headers of the answer to a request."""

    __slots__ = ("headers", "request", "status_code")

    def __init__(self, request: Request, status: int, headers: Headers) -> None:
        self.request = request
        self.status_code = status
        self.headers = headers

    @property
    def is_success(self) -> bool:
        """Whether the status is 2xx."""
        return 200 <= self.status_code < 300

    @property
    def is_error(self) -> bool:
        """Whether the status is 4xx or 5xx."""
        return self.status_code >= 400


class WholeAnswer(Answered):
    """With its body, decompressed."""

    __slots__ = ("content",)

    def __init__(self, answer: Answered, content: bytes) -> None:
        super().__init__(answer.request, answer.status_code, answer.headers)
        self.content = content

    @property
    def text(self) -> str:
        """The body as UTF-8."""
        return self.content.decode("utf-8", "replace")

    def json(self) -> Any:
        """The body as JSON. Raises ValueError."""
        return json.loads(self.content)


class Answer(Answered):
    """Open: its body is read by one reader, once, and it is closed after that.

    Errors of reading are aiohttp's, and DecodingError. `wire` is what it comes by.
    """

    __slots__ = ("content", "wire")

    def __init__(
        self,
        request: Request,
        status: int,
        headers: CIMultiDictProxy[str],
        content: Content,
        wire: Carrier | None = None,
    ) -> None:
        super().__init__(request, status, Headers(headers))
        self.content = content
        self.wire = wire

    async def aiter_raw(self) -> AsyncIterator[bytes]:
        """The body as it comes."""
        while part := await self.content.readany():
            yield part

    async def aiter_bytes(self) -> AsyncIterator[bytes]:
        """The body, decompressed, in pieces of a bounded size."""
        if "content-encoding" not in self.headers:
            while part := await self.content.readany():
                yield part
            return
        layers = _layers(self.headers["content-encoding"])
        while part := await self.content.readany():
            for piece in _through(layers, part):
                yield piece
        for layer in layers:
            layer.end()

    async def aread(self) -> bytes:
        """All of the body, decompressed."""
        return b"".join([part async for part in self.aiter_bytes()])

    async def aclose(self) -> None:
        """Its connection is used again if all was read, and closed if not."""
        if self.wire is not None:
            self.wire.release()
            await self.wire.wait_for_close()


class _Layer:
    """One compression. `deflate` is zlib's format, or without its head, as some servers send it."""

    __slots__ = ("_inflating", "_is_begun", "_is_gzip", "_may_lack_head")

    def __init__(self, name: str) -> None:
        self._is_gzip = name != "deflate"
        self._inflating = zlib.decompressobj(_GZIP if self._is_gzip else zlib.MAX_WBITS)
        self._may_lack_head = not self._is_gzip
        self._is_begun = False

    def pieces(self, part: bytes) -> Iterator[bytes]:
        """What a part becomes. Raises DecodingError."""
        self._is_begun = self._is_begun or bool(part)
        while part:
            if self._inflating.eof:
                part = self._next(part)
                continue
            try:
                piece = self._inflating.decompress(part, _PIECE_BYTES)
            except zlib.error as error:
                if not self._may_lack_head:
                    raise DecodingError("not compressed as it says") from error
                self._inflating = zlib.decompressobj(-zlib.MAX_WBITS)
                self._may_lack_head = False
                continue
            self._may_lack_head = False
            if piece:
                yield piece
            part = self._inflating.unconsumed_tail or self._inflating.unused_data

    def _next(self, part: bytes) -> bytes:
        """After the end there may be one more of gzip's members, and nothing else that counts."""
        part = part.lstrip(b"\0")
        if self._is_gzip and part:
            self._inflating = zlib.decompressobj(_GZIP)
            return part
        return b""

    def end(self) -> None:
        """No more will come. Raises DecodingError where it breaks off."""
        if self._is_begun and not self._inflating.eof:
            raise DecodingError("breaks off")


def _layers(encoding: str) -> list[_Layer]:
    """The last first, as they are taken off. What nobody asked for is left as it is."""
    names = [each.strip().lower() for each in encoding.split(",")]
    known = [name for name in reversed(names) if name in {"gzip", "x-gzip", "deflate"}]
    if len(known) > _MOST_LAYERS:
        raise DecodingError("compressed again and again")
    return [_Layer(name) for name in known]


def _through(layers: list[_Layer], part: bytes) -> Iterator[bytes]:
    if not layers:
        yield part
        return
    for piece in layers[0].pieces(part):
        yield from _through(layers[1:], piece)
