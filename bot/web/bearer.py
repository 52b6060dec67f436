"""A private JSON answer over HTTP, for whoever holds the API token."""

import hmac
from collections.abc import Awaitable, Callable

from aiohttp import web
from pydantic import JsonValue


def private_json(path: str, token: str, answer: Callable[[], Awaitable[JsonValue]]) -> web.RouteDef:
    """GET `path`. `token` is the bearer token that callers must show; it may not be empty."""

    async def handle(request: web.Request) -> web.Response:
        scheme, _, given = request.headers.get("Authorization", "").partition(" ")
        same = hmac.compare_digest(given.strip().encode("utf-8", "replace"), token.encode())
        if scheme.lower() != "bearer" or not same:
            return web.json_response({"error": "unauthorized"}, status=401)
        return web.json_response(await answer(), headers={"Cache-Control": "no-store"})

    return web.get(path, handle)
