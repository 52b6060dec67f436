"""A control plane on loopback that records requests and answers as configured."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from aiohttp import web
from aiohttp.test_utils import TestServer

Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass(slots=True)
class Received:
    """One request as it arrived."""

    method: str
    raw_path: str
    headers: Mapping[str, str]
    body: bytes


@dataclass(slots=True)
class ControlPlaneServer:
    """`post` and `get` answer; both may hang, break off or redirect."""

    url: str = ""
    received: list[Received] = field(default_factory=list)
    arrived: asyncio.Event = field(default_factory=asyncio.Event)
    post: Answer = None  # type: ignore[assignment]
    get: Answer = None  # type: ignore[assignment]

    def of(self, method: str) -> list[Received]:
        """The requests with that method."""
        return [r for r in self.received if r.method == method]


def says(status: int, value: object = None, *, text: str | None = None, **headers: str) -> Answer:
    """Always that answer."""

    async def answer(_request: web.Request) -> web.StreamResponse:
        if text is not None:
            return web.Response(status=status, text=text, headers=headers)
        return web.json_response(value, status=status, headers=headers)

    return answer


async def silence(_request: web.Request) -> web.StreamResponse:
    """Never answers."""
    await asyncio.Event().wait()
    raise AssertionError


async def hangs_up(request: web.Request) -> web.StreamResponse:
    """Closes the connection without an answer."""
    assert request.transport is not None
    request.transport.close()
    return web.Response()


@asynccontextmanager
async def control_plane_server() -> AsyncIterator[ControlPlaneServer]:
    """Run one on an ephemeral port."""
    plane = ControlPlaneServer(post=says(200, {"ok": True}), get=says(404, {}))

    async def handle(request: web.Request) -> web.StreamResponse:
        plane.received.append(
            Received(request.method, request.raw_path, request.headers.copy(), await request.read())
        )
        plane.arrived.set()
        return await (plane.post if request.method == "POST" else plane.get)(request)

    app = web.Application()
    app.router.add_route("*", r"/{path:[\s\S]*}", handle)
    async with TestServer(app) as server:
        plane.url = str(server.make_url("")).rstrip("/")
        yield plane
