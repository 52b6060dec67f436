"""The order that a stored proposal is, by the catalogue as it is now."""

import orjson

from adapters.control_plane.port import ControlOrder
from bot.actions.catalog import ActionCatalog
from bot.domain.proposal import Proposal
from tools.errors import InvalidArguments


def order_of(catalog: ActionCatalog, row: Proposal) -> ControlOrder | None:
    """None when the action is no longer declared. The key is the proposal's id, always."""
    try:
        rule = catalog.find(row.action, row.product).rule
    except InvalidArguments:
        return None
    return ControlOrder(
        endpoint=rule.endpoint,
        idempotency_key=row.id,
        action=row.action,
        product=row.product,
        params=orjson.loads(row.params),
        confirmed_by=row.decided_by or "",
    )
