"""`GET /api/v1/budget`: today's spending, for whoever holds the token."""

from collections.abc import Awaitable, Callable
from typing import Final

from aiohttp import web
from pydantic import JsonValue

from bot.chat.budget_report import BudgetReport
from bot.web.bearer import private_json

PATH: Final = "/api/v1/budget"


def budget_route(report: Callable[[], Awaitable[BudgetReport]], token: str) -> web.RouteDef:
    """The route, behind the token."""

    async def answer() -> JsonValue:
        return (await report()).as_json()

    return private_json(PATH, token, answer)
