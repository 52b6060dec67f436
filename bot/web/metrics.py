"""`/metrics` in Prometheus' text format."""

import asyncio
from collections.abc import Awaitable, Callable

from aiohttp import web
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4


def metrics(registry: CollectorRegistry) -> Callable[[web.Request], Awaitable[web.Response]]:
    """Reading /proc blocks: it is done beside the loop."""

    async def handle(_request: web.Request) -> web.Response:
        body = await asyncio.to_thread(generate_latest, registry)
        return web.Response(body=body, headers={"Content-Type": CONTENT_TYPE_PLAIN_0_0_4})

    return handle
