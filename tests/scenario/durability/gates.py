"""Points where a request to one of the test's servers waits until the test releases it."""

import asyncio
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

TIMEOUT_S = 40.0


@dataclass(eq=False)
class Hold:
    """One request, or all from the first on, held. `wanted` sees its query string and body."""

    wanted: Callable[[bytes], bool] = lambda _body: True
    every: bool = False
    lost: bool = False
    reached: asyncio.Event = field(default_factory=asyncio.Event)
    released: asyncio.Event = field(default_factory=asyncio.Event)

    async def wait(self) -> None:
        async with asyncio.timeout(TIMEOUT_S):
            await self.reached.wait()

    def release(self) -> None:
        """Let it go on."""
        self.released.set()

    def lose(self) -> None:
        """Drop it, as a network would."""
        self.lost = True
        self.released.set()


class Lost(Exception):
    """The request is to be dropped."""


class Gates:
    """Named points and how often each was passed."""

    def __init__(self) -> None:
        self.passed: Counter[str] = Counter()
        self._holds: dict[str, list[Hold]] = {}
        self._reached: list[Hold] = []

    def hold(
        self, point: str, wanted: Callable[[bytes], bool] | None = None, *, every: bool = False
    ) -> Hold:
        """Hold the next request that is wanted, or every one, there."""
        hold = Hold(wanted or (lambda _body: True), every=every)
        self._holds.setdefault(point, []).append(hold)
        return hold

    async def through(self, point: str, body: bytes = b"") -> None:
        """Go through a point. Raises Lost."""
        self.passed[point] += 1
        waiting = self._holds.get(point, [])
        hold = next((h for h in waiting if h.wanted(body) and not h.released.is_set()), None)
        if hold is None:
            return
        if not hold.every:
            waiting.remove(hold)
        self._reached.append(hold)
        hold.reached.set()
        await hold.released.wait()
        if hold.lost:
            raise Lost

    def open(self) -> None:
        """Release everything."""
        for hold in (*self._reached, *(h for holds in self._holds.values() for h in holds)):
            hold.release()
        self._reached.clear()
        self._holds.clear()

    def middleware(self, server: str) -> Middleware:
        """Points `<server> <method> <last part of the path> before` and `… after` the effect.

        `… answered` counts the answers that left.
        """

        @web.middleware
        async def gated(request: web.Request, handler: Handler) -> web.StreamResponse:
            name = f"{server} {request.method} {request.path.rsplit('/', 1)[-1]}"
            body = request.query_string.encode() + await request.read()
            try:
                await self.through(f"{name} before", body)
                answer = await handler(request)
                await self.through(f"{name} after", body)
            except Lost:
                with suppress(AttributeError):
                    request.transport.close()  # type: ignore[union-attr]
                raise web.HTTPServiceUnavailable from None
            await answer.prepare(request)
            await answer.write_eof()
            self.passed[f"{name} answered"] += 1
            return answer

        return gated
