"""A model server and a Loki in a process of their own, as cheap as they can be made.

`/pace/10/v1/chat/completions` streams an event every 10 ms, `/pace/0/…` all at once. Which round
a request asks for is read from how often the assistant has spoken in it.
"""

import asyncio
import time
from typing import Any

import orjson

from tests.benchmarks.child import serve
from tests.benchmarks.transcript import MODEL, asked_by, events, log_lines

_RESOURCES = {
    "/v1/chat/completions": "openai",
    "/v1/messages": "anthropic",
    "/api/chat": "ollama",
}
_STREAM = (
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
)
_LAST = b"0\r\n\r\n"
_ABILITIES = ["completion", "tools"]
FIRST_TEXT: dict[str, float] = {}


def _chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


class Connection(asyncio.Protocol):
    """One keep-alive connection with one request at a time."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._loop = asyncio.get_running_loop()
        self._next: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        self._transport = transport

    def connection_lost(self, exc: Exception | None) -> None:
        if self._next is not None:
            self._next.cancel()

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        end = self._buffer.find(b"\r\n\r\n")
        if end < 0:
            return
        head = bytes(self._buffer[:end]).lower()
        length = 0
        for line in head.split(b"\r\n"):
            if line.startswith(b"content-length:"):
                length = int(line[15:])
        if len(self._buffer) < end + 4 + length:
            return
        body = bytes(self._buffer[end + 4 : end + 4 + length])
        del self._buffer[: end + 4 + length]
        self._answer(head.split(b" ", 2)[1].decode(), body)

    def _answer(self, path: str, body: bytes) -> None:
        if path.startswith("/loki/"):
            self._whole(_loki(path.partition("?")[0]))
        elif path.endswith("/api/tags"):
            self._whole({"models": [{"name": MODEL, "model": MODEL, "capabilities": _ABILITIES}]})
        elif path.endswith("/api/show"):
            self._whole({"capabilities": _ABILITIES})
        else:
            self._stream(path, body)

    def _whole(self, value: Any) -> None:
        data = orjson.dumps(value)
        head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n"
        self._transport.write(head % len(data) + data)

    def _stream(self, path: str, body: bytes) -> None:
        _, _, pace, resource = path.split("/", 3)
        marker, at = asked_by(body)
        pieces = events(_RESOURCES[f"/{resource}"], at, marker)
        if pace == "0":
            self._transport.write(_STREAM + b"".join(map(_chunk, pieces)) + _LAST)
            return
        self._transport.write(_STREAM)
        self._paced(pieces, 0, float(pace) / 1000, self._loop.time(), marker.decode())

    def _paced(self, pieces: list[bytes], at: int, pace_s: float, due: float, marker: str) -> None:
        piece = pieces[at]
        last = at + 1 == len(pieces)
        if marker and marker not in FIRST_TEXT and marker.encode() in piece:
            FIRST_TEXT[marker] = time.monotonic()
        self._transport.write(_chunk(piece) + _LAST if last else _chunk(piece))
        if not last:
            due += pace_s
            self._next = self._loop.call_at(due, self._paced, pieces, at + 1, pace_s, due, marker)


_LABELS = {"service_name": "checkout", "host": "checkout-1", "detected_level": "error"}


def _loki(path: str) -> Any:
    return {"status": "success", "data": _data(path)}


def _data(path: str) -> Any:
    if path.endswith("/labels"):
        return [*_LABELS]
    if path.endswith("/values"):
        return [_LABELS.get(path.split("/")[-2], "")]
    if path.endswith("/series"):
        return [_LABELS]
    now = time.time_ns()
    values = [[str(now - (n + 1) * 10**9), line] for n, line in enumerate(log_lines())]
    return {"resultType": "streams", "result": [{"stream": _LABELS, "values": values}]}


async def _main() -> None:
    server = await asyncio.get_running_loop().create_server(
        Connection, "127.0.0.1", 0, backlog=1024
    )
    port = server.sockets[0].getsockname()[1]

    async def answer(request: dict[str, Any]) -> Any:
        assert request["do"] == "first_text"
        seen = dict(FIRST_TEXT)
        FIRST_TEXT.clear()
        return seen

    await serve({"url": f"http://127.0.0.1:{port}"}, answer)


if __name__ == "__main__":
    asyncio.run(_main())
