"""A NATS server on loopback, as far as a publisher sees it: the text protocol of nats-server 2.9.

https://docs.nats.io/reference/reference-protocols/nats-protocol
"""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any


@dataclass(slots=True)
class NatsMessage:
    """What arrived on a subject."""

    subject: str
    headers: str
    body: dict[str, Any]


@dataclass(slots=True)
class NatsServer:
    """`stream` says whether a stream takes the subject. The rest is what may go wrong."""

    url: str = ""
    stream: bool = True
    password: str = ""
    info: dict[str, Any] = field(default_factory=lambda: {"headers": True, "max_payload": 1 << 20})
    greeting: bytes = b""  # instead of INFO
    breaks_after: int = 1 << 30  # messages, on one connection
    stream_full: bool = False
    silent: bool = False
    received: list[NatsMessage] = field(default_factory=list)
    options: list[dict[str, Any]] = field(default_factory=list)
    arrived: asyncio.Event = field(default_factory=asyncio.Event)
    logged_in: asyncio.Event = field(default_factory=asyncio.Event)
    gone: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def ids(self) -> list[str]:
        """`Nats-Msg-Id` of each message in turn."""
        return [m.headers.split("Nats-Msg-Id: ")[1].split("\r\n")[0] for m in self.received]

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection until it ends."""
        try:
            with suppress(asyncio.IncompleteReadError, ConnectionError):
                await self._talk(reader, writer)
        finally:
            self.gone.set()
            writer.close()

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(self.greeting or b"INFO " + json.dumps(self.info).encode() + b" \r\n")
        left = self.breaks_after
        while line := (await reader.readuntil(b"\r\n")).decode().strip():
            verb, _, rest = line.partition(" ")
            match verb:
                case "CONNECT":
                    self.options.append(json.loads(rest))
                    self.logged_in.set()
                    if self.password and self.options[-1].get("pass", "") != self.password:
                        writer.write(b"-ERR 'Authorization Violation'\r\n")
                        await writer.drain()
                        return
                case "PING":
                    writer.write(b"" if self.silent else b"PONG\r\n")
                case "SUB":
                    pass
                case "HPUB":
                    if left == 0:
                        return
                    left -= 1
                    await self._take(rest.split(), reader, writer)
                case _:
                    writer.write(b"-ERR 'Unknown Protocol Operation'\r\n")

    async def _take(
        self, words: list[str], reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        head_size, size = int(words[-2]), int(words[-1])
        data = (await reader.readexactly(size + 2))[:size]
        reply = words[1] if len(words) == 4 else ""
        if self.stream:
            head, body = data[:head_size].decode(), data[head_size:]
            self.received.append(NatsMessage(words[0], head, json.loads(body)))
            self.arrived.set()
        if not reply:
            return
        if self.stream_full:
            said = b'{"error":{"code":503,"description":"maximum bytes exceeded"}}'
            writer.write(b"MSG %s 1 %d\r\n%s\r\n" % (reply.encode(), len(said), said))
        elif self.stream:
            said = b'{"stream":"AUDIT","seq":%d}' % len(self.received)
            writer.write(b"MSG %s 1 %d\r\n%s\r\n" % (reply.encode(), len(said), said))
        else:
            said = b"NATS/1.0 503\r\n\r\n"
            sizes = b"%d %d" % (len(said), len(said))
            writer.write(b"HMSG %s 1 %s\r\n%s\r\n" % (reply.encode(), sizes, said))


@asynccontextmanager
async def nats_server(**changes: Any) -> AsyncIterator[NatsServer]:
    """Run one on an ephemeral port."""
    nats = NatsServer(**changes)
    server = await asyncio.start_server(nats.serve, "127.0.0.1", 0)
    async with server:
        nats.url = f"nats://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        yield nats
