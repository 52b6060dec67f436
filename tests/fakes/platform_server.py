"""A fake of a developer platform's API. Answers under `/api`, for known tokens."""

from collections.abc import Mapping
from typing import Any

from aiohttp import web

TOKENS = {"token-of-alice-Xy12Zz89Qw": "alice", "token-of-all-Qq55Rr44Tt": "all"}
RESOURCES: list[dict[str, Any]] = [
    {
        "name": "orders-db",
        "type": "postgres",
        "app_name": "checkout",
        "status": "running",
        "properties": {"version": "15.6", "password": "not-for-you", "url": "postgres://u:p@h/d"},
    },
    {"name": "cart-sessions", "type": "redis", "app_name": "cart", "status": "running"},
]
WORKFLOWS = [
    {
        "id": 17,
        "workflow_name": "deploy checkout",
        "application_name": "checkout",
        "status": "completed",
        "started_at": "2026-11-21T13:38:00Z",
        "steps": [{"step_name": "validate", "status": "completed"}],
    },
    {
        "id": 18,
        "name": "clean up",
        "app_name": "cart",
        "status": "failed",
        "started_at": "2026-11-21T13:40:00Z",
        "error_message": "volume is in use",
    },
]
SPECS: Mapping[str, Any] = {
    "checkout": {"environment": "production", "status": "running", "resource_count": 1},
    "cart": {"environment": "production", "status": "running", "resource_count": 1},
}


class PlatformServer:
    """`answer`, when set, is what everything is answered with. Keeps what it was asked with."""

    def __init__(self, answer: tuple[int, str] | None = None, *, keyed: bool = True) -> None:
        self.answer = answer
        self.keyed = keyed
        self.headers: list[Mapping[str, str]] = []
        self.paths: list[str] = []

    def app(self) -> web.Application:
        app = web.Application()
        app.router.add_get("/{path:.*}", self._get)
        return app

    async def _get(self, request: web.Request) -> web.Response:
        self.headers.append(request.headers)
        self.paths.append(request.raw_path)
        if self.answer is not None:
            return web.Response(status=self.answer[0], text=self.answer[1])
        if request.headers.get("Authorization", "").removeprefix("Bearer ") not in TOKENS:
            return web.json_response({"error": "invalid token"}, status=401)
        value = self._value(request.path.removeprefix("/api/"))
        if value is None:
            return web.json_response({"error": "not found", "code": "NOT_FOUND"}, status=404)
        return web.json_response(value)

    def _value(self, path: str) -> Any:
        part, _, name = path.partition("/")
        listed: dict[str, list[dict[str, Any]]] = {"workflows": WORKFLOWS, "resources": RESOURCES}
        match part, name:
            case "specs", "":
                specs = [{"name": name, **one} for name, one in SPECS.items()]
                return SPECS if self.keyed else {"applications": specs}
            case "specs", _ if name in SPECS:
                own = [one for one in RESOURCES if one["app_name"] == name]
                return {**SPECS[name], "score_spec": "env: not-for-you", "resources": own}
            case "workflows", _ if name:
                return next((one for one in WORKFLOWS if str(one["id"]) == name), None)
            case (("workflows" | "resources"), ""):
                return listed[part] if self.keyed else {part: listed[part]}
            case "stats", "":
                return {
                    "total_applications": 2,
                    "running_workflows": 0,
                    "total_resources": 2,
                    "resource_breakdown": {"postgres": 1, "redis": 1},
                }
            case _:
                return None
