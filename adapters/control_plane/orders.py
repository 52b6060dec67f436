"""An order as JSON, which executor it goes to, and the one that sends nothing. Pure."""

from collections.abc import Mapping

import orjson
from pydantic import JsonValue

from adapters.control_plane.port import (
    AnswerKind,
    ControlAnswer,
    ControlOrder,
    ControlPlane,
    ExecutorKind,
)


def order_body(order: ControlOrder) -> bytes:
    return orjson.dumps(
        {
            "proposal_id": order.idempotency_key,
            "action": order.action,
            "product": order.product,
            "params": dict(order.params),
            "confirmed_by": order.confirmed_by,
            "dry_run": order.dry_run,
        }
    )


def would_send(order: ControlOrder) -> JsonValue:
    """What a card and an outcome show of a rehearsal."""
    shown: JsonValue = {
        "action": order.action,
        "product": order.product,
        "params": dict(order.params),
    }
    return {"rehearsal": "nothing is sent", "would_send": shown}


class Executors:
    """Implements `ControlPlane` by the kind of the order's endpoint."""

    def __init__(self, by_kind: Mapping[ExecutorKind, ControlPlane]) -> None:
        self._by_kind = dict(by_kind)

    async def send(self, order: ControlOrder) -> ControlAnswer:
        executor = self._by_kind.get(order.endpoint.kind)
        if executor is None:
            return ControlAnswer(AnswerKind.NOT_SENT, "nothing here carries out such an action")
        return await executor.send(order)

    async def ask(self, order: ControlOrder) -> ControlAnswer:
        executor = self._by_kind.get(order.endpoint.kind)
        if executor is None:
            return ControlAnswer(AnswerKind.LOST, "nothing here carries out such an action")
        return await executor.ask(order)


class Rehearsal:
    """Implements `ControlPlane`: the whole path of an order, and nothing at its end."""

    async def send(self, order: ControlOrder) -> ControlAnswer:
        return _rehearsed(order)

    async def ask(self, order: ControlOrder) -> ControlAnswer:
        """As it was answered: nothing was sent then either."""
        return _rehearsed(order)


def _rehearsed(order: ControlOrder) -> ControlAnswer:
    return ControlAnswer(AnswerKind.SUCCEEDED, "rehearsed, nothing sent", None, would_send(order))
