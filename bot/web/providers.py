"""`GET /api/v1/llm/providers`: the state of every model backend, for whoever holds the token."""

import hmac
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from aiohttp import web

from bot.domain.providers import ProviderStatus

PATH: Final = "/api/v1/llm/providers"


def providers_route(
    report: Callable[[], Awaitable[Sequence[ProviderStatus]]], token: str
) -> web.RouteDef:
    """The route. `token` is the bearer token that callers must show; it may not be empty."""

    async def handle(request: web.Request) -> web.Response:
        scheme, _, given = request.headers.get("Authorization", "").partition(" ")
        same = hmac.compare_digest(given.strip().encode("utf-8", "replace"), token.encode())
        if scheme.lower() != "bearer" or not same:
            return web.json_response({"error": "unauthorized"}, status=401)
        return web.json_response(
            {"providers": [status.as_json() for status in await report()]},
            headers={"Cache-Control": "no-store"},
        )

    return web.get(PATH, handle)
