"""`kortex tools`: the running service's word where it can be had, else the configuration's."""

import asyncio
from contextlib import AsyncExitStack

from pydantic import ValidationError

from bot.commands.live import asked
from bot.domain.tool_status import ToolReport, report_from_json
from bot.reports.tools import tool_report
from bot.settings.model import Settings
from bot.web.private import TOOLS_PATH as PATH
from bot.wiring.plugins import open_plugins
from bot.wiring.toolboxes import policy_of
from tools.core.all import core_tools
from tools.cursor import CursorSigner


async def report_of(settings: Settings) -> tuple[ToolReport, bool]:
    """Every tool, and whether a running service said so: else no call and no backend is known.

    Raises ConfigurationError.
    """
    body = await asked(settings.http, PATH)
    if body is not None:
        try:
            return report_from_json(body), True
        except ValidationError:
            pass  # another version runs here
    async with AsyncExitStack() as stack:
        plugins = await asyncio.to_thread(open_plugins, settings, stack)
        tools = [*core_tools(CursorSigner(bytes(32))), *plugins.tools]
        policy = policy_of(settings, [plugins])
        return tool_report(tools, policy, None, {}, notes=plugins.notes), False
