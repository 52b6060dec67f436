"""`kortex check`: the plugins that were loaded, and whether anybody is at their addresses."""

import asyncio
from pathlib import Path
from urllib.parse import urlsplit

from adapters.errors import AdapterError
from adapters.plugins.tool import PluginTool
from bot.reports.finding import Finding
from bot.settings.model import Settings
from bot.wiring.plugins import Plugins

PROBE_S = 5.0


async def check_plugins(plugins: Plugins, settings: Settings) -> list[Finding]:
    """A connection is made and nothing is asked: `kortex check --plugin FILE` does that."""
    if not settings.plugins.folder:
        return [Finding("plugins", False, "not set in [plugins]", configured=False)]
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(_finding(tool)) for tool in plugins.tools]
    bad = [
        Finding(f"plugin {Path(problem.file).name}", False, str(problem))
        for problem in plugins.problems
    ]
    found = [*(task.result() for task in tasks), *bad]
    return found or [Finding("plugins", True, f"none in {settings.plugins.folder}")]


async def _finding(tool: PluginTool) -> Finding:
    manifest = tool.manifest
    where = f"{manifest.endpoint.method} {urlsplit(manifest.endpoint.url).netloc}"
    try:
        async with asyncio.timeout(PROBE_S):
            await tool.reach()
    except (AdapterError, TimeoutError) as error:
        why = f"unreachable, {error or f'no answer within {PROBE_S:.0f} s'}"
        return Finding(f"plugin {manifest.name}", False, f"{where}: {why}")
    sessions = ", ".join(manifest.allowed_sessions)
    return Finding(f"plugin {manifest.name}", True, f"{where} is there, sessions {sessions}")
