"""One connection to a server through the official SDK: list its tools, call one, hear of changes.

The only module that speaks the SDK's types. Nothing is offered to the server: no sampling, no
questions to people, no folders.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from typing import Any, Final

import anyio
import httpx
import mcp_types as types
import structlog
from mcp.client.client import Client
from mcp.client.session import IncomingMessage
from mcp.client.streamable_http import streamable_http_client
from mcp.client.subscriptions import ListenNotSupportedError, SubscriptionLost
from mcp.shared.exceptions import MCPError
from mcp.shared.message import SessionMessage
from mcp_types import CONNECTION_CLOSED, INVALID_PARAMS
from pydantic import JsonValue, TypeAdapter, ValidationError

from adapters.errors import AdapterError, BadAnswer, Unreachable
from adapters.mcp.answer import Answer
from adapters.mcp.definition import Definition
from adapters.mcp.http_transport import sdk_client
from adapters.mcp.stdio import ServerProcess, start, streams
from adapters.mcp.supervisor import Connection, first_of
from adapters.mcp.tool import CEILING_S
from tools.errors import CapabilityUnavailable, InvalidArguments, ToolError, UpstreamFailed
from tools.output import clean_text

_TOOL: Final = TypeAdapter(types.Tool)
_log = structlog.stdlib.get_logger(__name__)
REQUEST_S: Final = 20.0  # for everything but calls, which the runner cuts
MAX_TOOLS: Final = 200
_MAX_PAGES: Final = 20
_MAX_WORDS: Final = 500
_SESSION_GONE: Final = "Session terminated"  # the SDK's words for a 404 within a session
_OURS: Final = types.Implementation(name="kortex", version="0")


class SdkConnection:
    """`adapters.mcp.supervisor.Connection` over the SDK."""

    def __init__(self, client: Client, wake: asyncio.Event, process: ServerProcess | None) -> None:
        self._client = client
        self._wake = wake
        self._process = process
        self._broke_off = False
        info = client.server_info
        self.title = clean_text(f"{info.name} {info.version}")[:80] if info else ""

    @property
    def lost(self) -> str:
        """Why it is over; "" while it is not known to be."""
        if self._process is not None:
            return self._process.why() if self._process.is_over else ""
        return "the server broke off" if self._broke_off else ""

    async def definitions(self) -> Sequence[Definition]:
        """Every tool that the server announces, page by page. Raises AdapterError.

        Some servers send `nextCursor: ""` at the end, or the same cursor for ever. An empty cursor, a
        cursor that was used before or is refused, a page that only repeats the names of earlier tools,
        and two pages without tools are the end.
        """
        found: list[Definition] = []
        cursor: str | None = None
        used = {""}
        empty = 0
        for _ in range(_MAX_PAGES):
            try:
                page = await self._client.session.list_tools(
                    params=types.PaginatedRequestParams(cursor=cursor) if cursor else None
                )
            except (MCPError, ValidationError) as error:
                if cursor and isinstance(error, MCPError) and error.code == INVALID_PARAMS:
                    return found  # it refuses its own cursor
                raise BadAnswer(f"its tools cannot be listed: {_words(error)}") from error
            listed = [_definition(tool) for tool in page.tools]
            names = {each.name for each in found}
            added = [each for each in listed if each.name not in names]
            found += added
            if len(found) > MAX_TOOLS:
                raise BadAnswer(f"it announces more than {MAX_TOOLS} tools")
            empty = 0 if listed else empty + 1
            repeats = bool(listed) and not added
            if page.next_cursor is None or page.next_cursor in used or repeats or empty > 1:
                return found
            cursor = page.next_cursor
            used.add(cursor)
        raise BadAnswer("its list of tools does not end")

    async def call(self, tool: str, arguments: Mapping[str, JsonValue]) -> Answer:
        """Call a tool. Raises ToolError.

        A plain request: the SDK's `call_tool` would also evaluate the server's output schema, with
        patterns that may never finish and references that may lead anywhere.
        """
        params = types.CallToolRequestParams(name=tool, arguments=dict(arguments))
        try:
            result = await self._client.session.send_request(
                types.CallToolRequest(params=params),
                types.CallToolResult,
                request_read_timeout_seconds=CEILING_S + REQUEST_S,
            )
        except MCPError as error:
            if error.code == CONNECTION_CLOSED or error.message == _SESSION_GONE:
                self._broke_off = True
                self._wake.set()
            raise _as_tool_error(error) from error
        except ValidationError as error:
            raise UpstreamFailed("its answer is not in the protocol") from error
        return _answer(result)

    async def follow(self) -> None:
        """Sets the wake when the server says that its tools changed, in the protocol of 2026."""
        try:
            async with self._client.listen(tools_list_changed=True) as events:
                async for _ in events:
                    self._wake.set()
        except (ListenNotSupportedError, SubscriptionLost, MCPError, TimeoutError):
            return


def _as_tool_error(error: MCPError) -> ToolError:
    if error.code == CONNECTION_CLOSED:
        return CapabilityUnavailable("the MCP server broke off")
    if error.code == INVALID_PARAMS:
        return InvalidArguments(_words(error))
    return UpstreamFailed(_words(error))


def _words(error: MCPError | ValidationError) -> str:
    """A server's own message; a JSON error is described without repeating the JSON."""
    if isinstance(error, ValidationError):
        return "not what the protocol promises"
    return " ".join(clean_text(error.message).split())[:_MAX_WORDS] or "no reason given"


