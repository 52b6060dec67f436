"""`kortex check`: the table of what works, and one plugin's manifest tried by itself."""

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack
from pathlib import Path

import click
import orjson
from pydantic import JsonValue

from adapters.http.egress import LocalHosts, confined_to
from adapters.plugins.manifest import ReadManifest, read_manifest
from bot.app.backend_selection import SystemClock
from bot.app.operator_tools import open_plugin
from bot.app.providers import installation_key
from bot.cli.check.parts import examine
from bot.cli.check.time_budget import UnwaitedThreads, process_age
from bot.cli.display import print_json, print_rows
from bot.cli.exit_codes import FAILED, OK
from bot.cli.invocation import config_option, guarded, loaded
from bot.cli.options import json_option
from bot.privacy.redactor import TextRedactor
from bot.reports.finding import Finding
from bot.settings.environment import environment
from bot.settings.model import Settings
from tools.capabilities import CallContext, Capabilities
from tools.catalog import ToolCatalog
from tools.policy import ToolPolicy
from tools.records import ToolOutcome
from tools.runner import ToolRunner

_TO_MEND = ("FAILED", "WARNING")
_PURPOSE = "check"


@click.command()
@click.option(
    "--offline", is_flag=True, help="Only read the configuration, without network access."
)
@click.option(
    "--plugin",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Validate this manifest and call it once. Needs no other configuration.",
)
@click.option(
    "--arguments",
    default="",
    metavar="JSON",
    help="With --plugin: the arguments (default: the examples of its parameters).",
)
@json_option
@config_option
def check(config: Path, as_json: bool, offline: bool, plugin: Path | None, arguments: str) -> int:
    """Try each part of the configuration. Exit 1: a configured part does not work.

    Kortex asks every configured system a small question and changes nothing. It takes at most 15
    seconds.

    \b
    Examples:
      kortex check
      kortex check --offline --config /etc/kortex/kortex.toml
      kortex check --plugin plugins/jira.yaml --arguments '{"query": "checkout"}'
    """
    if plugin is not None:
        there = config.exists()
        return guarded(lambda: _try_plugin(config, plugin, arguments, has_config=there))
    age_s = process_age()
    return guarded(lambda: _check(loaded(config), age_s, as_json=as_json, offline=offline))


async def _try_plugin(config: Path, file: Path, arguments: str, *, has_config: bool) -> int:
    settings = loaded(config) if has_config else Settings()
    name, outcome = await try_plugin(settings, file, arguments)
    print(f"{file}: valid, as {name}")
    print(f"{'ok' if outcome.record.ok else 'FAILED'}: {outcome.content}")
    return OK if outcome.record.ok else FAILED


async def _check(
    settings: Settings, age_s: Callable[[], float], *, as_json: bool, offline: bool
) -> int:
    asyncio.get_running_loop().set_default_executor(UnwaitedThreads())
    found = sorted(
        await examine(settings, offline=offline, age_s=age_s), key=lambda finding: finding.rank
    )
    if as_json:
        print_json([_as_json(finding) for finding in found])
    else:
        print_rows([(f"{each.mark:<7}", each.part, _detail_with_remedy(each)) for each in found])
        if offline:
            print("Only the configuration was read (--offline); no system was called.")
    return FAILED if any(f.fails for f in found) else OK


def _as_json(finding: Finding) -> JsonValue:
    return {
        "part": finding.part,
        "ok": finding.ok,
        "configured": finding.configured,
        "warning": finding.warning,
        "detail": finding.detail,
        "mend": finding.mend if finding.mark in _TO_MEND else "",
    }


def _detail_with_remedy(finding: Finding) -> str:
    to_mend = finding.mark in _TO_MEND
    return f"{finding.detail}\n→ {finding.mend}" if to_mend else finding.detail


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
