"""What operators and programs may ask over HTTP, for whoever holds the API token: providers, budget, tools."""

import hmac
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from aiohttp import web
from pydantic import JsonValue

from bot.chat.budget_report import BudgetReport
from bot.domain.provider_status import ProviderStatus
from bot.domain.tool_status import ToolReport

PROVIDERS_PATH: Final = "/api/v1/llm/providers"
BUDGET_PATH: Final = "/api/v1/budget"
TOOLS_PATH: Final = "/api/v1/tools"


def private_json(path: str, token: str, answer: Callable[[], Awaitable[JsonValue]]) -> web.RouteDef:
    """GET `path`. `token` is the bearer token that callers must show; it may not be empty."""

    async def handle(request: web.Request) -> web.Response:
        scheme, _, given = request.headers.get("Authorization", "").partition(" ")
        same = hmac.compare_digest(given.strip().encode("utf-8", "replace"), token.encode())
        if scheme.lower() != "bearer" or not same:
            return web.json_response({"error": "unauthorized"}, status=401)
        return web.json_response(await answer(), headers={"Cache-Control": "no-store"})

    return web.get(path, handle)


def providers_route(
    report: Callable[[], Awaitable[Sequence[ProviderStatus]]], token: str
) -> web.RouteDef:
    """The state of every model backend."""

    async def answer() -> JsonValue:
        return {"providers": [status.as_json() for status in await report()]}

    return private_json(PROVIDERS_PATH, token, answer)


def budget_route(report: Callable[[], Awaitable[BudgetReport]], token: str) -> web.RouteDef:
    """What was spent today, and how the day will end."""

    async def answer() -> JsonValue:
        return (await report()).as_json()

    return private_json(BUDGET_PATH, token, answer)


def tools_route(report: Callable[[], ToolReport], token: str) -> web.RouteDef:
    """Every tool and how it does."""

    async def answer() -> JsonValue:
        return report().as_json()

    return private_json(TOOLS_PATH, token, answer)
