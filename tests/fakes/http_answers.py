"""A client whose requests reach no server: a function answers them."""

import inspect
import json as json_text
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from multidict import CIMultiDict, CIMultiDictProxy

from adapters.http_answer import Answer, Request
from adapters.http_client import HttpClient


@dataclass(frozen=True)
class Given:
    """What a server would answer; what is iterated over comes in these parts."""

    status: int = 200
    content: bytes | AsyncIterator[bytes] = b""
    headers: Mapping[str, str] = field(default_factory=dict)


def json_given(body: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Given:
    return Given(
        status,
        json_text.dumps(body, ensure_ascii=False).encode("utf-8", "surrogatepass"),
        headers or {},
    )


Handler = Callable[[Request], Given | Awaitable[Given]]


class Arriving:
    """`Content` of parts that are there already."""

    def __init__(self, content: bytes | AsyncIterator[bytes]) -> None:
        self._parts = _of(content) if isinstance(content, bytes) else content
        self._over = False

    async def readany(self) -> bytes:
        part = await anext(self._parts, b"")
        self._over = not part
        return part

    def at_eof(self) -> bool:
        return self._over


async def _of(content: bytes) -> AsyncIterator[bytes]:
    if content:
        yield content


def opened(request: Request, given: Given) -> Answer:
    headers = CIMultiDictProxy(CIMultiDict(given.headers))
    return Answer(request, given.status, headers, Arriving(given.content))


class Handled:
    """`Transport` of one function."""

    def __init__(self, handler: Handler) -> None:
        self._handler = handler

    async def open(self, request: Request) -> Answer:
        found = self._handler(request)
        return opened(request, await found if inspect.isawaitable(found) else found)

    async def aclose(self) -> None:
        return


def answering(handler: Handler, base_url: str = "http://backend.test") -> HttpClient:
    return HttpClient(Handled(handler), base_url=base_url)


def body_of(request: Request) -> bytes:
    """What was sent, of a request that is not in parts."""
    assert request.body is None or isinstance(request.body, bytes)
    return request.body or b""
