"""The operator's plugins: their folder read once at start, the good ones as tools, the bad ones named.

Part of the composition root. What a manifest may say lives in `adapters.plugins`.
"""

from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import structlog

from adapters.egress import ReachableAddresses
from adapters.http import http_client
from adapters.plugins.manifest import CEILING_S, ReadManifest, read_manifest
from adapters.plugins.tool import PluginTool
from adapters.plugins.yaml_source import ManifestInvalid
from bot.settings.model import Settings
from bot.settings.reading import environment
from tools.core.all import core_tools
from tools.cursor import CursorSigner

_CONNECTIONS = 8  # per plugin: a bridge is small, and a turn asks a few things at once

_log = structlog.get_logger(__name__)


@dataclass(slots=True)
class Plugins:
    """What was loaded, and why each of the others was not."""

    tools: list[PluginTool] = field(default_factory=list)
    problems: list[ManifestInvalid] = field(default_factory=list)

    @property
    def sessions(self) -> Mapping[str, tuple[str, ...]]:
        """Globs of session names by tool id."""
        return {tool.contract.id: tool.manifest.allowed_sessions for tool in self.tools}


def open_plugins(settings: Settings, stack: AsyncExitStack) -> Plugins:
    """Reads the folder; a manifest that cannot be used is logged and left out."""
    plugins = Plugins()
    read, plugins.problems = _read_folder(settings)
    for each in read:
        try:
            if each.manifest.name in {tool.manifest.name for tool in plugins.tools}:
                raise each.source.invalid("another plugin has this name", "name")
            plugins.tools.append(open_plugin(each, stack))
        except ManifestInvalid as error:
            plugins.problems.append(error)
    for problem in plugins.problems:
        _log.error("plugin_not_loaded", file=problem.file, line=problem.line, reason=str(problem))
    return plugins


def open_plugin(read: ReadManifest, stack: AsyncExitStack) -> PluginTool:
    """One manifest as a tool that reaches its declared host only. Raises ManifestInvalid."""
    if read.manifest.name in _built_in_names():
        raise read.source.invalid("a built-in tool has this name, choose another", "name")
    endpoint = read.manifest.endpoint
    client = http_client(
        headers=read.credentials(dict(environment())),
        read_s=CEILING_S,  # the runner's timeout cuts earlier
        max_connections=_CONNECTIONS,
        allowed_hosts=frozenset({urlsplit(endpoint.url).hostname or ""}),
        reachable=ReachableAddresses(endpoint.networks),
    )
    stack.push_async_callback(client.aclose)
    return PluginTool(read, client)


def plugin_secrets(settings: Settings) -> frozenset[str]:
    """What manifests take from the environment, for literal masking wherever text leaves."""
    read, _ = _read_folder(settings)
    known = dict(environment())
    return frozenset(secret for each in read for secret in each.secrets(known))


def _read_folder(settings: Settings) -> tuple[list[ReadManifest], list[ManifestInvalid]]:
    if not settings.plugins.folder:
        return [], []
    folder = Path(settings.plugins.folder).expanduser()
    if not folder.is_dir():
        return [], [ManifestInvalid(str(folder), 1, "plugins.folder is no folder")]
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
