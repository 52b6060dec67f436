"""Requests to Slack as they are sent, their head made once for a token; connections are aiohttp's.

aiohttp's own request reads the address, the headers, the cookies and the limits anew, and begins a task for
the body. An answer that grows makes a call a second, and all of that costs more than to send one and to
read what comes. No redirect is followed, so that a token goes nowhere else, and no cookie is kept.
"""

import asyncio
from collections.abc import Mapping
from typing import Final, NamedTuple

import aiohttp
from aiohttp import hdrs
from aiohttp.client_proto import ResponseHandler
from aiohttp.http_exceptions import HttpProcessingError
from yarl import URL

# The caller limits the time of all of a call.
UNTIMED: Final = aiohttp.ClientTimeout(total=None)
FORM: Final = "application/x-www-form-urlencoded"
JSON: Final = "application/json;charset=utf-8"


class Answered(NamedTuple):
    """What came back, whatever it says."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class _Head(NamedTuple):
    """What all requests of a kind have in common; `request` is what aiohttp connects for."""

    request: aiohttp.ClientRequest
    lines: str


class Wire:
    """One server's methods. Raises aiohttp's errors, OSError, and ValueError and RuntimeError for what cannot be sent."""

    def __init__(
        self, session: aiohttp.ClientSession, base_url: str, headers: Mapping[str, str]
    ) -> None:
        self._session = session
        self._base_url = base_url
        self._headers = headers
        self._heads: dict[str, _Head] = {}

    async def get(self, method: str, query: Mapping[str, str]) -> Answered:
        """Asked once more where a connection that was kept turns out to be closed, as aiohttp does."""
        head = self._heads.get(FORM) or self._head("GET", FORM)
        target = URL(f"{self._base_url}{method}").extend_query(query).raw_path_qs
        sent = f"GET {target} HTTP/1.1\r\n{head.lines}\r\n".encode()
        try:
            return await self._answered(head.request, sent)
        except aiohttp.ClientConnectorError:
            raise
        except (aiohttp.ClientOSError, aiohttp.ServerDisconnectedError):
            return await self._answered(head.request, sent)

    async def post(self, method: str, body: bytes) -> Answered:
        """Sent once: it may have taken effect, whatever came back."""
        head = self._heads.get(JSON) or self._head("POST", JSON)
        target = URL(f"{self._base_url}{method}").raw_path_qs
        said = f"POST {target} HTTP/1.1\r\n{head.lines}Content-Length: {len(body)}\r\n\r\n"
        return await self._answered(head.request, said.encode() + body)

    def _head(self, verb: str, kind: str) -> _Head:
        """As aiohttp would write it."""
        if self._session.closed:
            raise RuntimeError("the session is closed")
        request = aiohttp.ClientRequest(
            verb,
            URL(self._base_url),
            headers={hdrs.CONTENT_TYPE: kind, **self._headers},
            loop=asyncio.get_running_loop(),
        )
        request.headers.pop(hdrs.CONTENT_LENGTH, None)
        fields = [f"{name}: {value}" for name, value in request.headers.items()]
        if any(each in field for field in fields for each in "\r\n\0"):
            raise ValueError("a header of more than one line")
        made = self._heads[kind] = _Head(request, "".join(f"{field}\r\n" for field in fields))
        return made

    async def _answered(self, request: aiohttp.ClientRequest, sent: bytes) -> Answered:
        if (connector := self._session.connector) is None or self._session.closed:
            raise RuntimeError("the session is closed")
        connection = await connector.connect(request, traces=[], timeout=UNTIMED)
        try:
            protocol = connection.protocol
            if protocol is None or (transport := protocol.transport) is None:
                raise aiohttp.ClientConnectionResetError("closed before it was used")
            protocol.set_response_params(read_until_eof=True)
            transport.write(sent)
            answered = await _read(protocol)
            connection.release()
        except HttpProcessingError as error:
            raise aiohttp.ClientResponseError(request.request_info, ()) from error
        finally:
            connection.close()  # unless it was released: all of the answer was read
        return answered


async def _read(protocol: ResponseHandler) -> Answered:
    while True:
        said, content = await protocol.read()
        if not 100 <= said.code <= 199:  # those only say that more comes
            return Answered(said.code, said.headers, await content.read())
