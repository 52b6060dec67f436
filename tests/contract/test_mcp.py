"""Connections to real servers: a child process made with the SDK, and HTTP on loopback."""

import asyncio
import gzip
import json
import os
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from structlog.testing import capture_logs

from adapters.errors import AdapterError
from adapters.http.egress import LocalHosts, confined_to
from adapters.mcp.definition import Definition
from adapters.mcp.session import over_stdio
from bot.app.operator_tools import McpServers, open_mcp
from bot.settings.model import Settings
from tests.fakes import mcp_server
from tests.fakes.mcp_http import TOKEN, TOOL, McpHttp
from tests.fakes.tools import bench
from tests.fixtures_http import serving
from tools.errors import CapabilityUnavailable, ToolErrorCode
from tools.policy import ToolPolicy

COMMAND = (sys.executable, str(Path(mcp_server.__file__)))


async def test_a_child_process_is_listed_called_and_ended() -> None:
    wake = asyncio.Event()
    async with over_stdio(COMMAND, {"ONLY": "this"}, wake) as connection:
        async with asyncio.TaskGroup() as group:
            following = group.create_task(connection.follow())
            before = {d.name: d for d in await connection.definitions()}
            answer = await connection.call("ticket_search", {"product": "web", "limit": 1})
            unknown = await connection.call("no_such_tool", {})
            await connection.call("change", {})
            await wake.wait()
            after = {d.name: d for d in await connection.definitions()}
            following.cancel()
        wake.clear()
        with pytest.raises(CapabilityUnavailable):
            await connection.call("crash", {"product": "web"})
        await wake.wait()
    lost = connection.lost

    assert unknown.failed
    assert isinstance(answer.structured, dict)
    assert answer.structured.pop("tickets") == ["web-0"]
    assert answer.structured.keys() <= {"ONLY", "LC_CTYPE"}
    assert before["crash"].sha256() == after["crash"].sha256()
    assert before["ticket_search"].sha256() != after["ticket_search"].sha256()
    assert lost.startswith("it ended with code 3")


HALF_CHARACTERS = r"""
import json, sys

for line in sys.stdin:
    asked = json.loads(line)
    results = {
        "initialize": {"protocolVersion": (asked.get("params") or {}).get("protocolVersion"),
                       "capabilities": {"tools": {}}, "serverInfo": {"name": "x", "version": "1"}},
        "tools/list": {"tools": [{"name": "find", "description": "\udc00 Looks.", "inputSchema": {"type": "object"}}]},
        "tools/call": {"content": [{"type": "text", "text": "half \ud800"}]},
    }
    if "id" in asked:
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": results.get(asked["method"], {})}), flush=True)
"""


async def test_half_characters_of_a_child_process_lose_no_tool_and_no_result() -> None:
    command = (sys.executable, "-c", HALF_CHARACTERS)
    async with asyncio.timeout(30), over_stdio(command, {}, asyncio.Event()) as connection:
        (tool,) = await connection.definitions()
        answer = await connection.call("find", {})

    assert (tool.name, tool.description) == ("find", "? Looks.")
    assert list(answer.texts) == ["half ?"]


# What a program may do instead of speaking the protocol; `sh` is on every machine that runs Kortex.
PROGRAMS = {
    "ends at once": ("exit 7", "it ended with code 7"),
    "complains": ("echo 'no \x1b[31mlicence' >&2; exit 1", "code 1: no licence"),
    "never ends its line": ("yes | tr -d '\\n'", "a line of more than"),
    "talks without end": ("yes '{}'", "more than 500 lines in 1 s"),
}


@pytest.mark.parametrize("case", PROGRAMS)
async def test_a_program_that_is_not_an_mcp_server_is_reported(case: str) -> None:
    script, words = PROGRAMS[case]

    with pytest.raises(AdapterError, match=words):
        async with over_stdio(("/bin/sh", "-c", script), {"PATH": os.defpath}, asyncio.Event()):
            pass