def _answer(result: types.CallToolResult) -> Answer:
    texts, left_out = [], []
    for block in result.content:
        match block:
            case types.TextContent(text=text):
                texts.append(text)
            case types.EmbeddedResource(resource=types.TextResourceContents(text=text)):
                texts.append(text)
            case _:
                left_out.append(block.type.replace("_", " "))
    structured: Any = result.structured_content
    return Answer(tuple(texts), structured, tuple(left_out), bool(result.is_error))


@asynccontextmanager
async def over_stdio(
    command: Sequence[str], env: Mapping[str, str], wake: asyncio.Event
) -> AsyncIterator[Connection]:
    """A child process, ended with the connection. Raises AdapterError."""
    process = await start(command, env, wake)
    with _explained(process):
        async with _connected(streams(process), wake, process) as connection:
            yield connection


@asynccontextmanager
async def over_http(
    url: str, client: httpx.AsyncClient, wake: asyncio.Event
) -> AsyncIterator[Connection]:
    """Streamable HTTP through `client`, which stays its owner's. Raises AdapterError."""
    with _explained(None):
        async with AsyncExitStack() as stack:
            sdk = await stack.enter_async_context(sdk_client(client, "the MCP server"))
            transport = streamable_http_client(url, http_client=sdk)
            yield await stack.enter_async_context(_connected(transport, wake))


@contextmanager
def _explained(process: ServerProcess | None) -> Iterator[None]:
    try:
        yield
    except (MCPError, AdapterError, ExceptionGroup) as error:
        cause = first_of(error)
        if process is not None and process.is_over and isinstance(cause, MCPError):
            raise Unreachable(process.why()) from error
        if isinstance(cause, MCPError):
            raise Unreachable(_words(cause)) from error
        if isinstance(cause, AdapterError):
            raise cause from error
        raise


def _definition(tool: types.Tool) -> Definition:
    hints = tool.annotations
    read_only = hints.read_only_hint if hints else None
    destroys = bool(hints and hints.destructive_hint) and read_only is not True
    return Definition(
        tool.name,
        tool.description or "",
        tool.input_schema,
        says_it_writes=read_only is False or destroys,
    )


@asynccontextmanager
async def _with_readable_tools(transport: Any) -> AsyncIterator[tuple[Any, Any]]:
    async with transport as (inner, writing), anyio.create_task_group() as group:
        outgoing, reading = anyio.create_memory_object_stream[SessionMessage | Exception](0)

        async def forward() -> None:
            async with outgoing:
                with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
                    async for message in inner:
                        await outgoing.send(_readable(message))

        group.start_soon(forward)
        try:
            yield reading, writing
        finally:
            group.cancel_scope.cancel()
            reading.close()


def _readable(message: SessionMessage | Exception) -> SessionMessage | Exception:
    """A list of tools without invalid entries; any other message stays unchanged.

    A cursor that is a number becomes text; any other that is not text is left out.
    """
    answer = message.message if isinstance(message, SessionMessage) else None
    if not isinstance(answer, types.JSONRPCResponse) or "tools" not in answer.result:
        return message
    listed = [] if answer.result["tools"] is None else answer.result["tools"]
    if not isinstance(listed, list):
        return message
    kept = [tool for tool in listed if _is_tool(tool)] or listed
    if len(kept) < len(listed):
        _log.warning("mcp.unreadable_tools", count=len(listed) - len(kept))
    cursor = answer.result.get("nextCursor")
    if type(cursor) is int:
        cursor = str(cursor)
    result = {**answer.result, "tools": kept}
    result["nextCursor"] = cursor if isinstance(cursor, str) else None
    return SessionMessage(answer.model_copy(update={"result": result}))


def _is_tool(entry: object) -> bool:
    try:
        schema = _TOOL.validate_python(entry, by_name=False).input_schema
    except ValidationError:
        return False
    return schema.get("type") == "object"


@asynccontextmanager
async def _connected(
    transport: Any, wake: asyncio.Event, process: ServerProcess | None = None
) -> AsyncIterator[SdkConnection]:
    async def heard(message: IncomingMessage) -> None:
        if isinstance(message, types.ToolListChangedNotification):
            wake.set()

    client = Client(
        _with_readable_tools(transport),
        read_timeout_seconds=REQUEST_S,
        message_handler=heard,
        client_info=_OURS,
        cache=None,
    )
    async with client:
        yield SdkConnection(client, wake, process)
