"""What the service of this configuration says of itself, and `kortex tools` with or without it.

The running service is asked from its own host; where none runs, the configuration tells.
"""

import asyncio
from contextlib import AsyncExitStack
from typing import Final

import httpx
from pydantic import ValidationError

from adapters.errors import AdapterError
from adapters.http import check_status, http_client, mapped_errors
from bot.domain.tool_status import ToolReport, report_from_json
from bot.reports.tools import tool_report
from bot.settings.model import HttpSettings, Settings
from bot.web.private import TOOLS_PATH as PATH
from bot.wiring.plugins import open_plugins
from bot.wiring.toolboxes import policy_of
from tools.core.all import core_tools
from tools.cursor import CursorSigner

TIMEOUT_S: Final = 2.0  # the service is on this machine; a slow one is as good as none


async def asked(http: HttpSettings, path: str) -> bytes | None:
    """The body of its answer; None when nobody runs here, or there is no `[http] api_token`."""
    token = http.api_token.get_secret_value()
    if not token:
        return None
    here = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(http.host, http.host)  # noqa: S104 - compared, not bound
    client = http_client(
        base_url=f"http://{here}:{http.port}",
        headers={"authorization": f"Bearer {token}"},
        connect_s=TIMEOUT_S,
        read_s=TIMEOUT_S,
    )
    try:
        with mapped_errors("the service"):
            response: httpx.Response = await client.get(path)
        check_status(response)
        return response.content
    except AdapterError:
        return None
    finally:
        await client.aclose()


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