async def test_child_processes_of_a_server_end_with_it(tmp_path: Path) -> None:
    held = tmp_path / "held"
    os.mkfifo(held)
    script = f"exec 3> {held}; sleep 600 >&2 & exit 0"
    with os.fdopen(os.open(held, os.O_RDONLY | os.O_NONBLOCK), "rb") as end:
        with pytest.raises(AdapterError, match="ended with code 0"):
            async with over_stdio(("/bin/sh", "-c", script), {"PATH": os.defpath}, asyncio.Event()):
                pass
        until_nobody_holds_it = asyncio.StreamReader()
        await asyncio.get_running_loop().connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(until_nobody_holds_it), end
        )
        async with asyncio.timeout(5):
            assert await until_nobody_holds_it.read() == b""


@pytest.fixture
def runbooks() -> McpHttp:
    return McpHttp()


@pytest.fixture
async def url(runbooks: McpHttp) -> AsyncIterator[str]:
    async with serving(runbooks.handle) as address:
        yield f"{address}/mcp"


FIND_ID = "mcp__runbooks__find"
FIND = Definition(TOOL["name"], TOOL["description"], TOOL["inputSchema"])


Opened = Callable[..., AbstractAsyncContextManager[McpServers]]


@pytest.fixture
def opened(url: str, tmp_path: Path) -> Opened:
    """The server of `url` as configured, its tool accepted; `changes` are keys of its table."""
    return partial(_opened, url, tmp_path)


@asynccontextmanager
async def _opened(address: str, folder: Path, **changes: Any) -> AsyncIterator[McpServers]:
    own = {
        "url": address,
        "token": TOKEN,
        "networks": ["127.0.0.0/8"],
        "tools": {"find": {"sha256": FIND.sha256(), "effect": "read"}},
        **changes,
    }
    kept = str(folder / "definitions.json")
    settings = Settings.model_validate({"mcp": {"definitions": kept, "servers": {"runbooks": own}}})
    async with AsyncExitStack() as stack:
        yield await open_mcp(settings, stack)


async def test_a_server_over_http_gets_its_token(runbooks: McpHttp, opened: Opened) -> None:
    async with opened() as servers:
        (tool,) = servers.tools
        outcome = await bench([tool], ToolPolicy({"investigate": (FIND_ID,)})).run("{}", FIND_ID)
        (status,) = servers.status()

    assert json.loads(outcome.content) == {"text": "Restart it."}
    assert (status.state, status.reason) == ("connected", "runbooks 7; 1 tools on, 0 off")
    assert {token for _, token in runbooks.asked} == {f"Bearer {TOKEN}"}


