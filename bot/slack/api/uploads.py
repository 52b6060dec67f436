"""Bytes to the address that Slack gave for them; no token goes there, and no redirect is followed."""

import asyncio
from collections.abc import Awaitable, Callable

import aiohttp

from bot.slack.api.web_api import Unreachable

_TIMEOUT_S = 15.0
_WHAT = "upload"


def sender(session: aiohttp.ClientSession) -> Callable[[str, bytes], Awaitable[None]]:
    """Sends over that session. Raises Unreachable."""

    async def send(url: str, content: bytes) -> None:
        try:
            async with (
                asyncio.timeout(_TIMEOUT_S),
                session.post(url, data=content, allow_redirects=False) as answer,
            ):
                if answer.status != 200:
                    raise Unreachable(_WHAT, f"HTTP {answer.status}")
        except (aiohttp.ClientError, TimeoutError, ValueError) as error:
            raise Unreachable(_WHAT, type(error).__name__) from error

    return send
