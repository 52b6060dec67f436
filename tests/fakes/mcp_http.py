"""An MCP server over HTTP that answers JSON, and misbehaves when a test says so."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

TOKEN = "mcp-http-token-4Xw91KtRz8"
TOOL: dict[str, Any] = {
    "name": "find",
    "description": "Find runbooks.",
    "inputSchema": {"type": "object", "properties": {"q": {"type": "string"}}},
}


@dataclass
class McpHttp:
    """Speaks the protocol of 2025-06-18 over streamable HTTP."""

    instead: Callable[[str], web.StreamResponse | None] = lambda _method: None
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
        result = self._result(method)
        if result is None:
            error = {"code": -32601, "message": "no such method"}
            return web.json_response({"jsonrpc": "2.0", "id": message["id"], "error": error})
        return web.json_response({"jsonrpc": "2.0", "id": message["id"], "result": result})

    def _result(self, method: str) -> dict[str, Any] | None:
        return {
            "initialize": {
                "protocolVersion": "2025-06-18",
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "runbooks", "version": "7"},
            },
            "tools/list": {"tools": [TOOL]},
            "tools/call": {"content": [{"type": "text", "text": "Restart it."}]},
        }.get(method)
