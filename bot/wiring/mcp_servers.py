"""The operator's MCP servers: from settings to supervised connections, and what is known of them.

The SDK is an extra, imported when a server is configured.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from adapters.http.client import http_client
from adapters.http.egress import ReachableAddresses
from bot.settings.environment import environment
from bot.settings.mcp import McpServerSettings
from bot.settings.model import Settings
from bot.settings.reading import ConfigurationError
from bot.upkeep.reload import Prepared
from bot.wiring.mcp_definitions import AcceptedDefinitions, definitions_file

if TYPE_CHECKING:
    from adapters.mcp.definition import Accepted, Judged
    from adapters.mcp.supervisor import Connection, Open, Pace, Supervisor
    from adapters.mcp.tool import McpTool

PATIENCE_S: Final = 10.0  # how long a start waits for servers; they are waited for on, behind
# A stream of changes is silent for long; what a call may take is cut by the runner.
_SILENCE_S: Final = 3600.0
_SDK: Final = frozenset({"mcp", "mcp_types", "httpx2", "anyio"})


@dataclass(frozen=True, slots=True)
class McpStatus:
    """A server, or a tool of one that is not on: its name, its state in a word, and why."""

    name: str
    state: str
    reason: str


class McpServers:
    """All servers of this process. `version` grows when the tools that are on become others."""

    def __init__(self, settings: Settings) -> None:
        self.supervisors: list[Supervisor] = []
        self.version = 0
        self.accepted = AcceptedDefinitions(definitions_file(settings))
        self._settings = settings.mcp.servers

    @property
    def tools(self) -> "Sequence[McpTool]":
        """Those that are on, also while their server is down: a call then says so."""
        return [tool for each in self.supervisors for tool in each.tools]

    @property
    def sessions(self) -> Mapping[str, tuple[str, ...]]:
        """Globs of session names by tool id."""
        return {
            tool.contract.id: self._settings[each.spec.name].allowed_sessions
            for each in self.supervisors
            for tool in each.tools
        }

    def status(self) -> tuple[McpStatus, ...]:
        """Every server, and every tool that is not on with the reason."""
        return tuple(row for each in self.supervisors for row in _rows(each))

    @property
    def notes(self) -> Sequence[str]:
        """The same in a line each."""
        return [f"{row.name}: {row.state}, {row.reason}" for row in self.status()]

    async def prepare(self, settings: Settings) -> Prepared:
        """The entries of tools as they are now; servers themselves are taken at a start only."""
        entries = {name: _accepted(own) for name, own in settings.mcp.servers.items()}
        now, then = (_without_tools(each) for each in (settings.mcp.servers, self._settings))
        others = sorted(n for n in now.keys() | then.keys() if now.get(n) != then.get(n))

        def put_in_force() -> None:
            for each in self.supervisors:
                each.accept(entries.get(each.spec.name, {}))
            self.version += 1

        return Prepared(put_in_force, {"needs_restart": list(others)} if others else "")

    async def changed(self) -> None:
        """Called by a supervisor whose tools became others."""
        self.version += 1
        await self.accepted.keep([tool.definition for tool in self.tools])


def _rows(server: "Supervisor") -> list[McpStatus]:
    from adapters.mcp.definition import ToolState

    off = [each for each in server.judged if each.state is not ToolState.ON]
    known = f"{len(server.tools)} tools on, {len(off)} off"
    words = f"{server.reason}; {known}" if server.reason else known
    return [
        McpStatus(f"mcp {server.spec.name}", server.state.value, words),
        *(McpStatus(shown_id(server, each), each.state.value, each.reason) for each in off),
    ]


def shown_id(server: "Supervisor", tool: "Judged") -> str:
    """The id that the tool has, or would have; a name of any length is cut."""
    from adapters.mcp.definition import tool_id

    return tool_id(server.spec.name, tool.name)[:80]


async def open_mcp(
    settings: Settings,
    stack: AsyncExitStack,
    pace: "Pace | None" = None,
    until: float | None = None,
) -> McpServers:
    """Connects what is configured, and goes on at `until` of the loop's clock. Raises ConfigurationError.

    None: `PATIENCE_S` later.
    """
    servers = McpServers(settings)
    if not settings.mcp.servers:
        return servers
    await asyncio.to_thread(_load_sdk)
    from adapters.mcp.supervisor import ServerSpec, Supervisor, running

    for name, own in settings.mcp.servers.items():
        spec = ServerSpec(name, _accepted(own), own.timeout.total_seconds())
        servers.supervisors.append(Supervisor(spec, _opener(own), servers.changed, pace))
    now = asyncio.get_running_loop().time()
    patience_s = PATIENCE_S if until is None else until - now
    await stack.enter_async_context(running(servers.supervisors, patience_s))
    return servers


def _accepted(own: McpServerSettings) -> "Mapping[str, Accepted]":
    from adapters.mcp.definition import Accepted

    return {
        tool: Accepted(entry.sha256, reads=entry.effect == "read", because=entry.because)
        for tool, entry in own.tools.items()
    }


def _without_tools(servers: Mapping[str, McpServerSettings]) -> Mapping[str, McpServerSettings]:
    return {name: own.model_copy(update={"tools": {}}) for name, own in servers.items()}


def _load_sdk() -> None:
    try:
        import_module("adapters.mcp.session")
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] not in _SDK:
            raise
        raise ConfigurationError(
            "mcp.servers: the MCP client is not installed. Install the extra kortex[mcp] "
            "(from the source: `make setup-mcp`), or remove [mcp.servers.*]"
        ) from error


def _opener(own: McpServerSettings) -> "Open":
    def open_(wake: asyncio.Event) -> "AbstractAsyncContextManager[Connection]":
        return _program(own, wake) if own.command else _address(own, wake)

    return open_


def _program(
    own: McpServerSettings, wake: asyncio.Event
) -> "AbstractAsyncContextManager[Connection]":
    from adapters.mcp.session import over_stdio  # the extra

    known = environment()
    given = {name: value.get_secret_value() for name, value in own.env.items()}
    env = {name: known[name] for name in own.inherit if name in known} | given
    return over_stdio(own.command, env, wake)


@asynccontextmanager
async def _address(own: McpServerSettings, wake: asyncio.Event) -> "AsyncIterator[Connection]":
    """A client per connection, confined as a plugin's: one host, no private network but those named."""
    from adapters.mcp.session import over_http  # the extra
    from adapters.mcp.supervisor import MAX_CALLS

    bearer = own.token.get_secret_value()
    client = http_client(
        headers={"Authorization": f"Bearer {bearer}"} if bearer else None,
        read_s=_SILENCE_S,
        streams=True,
        max_connections=MAX_CALLS + 4,  # and the streams that it keeps open
        allowed_hosts=frozenset({urlsplit(own.url).hostname or ""}),
        reachable=ReachableAddresses(own.networks),
        keeps_cookies=True,  # a balancer leads a session to its server by one
    )
    try:
        async with over_http(own.url, client, wake) as connection:
            yield connection
    finally:
        await client.aclose()
