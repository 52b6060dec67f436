"""The declared actions as a capability, so that a model can find what may be proposed."""

from collections.abc import Sequence

from bot.actions.catalog import ActionCatalog
from tools.capabilities import Operation


class OfferedOperations:
    """`tools.capabilities.Operations` over the catalogue. It reads; proposing is another's."""

    def __init__(self, catalog: ActionCatalog) -> None:
        self._catalog = catalog

    def offered(self, product: str) -> Sequence[Operation]:
        """What may be proposed for the product, in the order declared."""
        return [
            Operation(
                name=action.rule.name,
                description=action.rule.description,
                reversible=action.rule.reversible,
                blast_radius=action.rule.blast_radius,
                params_schema=action.rule.params_schema,
            )
            for action in self._catalog.offered(product)
        ]
