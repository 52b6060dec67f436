"""The connections to Slack, which trust whom all of our outgoing calls trust."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from aiohttp import ClientSession, ClientTimeout, TCPConnector
from aiohttp.client import DEFAULT_TIMEOUT

from adapters.http import ssl_context

CONNECTIONS: Final = 100  # enough for edits of hundreds of live answers, which are paced anyway


@asynccontextmanager
async def slack_session(times: ClientTimeout = DEFAULT_TIMEOUT) -> AsyncIterator[ClientSession]:
    """A session that is closed at the end."""
    tls = await asyncio.to_thread(ssl_context)  # reads files
    connector = TCPConnector(limit=CONNECTIONS, ssl=tls)
    async with ClientSession(connector=connector, timeout=times) as session:
        yield session
