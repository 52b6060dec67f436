"""The workspace as an aiohttp application.

Bind it to loopback, or to an address that only loopback reaches: every visitor can act as any person
in it.
"""

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from ipaddress import ip_address

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

from bot.demo.workspace.person_api import PersonApi, ProviderChoice, person_errors
from bot.demo.workspace.state import Workspace
from bot.demo.workspace.web_api import SimulatedWebApi
from bot.page.files import PageFiles
from bot.web.listener import BACKLOG, when_free

LOOPBACK_HOSTS = frozenset({"127.0.0.1", "localhost", "::1"})
MAX_BODY_BYTES = 4 * 2**20


def api_base_url(port: int, host: str = "127.0.0.1") -> str:
    return f"http://{host}:{port}/api/"


def create_app(
    workspace: Workspace,
    providers: ProviderChoice | None = None,
    trusted_hosts: frozenset[str] = LOOPBACK_HOSTS,
    api: SimulatedWebApi | None = None,
) -> web.Application:
    """Slack's protocol and the page, on one port. Requests for any other host are refused."""
    api = api or SimulatedWebApi(workspace)
    app = web.Application(
        middlewares=[_only_for(trusted_hosts), person_errors], client_max_size=MAX_BODY_BYTES
    )
    PersonApi(workspace, providers).add_routes(app.router)
    PageFiles("demo").add_to(app)
    api.add_to(app.router)
    workspace.files.add_to(app.router)
    app.router.add_get("/link/", workspace.sockets.serve)
    for each in api.workspaces:
        app.cleanup_ctx.append(_deliveries(each))
        app.on_shutdown.append(_close(each))
    return app


def _only_for(trusted_hosts: frozenset[str]) -> Middleware:
    """A name that some other site made point here is not ours to serve (DNS rebinding)."""

    @web.middleware
    async def middleware(request: web.Request, handler: Handler) -> web.StreamResponse:
        if request.url.host not in trusted_hosts:
            raise web.HTTPMisdirectedRequest(text="unknown host")
        if request.method not in ("GET", "HEAD") and not _is_own(request):
            raise web.HTTPForbidden(text="sent by another site's page")
        return await handler(request)

    return middleware


def _is_own(request: web.Request) -> bool:
    """Whether our page sent it, or a program: browsers name the page that sends, programs none."""
    site = request.headers.get("Sec-Fetch-Site", "same-origin")
    origin = request.headers.get("Origin", str(request.url.origin()))
    return site in ("same-origin", "none") and origin == str(request.url.origin())


def _deliveries(workspace: Workspace) -> Callable[[web.Application], AsyncIterator[None]]:
    async def running(_app: web.Application) -> AsyncIterator[None]:
        # aiohttp may enter and leave this on different tasks, which a TaskGroup forbids.
        delivering = asyncio.create_task(workspace.outbox.run())  # noqa: TID251  ended below
        yield
        delivering.cancel()
        with suppress(asyncio.CancelledError):
            await delivering

    return running


def _close(workspace: Workspace) -> Callable[[web.Application], Awaitable[None]]:
    async def close(_app: web.Application) -> None:
        workspace.feed.close()
        await workspace.sockets.drop()

    return close


@asynccontextmanager
async def serving(
    workspace: Workspace,
    host: str = "127.0.0.1",
    port: int = 0,
    providers: ProviderChoice | None = None,
    api: SimulatedWebApi | None = None,
) -> AsyncIterator[str]:
    """Serve it here; yields the origin, such as `http://127.0.0.1:40123`. Port 0: any free one.

    Raises OSError, and leaves the workspace as it is.
    """
    app = create_app(workspace, providers, api=api)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=1)

    async def bind() -> socket.socket:
        return socket.create_server((host, port), backlog=BACKLOG)

    # Before the app is set up: its clean-up closes the feeds of the workspace for good.
    listening = await when_free(bind)
    await runner.setup()
    try:
        await web.SockSite(runner, listening).start()
        bound = runner.addresses[0][1]
        reached = "127.0.0.1" if ip_address(host).is_unspecified else host
        for each in api.workspaces if api else (workspace,):
            each.origin = f"http://{reached}:{bound}"
        yield workspace.origin
    finally:
        await runner.cleanup()
        listening.close()
