"""An HTTP proxy on loopback: tunnels (CONNECT) and plain requests, and what it was sent."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import urlsplit


class Proxy:
    """`heads` are what clients said to the proxy itself, in order."""

    def __init__(self) -> None:
        self.heads: list[str] = []
        self.address = ""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection."""
        head = await reader.readuntil(b"\r\n\r\n")
        self.heads.append(head.decode())
        method, target = head.decode().split(" ")[:2]
        tunnel = method == "CONNECT"
        parts = urlsplit(f"//{target}" if tunnel else target)
        far, onward = await asyncio.open_connection(parts.hostname, parts.port)
        if tunnel:
            writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        else:
            onward.write(head)
        async with asyncio.TaskGroup() as both:
            both.create_task(_copied(reader, onward))
            both.create_task(_copied(far, writer))


async def _copied(source: asyncio.StreamReader, to: asyncio.StreamWriter) -> None:
    try:
        while some := await source.read(65_536):
            to.write(some)
    except ConnectionError:
        pass
    finally:
        to.close()


@asynccontextmanager
async def proxying() -> AsyncIterator[Proxy]:
    proxy = Proxy()
    server = await asyncio.start_server(proxy.serve, "127.0.0.1", 0)
    proxy.address = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield proxy
    finally:
        server.close()
