"""Requests as they are written on aiohttp's connections, and by what their answers come.

aiohttp's own request reads the address, the headers, the cookies and the limits anew, and begins a task for
the body: together more than what it costs to send. No redirect is followed, and no cookie is kept.
"""

import asyncio
from typing import Final

import aiohttp
from aiohttp.connector import Connection
from aiohttp.http_exceptions import HttpProcessingError
from yarl import URL

from adapters.errors import BadRequest
from adapters.http_answer import Answer, Request

_WITH_A_KIND: Final = frozenset({"PATCH", "POST", "PUT"})  # whether or not there is a body
_READS: Final = frozenset({"GET", "HEAD", "OPTIONS", "TRACE"})
_OCTETS: Final = "content-type: application/octet-stream\r\n"
_EMPTY: Final = "content-length: 0\r\n"
_MOST_SERVERS: Final = 64
# Asked once more where a connection turns out to be closed; of others nobody knows what came of them.
_REPEATABLE: Final = frozenset({"GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE"})


class Held:
    """The connection that an answer comes by: used again once all was read, and closed if not."""

    __slots__ = ("_content", "connection")

    def __init__(self, connection: Connection, content: aiohttp.StreamReader) -> None:
        self.connection: Connection | None = connection
        self._content = content
        content.on_eof(self._let_go)

    @property
    def content(self) -> aiohttp.StreamReader:
        """The body, as it arrives."""
        return self._content

    def release(self) -> None:
        """Nobody reads the rest."""
        if self._content.exception() is None:
            self._content.set_exception(aiohttp.ClientConnectionError("Connection closed"))
        self._let_go()

    async def wait_for_close(self) -> None:
        """Nothing is left to wait for."""

    def _let_go(self) -> None:
        connection, self.connection = self.connection, None
        if connection is None:
            return
        transport = connection.transport
        if transport is not None and transport.get_write_buffer_size():
            connection.close()  # answered before it was asked to the end
        else:
            connection.release()


class Wire:
    """Of one connector. Raises aiohttp's errors, and BadRequest for what cannot be sent."""

    def __init__(self, connector: aiohttp.BaseConnector) -> None:
        self._connector = connector
        # What aiohttp connects for, by server.
        self._servers: dict[URL, aiohttp.ClientRequest] = {}

    @staticmethod
    def takes(request: Request) -> bool:
        """Whether it can be sent so: at once, and to a server."""
        whole = request.body is None or isinstance(request.body, bytes)
        return whole and request.url.scheme in ("http", "https") and bool(request.url.raw_host)

    async def open(self, request: Request) -> Answer:
        """The answer, as soon as its head is there; the caller closes it."""
        sent = _written(request)
        try:
            return await self._answered(request, sent)
        except aiohttp.ClientConnectorError:
            raise
        except (aiohttp.ClientOSError, aiohttp.ServerDisconnectedError):
            if request.method not in _REPEATABLE:
                raise
            return await self._answered(request, sent)

    async def _answered(self, request: Request, sent: bytes) -> Answer:
        server = self._server(request.url)
        times = request.times
        try:
            connection = await self._connector.connect(server, traces=[], timeout=times)
        except TimeoutError as error:
            raise aiohttp.ConnectionTimeoutError(
                f"Connection timeout to host {request.url}"
            ) from error
        try:
            protocol = connection.protocol
            if protocol is None or (transport := protocol.transport) is None:
                raise aiohttp.ClientConnectionResetError("closed before it was used")
            protocol.set_response_params(
                skip_payload=request.method == "HEAD",
                read_until_eof=True,
                auto_decompress=False,
                read_timeout=times.sock_read,
            )
            transport.write(sent)
            protocol.start_timeout()
            said, content = await protocol.read()
            while 100 <= said.code <= 199 and said.code != 101:  # it only says that more comes
                said, content = await protocol.read()
        except HttpProcessingError as error:
            connection.close()
            raise aiohttp.ClientResponseError(
                server.request_info, (), status=error.code, message=error.message
            ) from error
        except BaseException:
            connection.close()
            raise
        return Answer(request, said.code, said.headers, content, Held(connection, content))

    def _server(self, url: URL) -> aiohttp.ClientRequest:
        origin = url.origin()
        if (server := self._servers.get(origin)) is None:
            loop = asyncio.get_running_loop()
            server = aiohttp.ClientRequest("GET", origin, loop=loop)
            if len(self._servers) >= _MOST_SERVERS:
                self._servers.clear()
            self._servers[origin] = server
        return server


def _written(request: Request) -> bytes:
    """As aiohttp would write it; what a header may hold was looked at before."""
    body = request.body if isinstance(request.body, bytes) else b""
    url, headers = request.url, request.headers
    target = url.raw_path_qs
    if not target.isprintable():
        raise BadRequest("an address holds a character that cannot be sent")
    host = "" if "host" in headers else f"host: {url.host_port_subcomponent}\r\n"
    lines = "".join([f"{name}: {value}\r\n" for name, value in headers.items()])
    has_kind = "content-type" in headers or not (body or request.method in _WITH_A_KIND)
    octets = "" if has_kind else _OCTETS
    has_length = "content-length" in headers or body or request.method in _READS
    empty = "" if has_length else _EMPTY
    return f"{request.method} {target} HTTP/1.1\r\n{host}{lines}{empty}{octets}\r\n".encode() + body
