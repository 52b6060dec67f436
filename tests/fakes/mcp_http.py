"""An MCP server over HTTP that answers JSON, and misbehaves when a test says so."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

TOKEN = "mcp-http-token-4Xw91KtRz8"
TOOL: dict[str, Any] = {
    "name": "find",
    "description": "Find runbooks.",
    "inputSchema": {"type": "object", "properties": {"product": {"type": "string"}}},
}


@dataclass
class McpHttp:
    """Speaks the protocol of 2025-06-18 over streamable HTTP."""

    instead: Callable[[str], web.StreamResponse | None] = lambda _method: None
    tool: Mapping[str, Any] = field(default_factory=lambda: TOOL)
    answer: Callable[[Mapping[str, Any]], str] = lambda _arguments: "Restart it."
    # A list of tools, by its cursor; None refuses the cursor.
    pages: Callable[[str], Mapping[str, Any] | None] | None = None
    asked: list[tuple[str, str]] = field(default_factory=list)

    async def handle(self, request: web.Request) -> web.StreamResponse:
        if request.method != "POST":
            return web.Response(status=405)
        message = await request.json()
        method = message["method"]
        self.asked.append((method, request.headers.get("Authorization", "")))
        if (other := self.instead(method)) is not None:
            return other
        if "id" not in message:
            return web.Response(status=202)
        result = self._result(method, message.get("params", {}))
        if result is None:
            code = -32602 if method == "tools/list" else -32601
            error = {"code": code, "message": "no such method, or no such cursor"}
            return web.json_response({"jsonrpc": "2.0", "id": message["id"], "error": error})
        return web.json_response({"jsonrpc": "2.0", "id": message["id"], "result": result})

    def _result(self, method: str, params: Mapping[str, Any]) -> dict[str, Any] | None:
        match method:
            case "initialize":
                return {
                    "protocolVersion": "2025-06-18",
                    "capabilities": {"tools": {}},
                    "serverInfo": {"name": "runbooks", "version": "7"},
                }
            case "tools/list":
                if self.pages is not None:
                    page = self.pages(params.get("cursor", ""))
                    return None if page is None else dict(page)
                return {"tools": [self.tool]}
            case "tools/call":
                text = self.answer(params["arguments"])
                return {"content": [{"type": "text", "text": text}]}
            case _:
                return None
