"""`GET /api/v1/budget`: today's spending, for whoever holds the token."""

import hmac
from collections.abc import Awaitable, Callable
from typing import Final

from aiohttp import web

from bot.chat.budget_report import BudgetReport

PATH: Final = "/api/v1/budget"


def budget_route(report: Callable[[], Awaitable[BudgetReport]], token: str) -> web.RouteDef:
    """The route. `token` is the bearer token that callers must show; it may not be empty."""

    async def handle(request: web.Request) -> web.Response:
        scheme, _, given = request.headers.get("Authorization", "").partition(" ")
        same = hmac.compare_digest(given.strip().encode("utf-8", "replace"), token.encode())
        if scheme.lower() != "bearer" or not same:
            return web.json_response({"error": "unauthorized"}, status=401)
        found = await report()
        return web.json_response(found.as_json(), headers={"Cache-Control": "no-store"})

    return web.get(PATH, handle)
