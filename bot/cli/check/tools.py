"""`kortex check` on what a model is given: providers, plugins, MCP servers, toolsets and channels."""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack, aclosing
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

from adapters.fault import fault_of_status
from adapters.llm.messages import CompleteRequest, DoneChunk, ErrorChunk, ErrorKind, Message, Role
from adapters.llm.port import Provider
from adapters.llm.triage.provider import NAME as TRIAGE
from adapters.mcp.definition import Judged, ToolState, difference, entry_line
from adapters.mcp.effect import Guess
from adapters.mcp.supervisor import ServerState, Supervisor
from adapters.mcp.tool import McpTool, NotATool
from adapters.plugins.tool import PluginTool
from bot.app import rules
from bot.app.backend_selection import named_of, picked_words, picks_of
from bot.app.operator_tools import McpServers, OwnTools, Plugins, open_mcp, policy_of, shown_id
from bot.app.stores import open_redactor
from bot.cli.check import time_budget
from bot.cli.check.installation import InstallationProbe
from bot.cli.check.time_budget import probed, unset
from bot.domain.channel import ChannelRule
from bot.reports.finding import Finding
from bot.reports.tools import Purpose, toolset_costs
from bot.settings.model import Settings
from bot.settings.named_backends import FAMILIES
from bot.settings.reading import ConfigurationError
from tools.contract import AnyTool
from tools.core.all import core_tools
from tools.cursor import CursorSigner
from tools.policy import ToolPolicy
from tools.products import Reading
from tools.redactor import Redactor

# A few tokens of the configured model; some models refuse a bound below 16.
_QUESTION = CompleteRequest(
    system="", messages=(Message(Role.USER, "Answer with the word ok."),), max_tokens=32
)
_MAX_LINES = 60  # of a definition


async def check_providers(
    providers: Mapping[str, Provider], in_order: Sequence[Provider]
) -> list[Finding]:
    """Ask all providers at once. An unused provider is listed and not asked; triage is no model."""
    asked = {provider.name for provider in in_order}
    async with asyncio.TaskGroup() as group:
        tasks = [
            group.create_task(_provider(name, provider, is_asked=name in asked))
            for name, provider in providers.items()
        ]
    return [task.result() for task in tasks]


async def _provider(name: str, provider: Provider, *, is_asked: bool) -> Finding:
    part, reason = f"provider {name}", provider.unavailable_reason
    if reason is not None:
        return Finding(part, False, reason, is_asked)
    if not is_asked:
        unused = "not in default_provider or fallback_providers, so it was not asked"
        return Finding(part, True, unused, configured=False)
    if name == TRIAGE:
        return Finding(part, True, "rule-based, always available")
    return await _asked(part, provider)


async def _asked(part: str, provider: Provider) -> Finding:
    try:
        async with asyncio.timeout(time_budget.within(time_budget.PROBE_S)):
            stream = provider.stream(_QUESTION)
            async with aclosing(stream) as chunks:  # type: ignore[type-var]
                async for chunk in chunks:
                    if isinstance(chunk, ErrorChunk):
                        return _refusal(part, chunk)
                    if isinstance(chunk, DoneChunk):
                        return Finding(part, True, "answered (asked for one word, a few tokens)")
    except TimeoutError:
        slow = "; a local model may still be loading; try again"
        return time_budget.silent(part, time_budget.PROBE_S, slow)
    return Finding(part, False, "ended without an answer")


def _refusal(part: str, chunk: ErrorChunk) -> Finding:
    by_status = None if chunk.kind is ErrorKind.QUOTA else fault_of_status(chunk.status)
    mend = "Add credit or raise the limit at that vendor." if chunk.kind is ErrorKind.QUOTA else ""
    words = f"{chunk.kind.value}: {chunk.message}"
    return Finding(part, False, words, mend=mend, fault=chunk.fault or by_status)


async def check_plugins(plugins: Plugins, settings: Settings) -> list[Finding]:
    """A connection is made and nothing is asked: `kortex check --plugin FILE` does that."""
    if not settings.plugins.folder:
        return [unset("plugins", "[plugins]")]
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(_plugin(tool)) for tool in plugins.tools]
    found = [*(task.result() for task in tasks), *plugin_problems(plugins)]
    return found or [Finding("plugins", True, f"none in {settings.plugins.folder}")]


def plugin_problems(plugins: Plugins) -> list[Finding]:
    return [
        Finding(f"plugin {Path(problem.file).name}", False, str(problem))
        for problem in plugins.problems
    ]


async def _plugin(tool: PluginTool) -> Finding:
    manifest = tool.manifest
    where = f"{manifest.endpoint.method} {urlsplit(manifest.endpoint.url).netloc}"

    async def words() -> str:
        await tool.reach()
        return f"{where} is there, sessions {', '.join(manifest.allowed_sessions)}"

    return await probed(f"plugin {manifest.name}", words, f"{where}: unreachable, ")


def check_channels(
    settings: Settings, policy: ToolPolicy, tools: Sequence[AnyTool]
) -> list[Finding]:
    """One row for each channel's rule. A tool without product bounds is named, and is no error."""
    found = []
    several = any(named_of(settings.observe, family) for family in FAMILIES)
    for rule in rules.channel_rules(settings):
        looks_at = picks_of(settings.observe, rule)
        words = _words(rule, _untold(rule, policy, tools))
        words += f"; looks at {picked_words(settings.observe, looks_at)}" if several else ""
        known = looks_at.are_known
        found.append(Finding(f"channel {rule.match}", known, words, warning=not known))
    return found


