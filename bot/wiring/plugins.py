"""The operator's plugins: their folder read at start and on SIGHUP, the good ones as tools, the bad
ones named.

What a manifest may say lives in `adapters.plugins`.
"""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import structlog

from adapters.http.client import http_client
from adapters.http.egress import LocalHosts, ReachableAddresses
from adapters.plugins.yaml_source import ManifestInvalid
from bot.settings.environment import environment
from bot.settings.model import Settings
from bot.upkeep.reload import Prepared
from tools.core.all import core_tools
from tools.cursor import CursorSigner

if TYPE_CHECKING:
    from adapters.plugins.manifest import ReadManifest
    from adapters.plugins.tool import PluginTool

_CONNECTIONS = 8  # per plugin: a bridge is small, and a turn asks a few things at once

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class _Loaded:
    """One reading of the folder."""

    tools: "tuple[PluginTool, ...]"
    problems: tuple[ManifestInvalid, ...]


class Plugins:
    """What was loaded, and why each of the others was not. A reload reads the folder anew.

    As after a restart, what the files say then is all there is: a manifest that became bad is not
    loaded, the one before does not stay. Clients of the readings before close one reload later, when
    the longest call is over.
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
        """The good ones."""
        return self._loaded.tools

    @property
    def problems(self) -> Sequence[ManifestInvalid]:
        """Why each of the others was not loaded."""
        return self._loaded.problems

    @property
    def notes(self) -> Sequence[str]:
        """The same for people: `plugins/tickets.yaml:3: endpoint.url: ...`."""
        return [str(problem) for problem in self._loaded.problems]

    @property
    def sessions(self) -> Mapping[str, tuple[str, ...]]:
        """Globs of session names by tool id."""
        return {tool.contract.id: tool.manifest.allowed_sessions for tool in self.tools}

    async def prepare(self, settings: Settings) -> Prepared:
        """The folder as it is now. Bad manifests are told and left out, the rest loads."""
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
        """Close every connection."""
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
                    why = "its credential is new to this process and is masked after a restart only"
                    raise each.source.invalid(why, "auth")
                host = urlsplit(each.manifest.endpoint.url).hostname or ""
                if self._local is not None and host not in self._local:
                    why = f"{host} is not declared local; add it to llm.privacy.local_hosts"
                    raise each.source.invalid(why, "endpoint", "url")
                tools[each.manifest.name] = open_plugin(each, clients)
            except ManifestInvalid as error:
                bad.append(error)
        for problem in bad:
            _log.error(
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
    """What manifests take from the environment, for literal masking wherever text leaves."""
    return _secrets(_read_folder(settings)[0])


def _secrets(read: "Iterable[ReadManifest]") -> frozenset[str]:
    known = dict(environment())
    return frozenset(secret for each in read for secret in each.secrets(known))


def _read_folder(settings: Settings) -> "tuple[list[ReadManifest], list[ManifestInvalid]]":
    if not settings.plugins.folder:
        return [], []
    folder = Path(settings.plugins.folder).expanduser()
    if not folder.is_dir():
        return [], [ManifestInvalid(str(folder), 1, "plugins.folder is no folder")]
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
