"""An order as JSON: what a control plane reads, and what a rehearsal shows. Pure."""

import orjson
from pydantic import JsonValue

from adapters.control_plane.port import ControlOrder


def order_body(order: ControlOrder) -> bytes:
    """The order as the control plane reads it."""
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