SECOND = TOOL | {"name": "list_all"}
# A page of the list of tools, by the cursor that it was asked with.
PAGES: dict[str, Callable[[str], dict[str, Any]]] = {
    "one page": lambda _: {"tools": [TOOL, SECOND]},
    "two pages": lambda at: {"tools": [SECOND]} if at else {"tools": [TOOL], "nextCursor": "2"},
    "an empty cursor for ever": lambda _: {"tools": [TOOL, SECOND], "nextCursor": ""},
    "an empty cursor at the end": lambda at: (
        {"tools": [SECOND], "nextCursor": ""} if at else {"tools": [TOOL], "nextCursor": "2"}
    ),
    "a cursor that never advances": lambda _: {"tools": [TOOL, SECOND], "nextCursor": "8"},
    "two cursors in turn": lambda at: {
        "tools": [SECOND] if at == "a" else [TOOL],
        "nextCursor": "b" if at == "a" else "a",
    },
    "a new cursor for the same page": lambda at: {
        "tools": [TOOL, SECOND],
        "nextCursor": f"{at}x",
    },
    "an empty page between": lambda at: {
        "tools": {"": [TOOL], "1": []}.get(at, [SECOND]),
        "nextCursor": {"": "1", "1": "2"}.get(at),
    },
    "a blank cursor": lambda _: {"tools": [TOOL, SECOND], "nextCursor": " "},
    "the word null": lambda _: {"tools": [TOOL, SECOND], "nextCursor": "null"},
    "a number": lambda at: {"tools": [SECOND]} if at else {"tools": [TOOL], "nextCursor": 2},
    "false": lambda _: {"tools": [TOOL, SECOND], "nextCursor": False},
    "empty pages with new cursors": lambda at: {
        "tools": [] if at else [TOOL, SECOND],
        "nextCursor": f"{at}ü",
    },
    "null instead of a page": lambda at: (
        {"tools": None} if at else {"tools": [TOOL, SECOND], "nextCursor": "2"}
    ),
    "new words for the same page": lambda at: {
        "tools": [TOOL, SECOND] if not at else [TOOL | {"description": f"read at {at}"}],
        "nextCursor": f"{at}x",
    },
    "a longer cursor every time": lambda at: {
        "tools": [TOOL, SECOND],
        "nextCursor": (at or "x") * 40,
    },
    "an empty page first": lambda at: (
        {"tools": [TOOL, SECOND]} if at else {"tools": [], "nextCursor": "2"}
    ),
    "an object": lambda _: {"tools": [TOOL, SECOND], "nextCursor": {"at": 2}},
    "a list": lambda _: {"tools": [TOOL, SECOND], "nextCursor": ["2"]},
    "half a character": lambda at: (
        {"tools": [SECOND]} if at else {"tools": [TOOL], "nextCursor": "2\udc00"}
    ),
    "a number beyond 64 bits": lambda at: (
        {"tools": [SECOND]} if at else {"tools": [TOOL], "nextCursor": 1 << 64}
    ),
    "a fraction": lambda _: {"tools": [TOOL, SECOND], "nextCursor": 2.5},
    "three cursors in turn": lambda at: {
        "tools": [SECOND] if at == "1" else [TOOL],
        "nextCursor": {"": "1", "1": "2", "2": "3"}.get(at, "1"),
    },
    "a page that repeats half of the one before": lambda at: (
        {"tools": [TOOL, SECOND]} if at else {"tools": [TOOL], "nextCursor": "2"}
    ),
    "a cursor of a hundred kilobytes": lambda at: (
        {"tools": [SECOND]} if at else {"tools": [TOOL], "nextCursor": "x" * 100_000}
    ),
    "a cursor with a null byte": lambda at: (
        {"tools": [SECOND]} if at else {"tools": [TOOL], "nextCursor": "\0"}
    ),
    "no cursor but null": lambda _: {"tools": [TOOL, SECOND], "nextCursor": None},
}


@pytest.mark.parametrize("pages", PAGES)
async def test_every_tool_is_listed_once_for_any_paging(
    runbooks: McpHttp, opened: Opened, pages: str
) -> None:
    runbooks.pages = PAGES[pages]
    async with opened() as servers:
        status, *_ = servers.status()

    assert (status.state, status.reason) == ("connected", "runbooks 7; 1 tools on, 1 off")
    assert len([method for method, _ in runbooks.asked if method == "tools/list"]) <= 4


async def test_a_server_that_refuses_its_own_cursor_keeps_its_tools(
    runbooks: McpHttp, opened: Opened
) -> None:
    def pages(at: str) -> dict[str, Any] | None:
        return None if at else {"tools": [TOOL, SECOND], "nextCursor": "2"}

    runbooks.pages = pages
    async with opened() as servers:
        status, *_ = servers.status()

    assert (status.state, status.reason) == ("connected", "runbooks 7; 1 tools on, 1 off")


async def test_an_endless_list_of_tools_is_reported(runbooks: McpHttp, opened: Opened) -> None:
    runbooks.pages = lambda at: {"tools": [TOOL | {"name": f"t{at}"}], "nextCursor": f"{at}x"}
    async with opened() as servers:
        (status,) = servers.status()

    assert "its list of tools does not end" in status.reason


REFUSALS: dict[str, tuple[Callable[[], web.StreamResponse], str]] = {
    "no access": (lambda: web.Response(status=401), "answered 401"),
    "an error": (lambda: web.Response(status=503), "answered 503"),
    "a redirect": (
        lambda: web.Response(status=307, headers={"Location": "http://127.0.0.1:9/"}),
        "answered a redirect",
    ),
    "a redirect to itself": (
        lambda: web.Response(status=308, headers={"Location": "/mcp/"}),
        "answered a redirect",
    ),
    "a bomb": (
        lambda: web.Response(
            body=gzip.compress(b" " * 3_000_000),
            headers={"Content-Encoding": "gzip", "Content-Type": "application/json"},
        ),
        "answered more than",
    ),
    "too much": (
        lambda: web.Response(body=b" " * 3_000_000, content_type="application/json"),
        "answered more than",
    ),
    "a page": (
        lambda: web.Response(text="<html>", content_type="text/html"),
        "Unexpected content type",
    ),
    "no JSON": (lambda: web.Response(text="{", content_type="application/json"), "Failed to parse"),
}


