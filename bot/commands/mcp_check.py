"""What `kortex check` says of MCP servers: each server, each tool, what changed, the line to paste."""

from adapters.mcp.definition import Judged, ToolState, difference, entry_line
from adapters.mcp.effect import Guess
from adapters.mcp.supervisor import ServerState, Supervisor
from adapters.mcp.tool import McpTool, NotATool
from bot.reports.finding import Finding
from bot.wiring.mcp_servers import McpServers, shown_id
from tools.redactor import Redactor

_MAX_LINES = 60  # of a definition


async def report(servers: McpServers, redactor: Redactor) -> list[Finding]:
    """Every server and every tool that it announces or that has an entry.

    Why a server is down may be what it wrote last, so that is redacted. Raises RedactionFailed.
    """
    if not servers.supervisors:
        return [Finding("mcp", False, "not set in [mcp.servers.*]", configured=False)]
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
    """A new tool: what it is and how to accept it, unless it could not be offered anyway."""
    assert tool.definition is not None  # noqa: S101 - a new tool is announced
    try:
        McpTool(server.spec.name, tool.definition, server, server.spec.timeout_s)
    except NotATool as error:
        return Finding(part, False, f"refused: {error}", configured=False)
    reads = tool.definition.seeming_effect().guess is Guess.READS
    complete = "" if reads else ' (write effect = "read" yourself: its name does not say)'
    lines = [
        "off: new. Read what a model would be told:",
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
