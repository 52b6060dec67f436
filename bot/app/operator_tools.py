"""The operator's own tools: plugins from a folder, and MCP servers.

The MCP SDK is an extra, imported when a server is configured."""

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias
from urllib.parse import urlsplit

import sqlalchemy as sa
import structlog

from adapters.http.client import http_client
from adapters.http.egress import LocalHosts, ReachableAddresses
from adapters.mcp.accepted_definitions import AcceptedDefinitions
from adapters.plugins.yaml_source import ManifestInvalid
from bot.app import rules
from bot.settings.environment import environment
from bot.settings.mcp import McpServerSettings
from bot.settings.model import Settings
from bot.settings.reading import ConfigurationError
from bot.upkeep.reload import Prepared
from tools.core.all import core_tools
from tools.cursor import CursorSigner
from tools.policy import ToolPolicy

if TYPE_CHECKING:
    from adapters.mcp.definition import Accepted, Judged
    from adapters.mcp.supervisor import Connection, Open, Pace, Supervisor
    from adapters.mcp.tool import McpTool
    from adapters.plugins.manifest import ReadManifest
    from adapters.plugins.tool import PluginTool


log = structlog.get_logger(__name__)

_CONNECTIONS = 8  # per plugin: a bridge is small, and a turn asks a few things at once
PATIENCE_S: Final = 10.0  # how long a start waits for servers; they are waited for on, behind
# A stream of changes is silent for long; what a call may take is cut by the runner.
_SILENCE_S: Final = 3600.0
_SDK: Final = frozenset({"mcp", "mcp_types", "httpx2", "anyio"})


@dataclass(frozen=True, slots=True)
class _Loaded:
    tools: "tuple[PluginTool, ...]"
    problems: tuple[ManifestInvalid, ...]


class Plugins:
    """The loaded plugins, and why each other manifest was refused. A reload reads the folder again.

    A reload works as a restart does: a manifest that became bad is not loaded, and its earlier
    version does not stay. Clients of an earlier reading close one reload later, when the longest call
    is over.
    """

    def __init__(self, settings: Settings) -> None:
        self.version = 0
        self._known = plugin_secrets(settings)
        # As it was at the start: what counts as inside, only a restart changes.
        privacy = settings.llm.privacy
        self._local = LocalHosts(privacy.local_hosts) if settings.llm.is_local_only else None
        self._clients = AsyncExitStack()
        self._retired = AsyncExitStack()
        self._loaded = self._read(settings, self._clients)

    @property
    def tools(self) -> "Sequence[PluginTool]":
        return self._loaded.tools

    @property
    def problems(self) -> Sequence[ManifestInvalid]:
        """Why each other manifest was refused."""
        return self._loaded.problems

    @property
    def notes(self) -> Sequence[str]:
        """The problems as text: `plugins/tickets.yaml:3: endpoint.url: ...`."""
        return [str(problem) for problem in self._loaded.problems]

    @property
    def sessions(self) -> Mapping[str, tuple[str, ...]]:
        """Globs of session names by tool id."""
        return {tool.contract.id: tool.manifest.allowed_sessions for tool in self.tools}

    async def prepare(self, settings: Settings) -> Prepared:
        """The folder as it is now. Bad manifests are logged and left out; the rest loads."""
        clients = AsyncExitStack()
        loaded = await asyncio.to_thread(self._read, settings, clients)
        retired, self._retired = self._retired, AsyncExitStack()
        await retired.aclose()

        def put_in_force() -> None:
            self._retired.push_async_callback(self._clients.aclose)
            self._clients, self._loaded = clients, loaded
            self.version += 1

        return Prepared(
            put_in_force,
            {
                "loaded": [tool.contract.id for tool in loaded.tools],
                "not_loaded": [str(problem) for problem in loaded.problems],
            },
        )

    async def aclose(self) -> None:
        await self._retired.aclose()
        await self._clients.aclose()

    def _read(self, settings: Settings, clients: AsyncExitStack) -> _Loaded:
        tools: dict[str, PluginTool] = {}
        read, bad = _read_folder(settings)
        for each in read:
            try:
                if each.manifest.name in tools:
                    raise each.source.invalid("another plugin has this name", "name")
                if _secrets([each]) - self._known:
                    why = "its credential is new to this process; restart Kortex to mask it"
                    raise each.source.invalid(why, "auth")
                host = urlsplit(each.manifest.endpoint.url).hostname or ""
                if self._local is not None and host not in self._local:
                    why = f"{host} is not declared local; add it to llm.privacy.local_hosts"
                    raise each.source.invalid(why, "endpoint", "url")
                tools[each.manifest.name] = open_plugin(each, clients)
            except ManifestInvalid as error:
                bad.append(error)
        for problem in bad:
            log.error(
                "plugin_not_loaded", file=problem.file, line=problem.line, reason=str(problem)
            )
        return _Loaded(tuple(tools.values()), tuple(bad))