@pytest.mark.parametrize("case", REFUSALS)
async def test_an_unusable_answer_is_reported(runbooks: McpHttp, opened: Opened, case: str) -> None:
    answer, words = REFUSALS[case]
    runbooks.instead = lambda _method: answer()
    async with opened() as servers:
        (status,) = servers.status()[:1]

    assert status.state == "down"
    assert words in status.reason


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
async def test_an_undeclared_network_is_not_contacted(
    runbooks: McpHttp, opened: Opened, url: str, host: str
) -> None:
    there = url.replace("127.0.0.1", host)
    async with opened(url=there, networks=["10.0.0.0/8"]) as servers:
        (status,) = servers.status()[:1]

    assert "not a public address" in status.reason
    assert runbooks.asked == []


async def test_local_only_mode_contacts_no_other_host(runbooks: McpHttp, opened: Opened) -> None:
    with confined_to(LocalHosts()):
        async with opened(url="http://runbooks.example/mcp") as servers:
            (status,) = servers.status()[:1]

    assert "egress to runbooks.example is refused" in status.reason
    assert runbooks.asked == []


@pytest.mark.parametrize("status", [401, 429, 503])
async def test_a_failing_call_fails_alone(runbooks: McpHttp, opened: Opened, status: int) -> None:
    async with opened() as servers:
        (tool,) = servers.tools
        running = bench([tool], ToolPolicy({"investigate": (FIND_ID,)}))
        runbooks.instead = lambda method: (
            web.Response(status=status) if method == "tools/call" else None
        )
        failed = await running.run('{"product": "a"}', FIND_ID)
        runbooks.instead = lambda _method: None
        good = await running.run('{"product": "b"}', FIND_ID)

    assert failed.record.error_code is ToolErrorCode.UPSTREAM
    assert f"answered {status}" in failed.content
    assert good.record.ok
    assert [method for method, _ in runbooks.asked].count("initialize") == 1


async def test_an_endless_answer_ends_the_connection(runbooks: McpHttp, opened: Opened) -> None:
    async with opened() as servers:
        (tool,) = servers.tools
        running = bench([tool], ToolPolicy({"investigate": (FIND_ID,)}))
        runbooks.instead = lambda method: (
            web.Response(body=b"0" * 2_000_000, content_type="application/json")
            if method == "tools/call"
            else None
        )
        outcome = await running.run('{"product": "a"}', FIND_ID)
    (status,) = servers.status()

    assert outcome.record.error_code is ToolErrorCode.UNAVAILABLE
    assert status.state == "down"
    assert "answered more than 1048576 bytes" in status.reason


@pytest.mark.parametrize(
    "odd",
    [
        None, 7, "x", {}, 2**64, {"name": "x"}, {"name": None, "inputSchema": {"type": "object"}},
        {"name": "x", "inputSchema": {}}, {"name": "x", "inputSchema": None},
        {"name": 2**64, "inputSchema": {"type": "object"}},
    ],
    ids=str,
)  # fmt: skip
async def test_an_odd_tool_does_not_hide_the_other_tools_of_its_server(
    runbooks: McpHttp, opened: Opened, odd: object
) -> None:
    runbooks.pages = lambda _cursor: {"tools": [odd, TOOL, odd]}
    with capture_logs() as logged:
        async with opened() as servers:
            assert [tool.contract.id for tool in servers.tools] == [FIND_ID]
    assert {one["count"] for one in logged if one["event"] == "mcp.unreadable_tools"} == {2}


async def test_list_of_only_odd_tools_is_an_error(runbooks: McpHttp, opened: Opened) -> None:
    runbooks.pages = lambda _cursor: {"tools": [None, 7]}
    async with opened() as servers:
        assert list(servers.tools) == []
        assert "cannot be listed" in str(servers.status())
