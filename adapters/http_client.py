"""A client of one server or of several: what is asked, as it is sent. Answers are `adapters.http_answer`'s.

Nothing is followed, kept or retried here; `adapters.http` makes clients, with their limits and guards.
"""

import base64
import json as json_text
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from functools import lru_cache
from types import TracebackType
from typing import Final, Protocol, Self, TypedDict, Unpack

import aiohttp
from yarl import URL

from adapters.address import Params, bare_text, query_text, url_of, with_query
from adapters.http_answer import Answer, Request, WholeAnswer

# A client's own addresses. Longer ones may hold what somebody wrote, and are read each time.
_REMEMBERED: Final = 64
_SHORT_CHARS: Final = 256
_WITH_A_BODY: Final = frozenset({"POST", "PUT", "PATCH"})
_ALWAYS: Final = {
    "accept": "*/*",
    "accept-encoding": "gzip, deflate",
    "connection": "keep-alive",
    "user-agent": "kortex",
}


class Transport(Protocol):
    """What sends requests and brings answers."""

    async def open(self, request: Request) -> Answer:
        """The answer, as soon as its head is there. Raises aiohttp's errors and Refused."""
        ...

    async def aclose(self) -> None:
        """Close its connections."""
        ...


class Asked(TypedDict, total=False):
    """What belongs to one request. `data` is a form; a time is of each phase."""

    params: Params | None
    headers: Mapping[str, str] | None
    content: bytes | AsyncIterator[bytes] | None
    data: Params | None
    json: object
    timeout: float


class HttpClient:
    """Closed by whoever made it. A path is asked below `base_url`, and a whole address as it is.

    `params` are in the query of every request. `before` runs before each, and may change it.
    """

    def __init__(
        self,
        transport: Transport,
        *,
        base_url: str = "",
        headers: Mapping[str, str] | None = None,
        times: aiohttp.ClientTimeout | None = None,
        ways: Mapping[str, Transport] | None = None,
    ) -> None:
        self.params: Mapping[str, str] = {}
        self.before: Callable[[Request], Awaitable[None]] | None = None
        self.base_url = _with_slash(url_of(base_url)) if base_url else URL()
        self._base = str(self.base_url)
        self.headers = {**_ALWAYS, **_lower(headers)}
        self.times = times or aiohttp.ClientTimeout()
        self._transport = transport
        self._ways = ways or {}
        self._located = lru_cache(_REMEMBERED)(self._read)
        self._is_closed = False

    def build_request(self, method: str, url: URL | str, **asked: Unpack[Asked]) -> Request:
        """Raises InvalidURL, UnicodeEncodeError."""
        place, bare = self._place(url)
        params = asked.get("params")
        if self.params:
            params = {**self.params, **dict(params or {})}
        if params is not None:
            bare, query = bare or bare_text(place), query_text(params)
            place = with_query(bare, query) if query else url_of(bare)
        headers = {**self.headers, **_lower(asked.get("headers"))}
        body = _body(method, headers, asked)
        silence_s = asked.get("timeout")
        times = self.times if silence_s is None else times_of(silence_s, silence_s)
        return Request(method, _signed_in(place, headers), headers, body, times)

    async def send(self, request: Request) -> Answer:
        """The open answer, which the caller closes. Raises aiohttp's errors and AdapterError."""
        if self._is_closed:
            raise RuntimeError("the client is closed")
        if self.before is not None:
            await self.before(request)
        transport = self._transport
        if self._ways:
            transport = self._ways.get(request.url.raw_host or "", transport)
        return await transport.open(request)

    @asynccontextmanager
    async def stream(
        self, method: str, url: URL | str, **asked: Unpack[Asked]
    ) -> AsyncIterator[Answer]:
        """An open answer, closed at the end of the block."""
        answer = await self.send(self.build_request(method, url, **asked))
        try:
            yield answer
        finally:
            await answer.aclose()

    async def request(self, method: str, url: URL | str, **asked: Unpack[Asked]) -> WholeAnswer:
        """An answer of whatever size: of a server that is trusted not to send too much."""
        async with self.stream(method, url, **asked) as answer:
            return WholeAnswer(answer, await answer.aread())

    async def get(self, url: URL | str, **asked: Unpack[Asked]) -> WholeAnswer:
        """See `request`."""
        return await self.request("GET", url, **asked)

    async def post(self, url: URL | str, **asked: Unpack[Asked]) -> WholeAnswer:
        """See `request`."""
        return await self.request("POST", url, **asked)

    async def aclose(self) -> None:
        """Close every connection. Harmless twice."""
        self._is_closed = True
        for each in (self._transport, *self._ways.values()):
            await each.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.aclose()

    def _place(self, url: URL | str) -> tuple[URL, str]:
        """The address, and its text without a query where that is known."""
        if isinstance(url, URL):
            return url, ""
        return self._located(url) if len(url) <= _SHORT_CHARS else self._read(url)

    def _read(self, text: str) -> tuple[URL, str]:
        """The address, and its text without a query."""
        url = url_of(text)
        if self._base and not (url.scheme and url.raw_host):
            url = url_of(self._base + text.lstrip("/"))
        return url, bare_text(url)


def times_of(connect_s: float, read_s: float) -> aiohttp.ClientTimeout:
    """`connect_s` for a free connection, and for making one; `read_s` of silence within an answer."""
    return aiohttp.ClientTimeout(connect=connect_s, sock_connect=connect_s, sock_read=read_s)


def basic_credentials(user: str, password: str) -> str:
    """The header's value of a name and a password (RFC 7617)."""
    return f"Basic {base64.b64encode(f'{user}:{password}'.encode()).decode()}"


def _with_slash(url: URL) -> URL:
    text = str(url.with_fragment(None))
    return url if text.endswith("/") else URL(f"{text}/")


def _lower(headers: Mapping[str, str] | None) -> dict[str, str]:
    return {name.lower(): value for name, value in headers.items()} if headers else {}


def _body(
    method: str, headers: dict[str, str], asked: Asked
) -> bytes | AsyncIterator[bytes] | None:
    """What goes out, and in the headers what it is and how long."""
    body = asked.get("content")
    if (value := asked.get("json")) is not None:
        headers.setdefault("content-type", "application/json")
        body = json_text.dumps(
            value, ensure_ascii=False, separators=(",", ":"), allow_nan=False
        ).encode()
    elif form := asked.get("data"):
        headers.setdefault("content-type", "application/x-www-form-urlencoded")
        body = query_text(form).encode("ascii")
    if body:
        if isinstance(body, bytes):
            headers.setdefault("content-length", str(len(body)))
        return body
    if method in _WITH_A_BODY:
        headers.setdefault("content-length", "0")
    return None


def _signed_in(url: URL, headers: dict[str, str]) -> URL:
    """Without a name and a password in it, which go into a header."""
    if url.raw_user is None and url.raw_password is None:
        return url
    headers.setdefault("authorization", basic_credentials(url.user or "", url.password or ""))
    return url.with_user(None)
