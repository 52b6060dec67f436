"""Servers of one handler of raw bytes, for answers that no HTTP library would write."""

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

OK = b"HTTP/1.1 200 OK\r\n"
Peer = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def listening(peer: Peer, tls: ssl.SSLContext | None = None) -> AsyncIterator[str]:
    """The address of a server that handles each connection with `peer`, and then closes it."""

    async def behave(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await peer(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(behave, "127.0.0.1", 0, ssl=tls)
    # A small buffer, so that what the server has not read stays with the client.
    server.sockets[0].setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
