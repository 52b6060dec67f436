"""`kortex check --plugin FILE`: one manifest validated, and called once as the bot would call it."""

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path

import orjson
from pydantic import JsonValue

from adapters.http.egress import LocalHosts, confined_to
from adapters.plugins.manifest import ReadManifest, read_manifest
from bot.privacy.redactor import TextRedactor
from bot.settings.environment import environment
from bot.settings.model import Settings
from bot.wiring.backends import installation_key
from bot.wiring.observed import SystemClock
from bot.wiring.plugins import open_plugin
from tools.capabilities import CallContext, Capabilities
from tools.catalog import ToolCatalog
from tools.policy import ToolPolicy
from tools.records import ToolOutcome
from tools.runner import ToolRunner

_PURPOSE = "check"


async def try_plugin(settings: Settings, file: Path, arguments: str) -> tuple[str, ToolOutcome]:
    """The tool's id and what a model would be given. Asks the plugin's endpoint.

    `arguments` is a JSON object; empty means each parameter's example. Raises ManifestInvalid.
    """
    read = await asyncio.to_thread(read_manifest, file)
    async with AsyncExitStack() as stack:
        if settings.llm.is_local_only:
            stack.enter_context(confined_to(LocalHosts(settings.llm.privacy.local_hosts)))
        tool = open_plugin(read, stack)
        name = tool.contract.id
        clock = SystemClock()
        caps = Capabilities(clock=clock)
        policy = ToolPolicy(toolsets={_PURPOSE: (name,)})
        redactor = TextRedactor(
            settings.secrets() | read.secrets(dict(environment())), installation_key(settings)
        )
        runner = ToolRunner(ToolCatalog([tool], policy, caps), policy, caps, redactor, clock)
        call = CallContext(
            actor="operator", team="", channel="", session_id="check", session_name="check",
            turn_id="check", tool_call_id="check", purpose=_PURPOSE, now=clock.now(),
        )  # fmt: skip
        sent = arguments or _examples(read)
        return name, await runner.run("check", name, sent, call, lambda _: None)


def _examples(read: ReadManifest) -> str:
    given: dict[str, JsonValue] = {}
    for name, parameter in read.manifest.parameters.items():
        if parameter.example is not None:
            given[name] = parameter.example
        elif parameter.required and parameter.default is None:
            raise read.source.invalid(
                "has no example to call with; add one, or use --arguments '{...}'",
                "parameters",
                name,
            )
    return orjson.dumps(given).decode()