def _untold(rule: ChannelRule, policy: ToolPolicy, tools: Sequence[AnyTool]) -> list[str]:
    asking = Purpose(rule.toolset, rule.match, connection_ids=policy.granted_connections)
    everywhere = replace(policy, sessions={})
    anywhere = [tool.contract for tool in tools if everywhere.allows(tool.contract, asking)]
    return sorted(each.short_name for each in anywhere if not each.products.can_be_told)


def _words(rule: ChannelRule, untold: Sequence[str]) -> str:
    if not rule.products:
        return "no products set: proposals and tools cover every product"
    own = ", ".join(rule.products)
    match rule.reading:
        case Reading.ALL:
            return f"proposals only for {own}; reading = all: tools read every product"
        case Reading.STRICT:
            without = f"; not offered: {', '.join(untold)}" if untold else ""
            return f"proposals and tools only for {own}{without}"
        case Reading.PRODUCTS:
            blind = f"; these may read data of other products: {', '.join(untold)}"
            more = f"{blind} (reading = strict denies them)"
            return f"proposals and tools only for {own}{more if untold else ''}"


def check_toolsets(own: Sequence[OwnTools], settings: Settings) -> Sequence[Finding]:
    tools = [*core_tools(CursorSigner(bytes(32))), *(tool for each in own for tool in each.tools)]
    try:
        policy = policy_of(settings, own)
    except ConfigurationError as error:
        return [Finding("policy", False, str(error))]
    costs = [
        Finding(f"toolset {cost.name}", True, cost.as_words())
        for cost in toolset_costs(tools, policy)
    ]
    return [*costs, *check_channels(settings, policy, tools)]


async def check_tools(asked: InstallationProbe) -> Sequence[Finding]:
    """MCP servers, and what then is offered: with all of the backends configured, and bounded by channels."""
    settings, plugins = asked.of.settings, asked.of.plugins
    until = asyncio.get_running_loop().time() + time_budget.within(time_budget.PART_S)
    async with AsyncExitStack() as stack:
        try:
            mcp = await open_mcp(settings, stack, until=until - time_budget.MCP_END_S)
        except ConfigurationError as error:
            return [Finding("mcp", False, str(error)), *check_toolsets((plugins,), settings)]
        redactor = await asyncio.to_thread(open_redactor, settings)  # reads the plugins' folder
        shown = await mcp_report(mcp, redactor)
        return [*shown, *check_toolsets((plugins, mcp), settings)]


async def mcp_report(servers: McpServers, redactor: Redactor) -> list[Finding]:
    """Every server and every tool that it announces or that has an entry.

    Why a server is down may be what it wrote last, so that is redacted. Raises RedactionFailed.
    """
    if not servers.supervisors:
        return [unset("mcp", "[mcp.servers.*]")]
    rows: list[Finding] = []
    for server in servers.supervisors:
        connected = server.state is ServerState.CONNECTED
        words = server.reason or ("connected" if connected else "no answer in time")
        rows.append(Finding(f"mcp {server.spec.name}", connected, redactor.redact(words)))
        rows += [await _tool(servers, server, each) for each in server.judged]
    return rows


async def _tool(servers: McpServers, server: Supervisor, tool: Judged) -> Finding:
    part = shown_id(server, tool)
    match tool.state:
        case ToolState.ON:
            return Finding(part, True, "on, as accepted")
        case ToolState.NEW:
            return _offer(part, server, tool)
        case ToolState.CHANGED:
            return Finding(part, False, await _change(servers, tool))
        case ToolState.REFUSED | ToolState.GONE:
            wanted = tool.accepted is not None
            return Finding(part, False, f"{tool.state.value}: {tool.reason}", configured=wanted)


def _offer(part: str, server: Supervisor, tool: Judged) -> Finding:
    assert tool.definition is not None  # noqa: S101 - a new tool is announced
    try:
        McpTool(server.spec.name, tool.definition, server, server.spec.timeout_s)
    except NotATool as error:
        return Finding(part, False, f"refused: {error}", configured=False)
    reads = tool.definition.seeming_effect().guess is Guess.READS
    complete = "" if reads else ' (add effect = "read" yourself: its name does not show it)'
    lines = [
        "off: new. Review its description for the model:",
        *_quoted(tool.definition.lines()),
        f"To accept it, if it only reads{complete}, add to [mcp.servers.{server.spec.name}.tools]:",
        entry_line(tool.definition),
    ]
    return Finding(part, False, "\n".join(lines), configured=False)


async def _change(servers: McpServers, tool: Judged) -> str:
    assert tool.definition is not None  # noqa: S101 - a changed tool is announced
    assert tool.accepted is not None  # noqa: S101 - and was accepted
    before = await servers.accepted.find(tool.accepted.sha256)
    if before is None:
        shown = [
            "off: changed since it was accepted. It is now:",
            *_quoted(tool.definition.lines()),
        ]
    else:
        changes = difference(before, tool.definition)
        shown = ["off: changed since it was accepted:", *_quoted(changes)]
    return "\n".join([*shown, "To accept it, replace its line by:", entry_line(tool.definition)])


def _quoted(lines: list[str]) -> list[str]:
    """A server's words cannot pass for ours: each of their lines is marked."""
    more = [f"| ... and {len(lines) - _MAX_LINES} more lines"] if len(lines) > _MAX_LINES else []
    return [*(f"| {line}" for line in lines[:_MAX_LINES]), *more]
