"""`GET /api/v1/tools`: every tool and how it does, for whoever holds the token."""

from collections.abc import Callable
from typing import Final

from aiohttp import web
from pydantic import JsonValue

from bot.domain.tool_status import ToolReport
from bot.web.bearer import private_json

PATH: Final = "/api/v1/tools"


def tools_route(report: Callable[[], ToolReport], token: str) -> web.RouteDef:
    """The route, behind the token."""

    async def answer() -> JsonValue:
        return report().as_json()

    return private_json(PATH, token, answer)
