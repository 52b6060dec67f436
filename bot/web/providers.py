"""`GET /api/v1/llm/providers`: the state of every model backend, for whoever holds the token."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from aiohttp import web
from pydantic import JsonValue

from bot.domain.provider_status import ProviderStatus
from bot.web.bearer import private_json

PATH: Final = "/api/v1/llm/providers"


def providers_route(
    report: Callable[[], Awaitable[Sequence[ProviderStatus]]], token: str
) -> web.RouteDef:
    """The route, behind the token."""

    async def answer() -> JsonValue:
        return {"providers": [status.as_json() for status in await report()]}

    return private_json(PATH, token, answer)
