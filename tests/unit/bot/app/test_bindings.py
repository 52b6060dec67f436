"""A tool with I/O of its own: its port, its adapter, one line that binds them, `[adapters.NAME]`."""

from contextlib import AsyncExitStack
from typing import Protocol

import httpx
import pytest
from aiohttp import web

from bot.app.backend_kinds import bound
from bot.settings.model import Settings
from bot.settings.reading import ConfigurationError
from tests.fakes.capabilities import call_context, fake_capabilities
from tests.fakes.tools import EchoOutput, FakeTool, bench, contract
from tests.fixtures_http import serving
from tools.capabilities import CallContext, Capabilities
from tools.catalog import ToolCatalog, missing_capabilities
from tools.errors import ToolErrorCode
from tools.policy import ToolPolicy
from tools.port import Port


class Tickets(Protocol):
    """Counts tickets."""

    async def count(self) -> str: ...


TICKETS = Port[Tickets]("tickets")


class HttpTickets:
    def __init__(self, client: httpx.AsyncClient) -> None:
        self._client = client

    async def count(self) -> str:
        answer = await self._client.get("/count")
        return answer.text


class CountTickets(FakeTool):
    async def execute(self, arguments: object, call: CallContext, caps: Capabilities) -> object:
        return EchoOutput(text=await caps.of(TICKETS).count())


TOOL = CountTickets(contract(ports=frozenset({TICKETS})))
BINDINGS = {TICKETS: HttpTickets}


def settings(**adapters: object) -> Settings:
    return Settings.model_validate({"adapters": adapters})


async def test_a_tool_uses_the_adapter_bound_to_its_port() -> None:
    async def answer(request: web.Request) -> web.Response:
        return web.Response(text=f"3 for {request.headers['authorization']}")

    async with serving(answer) as url, AsyncExitStack() as stack:
        more = bound(settings(tickets={"url": url, "token": "t"}), stack, BINDINGS)
        outcome = await bench([TOOL], caps=fake_capabilities(more=more)).run()

    assert "3 for Bearer t" in outcome.content


async def test_without_its_table_the_tool_is_not_offered_and_not_run() -> None:
    async with AsyncExitStack() as stack:
        caps = fake_capabilities(more=bound(settings(), stack, BINDINGS))
        outcome = await bench([TOOL], caps=caps).run()

    shown = ToolCatalog([TOOL], ToolPolicy({"investigate": ("core__*",)}), caps)
    assert shown.visible(call_context()) == ()
    assert missing_capabilities(TOOL.contract, caps) == ("tickets",)
    assert outcome.record.error_code is ToolErrorCode.UNAVAILABLE


@pytest.mark.parametrize(
    ("adapters", "words"),
    [
        ({"tickts": {"url": "http://x"}}, r"adapters\.tickts: no tool asks it; there are: tickets"),
        ({"tickets": {"url": "x"}}, r"adapters\.tickets\.url: needs an address"),
        ({"tickets": {"url": "http://tick\u200bets/"}}, r"adapters\.tickets\.url: not an address"),
    ],
    ids=["nobody's table", "no address", "no name of a host"],
)
async def test_an_invalid_binding_stops_the_start(adapters: dict[str, object], words: str) -> None:
    async with AsyncExitStack() as stack:
        with pytest.raises(ConfigurationError, match=words):
            bound(settings(**adapters), stack, BINDINGS)
