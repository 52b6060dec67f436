"""A server of one handler on an ephemeral loopback port."""

import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest
from aiohttp import web

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@asynccontextmanager
async def serving(handler: Handler) -> AsyncIterator[str]:
    app = web.Application()
    app.router.add_route("*", "/{tail:.*}", handler)
    async with serving_app(app) as url:
        yield url


@asynccontextmanager
async def serving_app(app: web.Application) -> AsyncIterator[str]:
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


def resolving(monkeypatch: pytest.MonkeyPatch, *answers: str | tuple[str, ...]) -> list[str]:
    """Each further look-up of a name gives the next answer: an address, or several.

    The names that were asked for are added to the list that is returned.
    """
    left, asked = list(answers), list[str]()

    def resolve(host: str, port: int, *_: object, **__: object) -> list[object]:
        asked.append(host)
        found = left.pop(0)
        return [
            (socket.AF_INET6 if ":" in each else socket.AF_INET, socket.SOCK_STREAM, 6, "",
             (each, port))
            for each in ((found,) if isinstance(found, str) else found)
        ]  # fmt: skip

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    return asked
