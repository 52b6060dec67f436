"""`kortex providers` and `kortex tools`: as the running service knows them, else as configured.

The service is asked from its own host.
"""

import asyncio
from collections.abc import Sequence
from contextlib import AsyncExitStack
from typing import Final

import click
import orjson
from pydantic import JsonValue, TypeAdapter, ValidationError

from adapters.errors import AdapterError
from adapters.http.client import http_client
from adapters.http.errors import check_status, mapped_errors
from bot.app.operator_tools import open_plugins, policy_of
from bot.app.providers import asked_in_order, make_providers
from bot.chat.rounds import Rounds
from bot.cli.display import print_json, print_rows
from bot.cli.exit_codes import OK
from bot.cli.invocation import configured
from bot.cli.options import json_option
from bot.domain.provider_status import ProviderStatus
from bot.domain.tool_status import ToolReport, report_from_json
from bot.reports.provider_report import provider_report
from bot.reports.tools import tool_report
from bot.settings.http import HttpSettings, own_address
from bot.settings.model import Settings
from bot.web.api.reports import PROVIDERS_PATH
from bot.web.api.reports import TOOLS_PATH as PATH
from tools.core.all import core_tools
from tools.cursor import CursorSigner

_ASKED: Final = "(it is asked where [http] api_token is set)"
_STATUSES: Final = TypeAdapter(list[ProviderStatus])
TIMEOUT_S: Final = 2.0  # the service is on this machine; a slow one is as good as none


@click.command()
@json_option
@configured
async def providers(settings: Settings, as_json: bool) -> int:
    """List the model providers, and whether each can be used."""
    statuses, live = await providers_report_of(settings)
    if as_json:
        rows: list[JsonValue] = [status.as_json() for status in statuses]
        print_json({"live": live, "providers": rows})
        return OK
    print_rows(
        [
            ("ok" if status.available else "--", status.name, status.as_words(live=live))
            for status in statuses
        ]
    )
    if not live:
        print(f"No running service answered {_ASKED}, so answers and failures are unknown.")
    return OK


@click.command()
@json_option
@configured
async def tools(settings: Settings, as_json: bool) -> int:
    """List every tool: its toolsets, how its calls went, and what was not loaded."""
    report, live = await tools_report_of(settings)
    if as_json:
        print_json({"live": live, "report": report.as_json()})
        return OK
    rows = [
        ("--" if tool.reason else "ok", tool.id, tool.as_words(live=live)) for tool in report.tools
    ]
    print_rows(rows)
    print_rows([("!!", note) for note in report.notes])
    for toolset in report.toolsets:
        print(f"{toolset.name}: {toolset.as_words()}")
    if not live:
        print(
            f"No running service answered {_ASKED}, so calls and the state of backends are unknown."
        )
    return OK


async def _answer(http: HttpSettings, path: str) -> bytes | None:
    token = http.api_token.get_secret_value()
    if not token:
        return None
    client = http_client(
        base_url=own_address(http),
        headers={"authorization": f"Bearer {token}"},
        connect_s=TIMEOUT_S,
        read_s=TIMEOUT_S,
    )
    try:
        with mapped_errors("the service"):
            response = await client.get(path)
        check_status(response)
        return response.content
    except AdapterError:
        return None
    finally:
        await client.aclose()


async def tools_report_of(settings: Settings) -> tuple[ToolReport, bool]:
    """Every tool, and whether a running service reported it. Without one, no calls are known.

    Raises ConfigurationError.
    """
    body = await _answer(settings.http, PATH)
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


async def providers_report_of(settings: Settings) -> tuple[Sequence[ProviderStatus], bool]:
    """Every provider, and whether a running service reported it. Without one, no failures are known.

    Raises ConfigurationError for providers that cannot be made.
    """
    body = await _answer(settings.http, PROVIDERS_PATH)
    reported = _statuses(body) if body is not None else None
    if reported is not None:
        return reported, True
    async with AsyncExitStack() as stack:
        providers = make_providers(settings.llm, stack)
        rounds = Rounds(asked_in_order(settings.llm, providers))
        models = {name: own.model for name, own in settings.llm.providers.items()}
        return await provider_report(providers, rounds, models)(), False


def _statuses(body: bytes) -> Sequence[ProviderStatus] | None:
    try:
        rows = orjson.loads(body)["providers"]
        # A service of the release before does not say whether a provider answered.
        return _STATUSES.validate_python(
            [
                {"answered": True, **row, "native_tools": row["tools"], "wait_s": row["retry_in_s"]}
                for row in rows
            ]
        )
    except (ValidationError, orjson.JSONDecodeError, KeyError, TypeError):
        return None
