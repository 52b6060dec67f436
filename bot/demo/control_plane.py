"""A control plane for the demo shop, on loopback.

It shows the duties of a real one: carry out an order once per key, answer a repeat with the first
answer, report an order's outcome by key. A read token can read targets and order dry runs only. The
simulated shop hears of each rollback.
"""

import hashlib
import hmac
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from aiohttp import web
from pydantic import BaseModel, ConfigDict, JsonValue, ValidationError

MAX_BODY_BYTES: Final = 65_536
MAX_KEPT: Final = 1_000
OPERATIONS_PATH: Final = "/operations"
INFO_PATH: Final = "/products/{product}/info"
TARGETS_PATH: Final = "/products/{product}/targets"


class _Order(BaseModel):
    model_config = ConfigDict(extra="ignore")

    proposal_id: str
    action: str
    product: str
    params: dict[str, JsonValue]
    confirmed_by: str
    dry_run: bool = False


# Product, the version that runs now, the one that ran before.
RolledBack = Callable[[str, str, str], None]

_UNKNOWN: Final = ("current", "previous")


@dataclass(slots=True)
class _Shop:
    token: str
    read_token: str
    versions: dict[str, tuple[str, str]]
    hosts: Mapping[str, Sequence[str]]
    tell: RolledBack
    answers: dict[str, dict[str, JsonValue]] = field(default_factory=dict)

    async def take_order(self, request: web.Request) -> web.Response:
        key = request.headers.get("Idempotency-Key", "")
        try:
            wanted = _Order.model_validate_json(await request.read())
        except ValidationError:
            return web.json_response({"error": "not an order"}, status=400)
        check_token(request, self.read_token if wanted.dry_run else self.token)
        if not key or wanted.product != request.match_info["product"]:
            return web.json_response({"error": "key or product does not fit"}, status=400)
        if wanted.dry_run:
            return web.json_response({"preview": self._preview(wanted)})
        if key not in self.answers:
            if len(self.answers) >= MAX_KEPT:
                del self.answers[next(iter(self.answers))]
            self.answers[key] = self._effect(wanted)
        return web.json_response(self.answers[key])

    async def outcome(self, request: web.Request) -> web.Response:
        check_token(request, self.token)
        answer = self.answers.get(request.query.get("idempotency_key", ""))
        if answer is None:
            return web.json_response({"state": "not_received"}, status=404)
        return web.json_response({"state": "succeeded", "result": answer})

    async def info(self, request: web.Request) -> web.Response:
        """What runs; its hash changes with every version."""
        check_token(request, self.read_token)
        running, _previous = self.versions.get(request.match_info["product"], _UNKNOWN)
        config_hash = hashlib.sha256(running.encode()).hexdigest()[:12]
        return web.json_response({"version": running, "config_hash": config_hash})

    async def targets(self, request: web.Request) -> web.Response:
        check_token(request, self.read_token)
        objects = self.hosts.get(request.match_info["product"], ())
        return web.json_response({"objects": [*objects]})

    def _preview(self, order: _Order) -> dict[str, JsonValue]:
        hosts: list[JsonValue] = [*self.hosts.get(order.product, ())]
        would: dict[str, JsonValue] = {"product": order.product, "hosts": hosts}
        if order.action == "rollback-deploy":
            running, target = self._rollback(order)
            would |= {"from": running, "to": target}
        return would

    def _rollback(self, order: _Order) -> tuple[str, str]:
        running, previous = self.versions.get(order.product, _UNKNOWN)
        return running, str(order.params.get("version") or previous)

    def _effect(self, order: _Order) -> dict[str, JsonValue]:
        if order.action != "rollback-deploy":
            return {"status": "done", "action": order.action, "product": order.product}
        running, target = self._rollback(order)
        self.versions[order.product] = (target, running)
        self.tell(order.product, target, running)
        return {"status": "rolled back", "product": order.product, "from": running, "to": target}


def create_control_plane(
    token: str,
    versions: Mapping[str, tuple[str, str]] | None = None,
    *,
    read_token: str = "",
    hosts: Mapping[str, Sequence[str]] | None = None,
    tell: RolledBack = lambda _product, _version, _before: None,
) -> web.Application:
    """`POST /products/{product}/{action}` and `GET /operations?idempotency_key=…`, with a token.

    `versions` is product → (running, previous) and changes with rollbacks; `hosts` has the hosts of a
    product. `tell` is called once for each rollback. A `read_token` reads targets and orders dry runs.
    """
    shop = _Shop(token, read_token or token, dict(versions or {}), dict(hosts or {}), tell)
    app = web.Application(client_max_size=MAX_BODY_BYTES)
    app.router.add_post("/products/{product}/{action}", shop.take_order)
    app.router.add_get(OPERATIONS_PATH, shop.outcome)
    app.router.add_get(INFO_PATH, shop.info)
    app.router.add_get(TARGETS_PATH, shop.targets)
    return app


def check_token(request: web.Request, token: str) -> None:
    """Raises HTTPUnauthorized."""
    given = request.headers.get("Authorization", "")
    if not hmac.compare_digest(given.encode(), f"Bearer {token}".encode()):
        words = '{"error": "unauthorized"}'
        raise web.HTTPUnauthorized(text=words, content_type="application/json")
