"""The connections to Slack: they trust the same roots as all outgoing calls, and follow no redirect."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from aiohttp import (
    ClientHandlerType,
    ClientRequest,
    ClientResponse,
    ClientSession,
    ClientTimeout,
    DummyCookieJar,
    TCPConnector,
    TooManyRedirects,
)

from adapters.http.tls import ssl_context

CONNECTIONS: Final = 100  # enough for edits of hundreds of live answers, which are paced anyway
LONGEST_S: Final = 30.0  # of any request; most callers have a shorter deadline of their own


@asynccontextmanager
async def slack_session() -> AsyncIterator[ClientSession]:
    """A session that is closed at the end. Its requests raise TooManyRedirects for any redirect."""
    tls = await asyncio.to_thread(ssl_context)  # reads files
    async with ClientSession(
        connector=TCPConnector(limit=CONNECTIONS, ssl=tls),
        cookie_jar=DummyCookieJar(),
        middlewares=(_no_redirects,),
        timeout=ClientTimeout(total=LONGEST_S),
    ) as session:
        yield session


async def _no_redirects(request: ClientRequest, handler: ClientHandlerType) -> ClientResponse:
    """Slack's API has none, and slack-sdk would follow them with what it sends."""
    response = await handler(request)
    if response.status in range(301, 400) and response.status != 304:
        response.close()
        raise TooManyRedirects(response.request_info, (), status=response.status)
    return response
