"""The least that shows a turn in Slack with plain httpx: a post, an edit a second, the final."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx

from tests.benchmarks.transcript import answer

EDIT_GAP_S = 1.0


@asynccontextmanager
async def shown(client: httpx.AsyncClient, slack: Any, number: int) -> AsyncIterator[None]:
    """Show the turn of the body; its whole text at the end."""
    headers = {"authorization": f"Bearer {slack['bot_token']}"}
    channel, text = f"C0BENCH{number % 50:03}", answer(number)

    async def call(method: str, **arguments: Any) -> Any:
        body = {"channel": channel, **arguments}
        response = await client.post(slack["api_base_url"] + method, json=body, headers=headers)
        found = response.json()
        assert found["ok"], found
        return found

    async def edits() -> None:
        seconds = 0
        while True:
            await asyncio.sleep(EDIT_GAP_S)
            seconds += 1
            so_far = text[: 400 * seconds]
            await call("chat.update", ts=ts, text=so_far, blocks=_blocks(so_far))

    ts = (await call("chat.postMessage", text="..."))["ts"]
    editing = asyncio.create_task(edits())
    try:
        yield
    finally:
        editing.cancel()
    await call("chat.update", ts=ts, text=text, blocks=_blocks(text))


def _blocks(text: str) -> list[dict[str, str]]:
    return [{"type": "markdown", "text": text}]
