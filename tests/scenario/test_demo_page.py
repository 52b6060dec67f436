"""The demo's page on another port than the usual one, and on one that is released late."""

import asyncio
import socket
from collections.abc import Iterator

import pytest
from blockbuster import BlockBuster

from bot.demo import running
from bot.demo.running import LOOPBACK, page_serving
from bot.demo.workspace.feed import Change
from bot.demo.workspace.state import Workspace
from bot.settings.reading import ConfigurationError
from bot.web import listener


@pytest.fixture(autouse=True)
def short_wait(monkeypatch: pytest.MonkeyPatch, _nothing_blocks_the_loop: BlockBuster) -> None:
    _nothing_blocks_the_loop.deactivate()
    monkeypatch.setattr(listener, "RESTART_S", 0.2)


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> Iterator[socket.socket]:
    """The usual port, which another program has."""
    with socket.create_server((LOOPBACK, 0)) as server:
        monkeypatch.setattr(running, "USUAL_PORT", server.getsockname()[1])
        yield server


async def test_the_page_on_a_free_port_follows_the_workspace(
    taken: socket.socket,
) -> None:
    workspace = Workspace()
    async with page_serving(workspace, LOOPBACK, None) as origin:
        with workspace.feed.subscribe() as changes:
            workspace.feed.publish(Change("message", {"text": "still here"}))
            async with asyncio.timeout(5):
                change = await anext(changes)

    assert not origin.endswith(f":{running.USUAL_PORT}")
    assert change.body == {"text": "still here"}


async def test_a_demo_waits_for_the_port_of_the_previous_one(
    taken: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listener, "RESTART_S", 5.0)
    asyncio.get_running_loop().call_later(0.3, taken.close)

    async with page_serving(Workspace(), LOOPBACK, None) as origin:
        assert origin.endswith(f":{running.USUAL_PORT}")


async def test_a_requested_port_that_stays_busy_is_reported(taken: socket.socket) -> None:
    with pytest.raises(ConfigurationError, match=r"--port: port \d+ of 127.0.0.1 is in use"):
        async with page_serving(Workspace(), LOOPBACK, taken.getsockname()[1]):
            pass
