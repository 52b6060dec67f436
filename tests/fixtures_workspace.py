"""A served local workspace and a Bolt app connected to it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
from slack_bolt.adapter.socket_mode.aiohttp import AsyncSocketModeHandler
from slack_bolt.async_app import AsyncApp
from slack_sdk.web.async_client import AsyncWebClient

from bot.demo.workspace.app import serving
from bot.demo.workspace.state import Setup, Workspace
from bot.slack.views.modals import REFUSED


@asynccontextmanager
async def served(setup: Setup | None = None) -> AsyncIterator[Workspace]:
    """A workspace on an ephemeral port; its address is `workspace.origin`."""
    workspace = Workspace(setup)
    async with serving(workspace):
        yield workspace


@asynccontextmanager
async def web_client(
    workspace: Workspace, token: str | None = None
) -> AsyncIterator[AsyncWebClient]:
    """Slack's own client, without its retries."""
    async with aiohttp.ClientSession() as session:
        yield AsyncWebClient(
            token=workspace.bot_token if token is None else token,
            base_url=f"{workspace.origin}/api/",
            session=session,
            retry_handlers=[],
        )


@asynccontextmanager
async def bolt(workspace: Workspace) -> AsyncIterator[AsyncApp]:
    """A Bolt app with the workspace's tokens; only the base URL differs from the real Slack."""
    async with web_client(workspace) as client:
        yield AsyncApp(client=client, signing_secret=workspace.signing_secret)


@asynccontextmanager
async def connected(workspace: Workspace, app: AsyncApp) -> AsyncIterator[AsyncSocketModeHandler]:
    """The app connected over Socket Mode."""
    handler = AsyncSocketModeHandler(app, workspace.app_token)
    before = len(workspace.sockets.connections)
    await handler.connect_async()  # type: ignore[no-untyped-call]
    try:
        await workspace.wait_for(lambda: len(workspace.sockets.connections) > before)
        yield handler
    finally:
        await handler.close_async()  # type: ignore[no-untyped-call]
        await asyncio.sleep(0)


def refused(workspace: Workspace, user: str) -> list[str]:
    """What the forms in front of a person refuse."""
    views = [view for view in workspace.modals_of(user) if view["callback_id"] == REFUSED]
    return [_text_of(view["blocks"]) for view in views]


def _text_of(blocks: Any) -> str:
    return "".join(str(block["text"]["text"]) for block in blocks)