def open_plugins(settings: Settings, stack: AsyncExitStack) -> Plugins:
    """Reads the folder; a manifest that cannot be used is logged and left out."""
    plugins = Plugins(settings)
    stack.push_async_callback(plugins.aclose)
    return plugins


def open_plugin(read: "ReadManifest", stack: AsyncExitStack) -> "PluginTool":
    """One manifest as a tool that reaches its declared host only. Raises ManifestInvalid."""
    from adapters.plugins.manifest import CEILING_S
    from adapters.plugins.tool import PluginTool

    if read.manifest.name in _built_in_names():
        raise read.source.invalid("a built-in tool has this name, choose another", "name")
    endpoint = read.manifest.endpoint
    client = http_client(
        headers=read.headers(environment()),
        read_s=CEILING_S,  # the runner's timeout cuts earlier
        max_connections=_CONNECTIONS,
        allowed_hosts=frozenset({urlsplit(endpoint.url).hostname or ""}),
        reachable=ReachableAddresses(endpoint.networks),
    )
    stack.push_async_callback(client.aclose)
    return PluginTool(read, client)


def plugin_secrets(settings: Settings) -> frozenset[str]:
    """The secrets that manifests take from the environment, for masking in all output."""
    return _secrets(_read_folder(settings)[0])


def _secrets(read: "Iterable[ReadManifest]") -> frozenset[str]:
    known = dict(environment())
    return frozenset(secret for each in read for secret in each.secrets(known))


def _read_folder(settings: Settings) -> "tuple[list[ReadManifest], list[ManifestInvalid]]":
    if not settings.plugins.folder:
        return [], []
    folder = Path(settings.plugins.folder).expanduser()
    if not folder.is_dir():
        return [], [ManifestInvalid(str(folder), 1, "plugins.folder is not a folder")]
    from adapters.plugins.manifest import read_manifest

    read: list[ReadManifest] = []
    problems: list[ManifestInvalid] = []
    for path in sorted(p for p in folder.iterdir() if p.suffix in (".yaml", ".yml")):
        try:
            if not path.is_file():
                raise ManifestInvalid(str(path), 1, "is not a file")
            read.append(read_manifest(path))
        except ManifestInvalid as error:
            problems.append(error)
    return read, problems


def _built_in_names() -> frozenset[str]:
    return frozenset(tool.contract.short_name for tool in core_tools(CursorSigner(bytes(32))))


@dataclass(frozen=True, slots=True)
class McpStatus:
    """A server, or a tool of one that is not on: its name, its state in a word, and why."""

    name: str
    state: str
    reason: str


class McpServers:
    """All servers of this process. `version` grows when the set of enabled tools changes."""

    def __init__(self, settings: Settings) -> None:
        self.supervisors: list[Supervisor] = []
        self.version = 0
        self.accepted = AcceptedDefinitions(definitions_file(settings))
        self._settings = settings.mcp.servers

    @property
    def tools(self) -> "Sequence[McpTool]":
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
        return tuple(row for each in self.supervisors for row in _rows(each))

    @property
    def notes(self) -> Sequence[str]:
        """The status rows as text, one line each."""
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
    """Connect the configured servers, and return at `until` of the loop's clock at the latest.
    Raises ConfigurationError.

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


def definitions_file(settings: Settings) -> Path | None:
    """`[mcp] definitions`, by default beside the SQLite file; None: nothing is kept."""
    if settings.mcp.definitions:
        return Path(settings.mcp.definitions).expanduser()
    url = sa.make_url(settings.database.url.get_secret_value())
    embedded = url.drivername.startswith("sqlite")
    return Path(f"{url.database}.mcp.json") if embedded else None


OwnTools: TypeAlias = Plugins | McpServers


def policy_of(settings: Settings, own: Sequence[OwnTools]) -> ToolPolicy:
    """The policy over the built-in tools and these. Raises ConfigurationError."""
    sessions = {name: globs for each in own for name, globs in each.sessions.items()}
    return rules.tool_policy(settings, sessions)
