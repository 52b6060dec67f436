"""The floor of an acknowledgement: an aiohttp app of its own that reads the delivery and says yes."""

import asyncio
from typing import Any

from aiohttp import web

from bot.slack.ingress.http_mode import PATH
from tests.benchmarks.child import serve


async def _yes(request: web.Request) -> web.Response:
    await request.read()
    answer = web.Response()
    answer.force_close()  # the bot's, too, is its connection's last
    return answer


async def _nothing(_request: dict[str, Any]) -> None:
    """It is asked over HTTP alone."""


async def _main() -> None:
    app = web.Application()
    app.router.add_post(PATH, _yes)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    port = runner.addresses[0][1]
    await serve({"url": f"http://127.0.0.1:{port}{PATH}"}, _nothing)
    await runner.cleanup()


if __name__ == "__main__":
    asyncio.run(_main())
