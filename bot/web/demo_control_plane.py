"""A control plane for the demo shop, on loopback: idempotent by key, it only remembers.

It shows what a real one has to do: carry out an order once per key, answer a repeat with the first
answer, and tell by key what became of an order.
"""

import hmac
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from aiohttp import web
from pydantic import BaseModel, ConfigDict, JsonValue, ValidationError

MAX_BODY_BYTES: Final = 65_536
MAX_KEPT: Final = 1_000
OPERATIONS_PATH: Final = "/operations"


class _Order(BaseModel):
    """The body of an order."""

    model_config = ConfigDict(extra="ignore")

    proposal_id: str
    action: str
    product: str
    params: dict[str, JsonValue]
    confirmed_by: str
    dry_run: bool = False


@dataclass(slots=True)
class _Shop:
    """What was ordered, by key. `versions` is product → (running, previous)."""

    token: str
    versions: dict[str, tuple[str, str]]
    answers: dict[str, dict[str, JsonValue]] = field(default_factory=dict)

    def carry_out(self, key: str, order: _Order) -> dict[str, JsonValue]:
        """Once per key; the oldest keys are forgotten."""
        if key not in self.answers:
            if len(self.answers) >= MAX_KEPT:
                del self.answers[next(iter(self.answers))]
            self.answers[key] = self._effect(order)
        return self.answers[key]

    def _effect(self, order: _Order) -> dict[str, JsonValue]:
        running, previous = self.versions.get(order.product, ("current", "previous"))
        if order.action != "rollback-deploy":
            return {"status": "done", "action": order.action, "product": order.product}
        target = str(order.params.get("version") or previous)
        if not order.dry_run:
            self.versions[order.product] = (target, running)
        return {"status": "rolled back", "product": order.product, "from": running, "to": target}


def create_control_plane(
    token: str, versions: Mapping[str, tuple[str, str]] | None = None
) -> web.Application:
    """`POST /products/{product}/{action}` and `GET /operations?idempotency_key=…`, with a token.

    `versions` is product → (running, previous), for the demo's rollbacks to be told in.
    """
    shop = _Shop(token, dict(versions or {}))

    async def order(request: web.Request) -> web.Response:
        key = request.headers.get("Idempotency-Key", "")
        if not _allowed(request, shop.token):
            return web.json_response({"error": "unauthorized"}, status=401)
        try:
            wanted = _Order.model_validate_json(await request.read())
        except ValidationError:
            return web.json_response({"error": "not an order"}, status=400)
        if not key or wanted.product != request.match_info["product"]:
            return web.json_response({"error": "key or product does not fit"}, status=400)
        return web.json_response(shop.carry_out(key, wanted))

    async def became(request: web.Request) -> web.Response:
        if not _allowed(request, shop.token):
            return web.json_response({"error": "unauthorized"}, status=401)
        answer = shop.answers.get(request.query.get("idempotency_key", ""))
        if answer is None:
            return web.json_response({"state": "not_received"}, status=404)
        return web.json_response({"state": "succeeded", "result": answer})

    app = web.Application(client_max_size=MAX_BODY_BYTES)
    app.router.add_post("/products/{product}/{action}", order)
    app.router.add_get(OPERATIONS_PATH, became)
    return app


def _allowed(request: web.Request, token: str) -> bool:
    given = request.headers.get("Authorization", "")
    return hmac.compare_digest(given.encode(), f"Bearer {token}".encode())
