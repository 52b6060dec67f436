"""The deploys of a case."""

from collections.abc import Sequence

from tools.capabilities import Deploy, Interval


class PackedDeploys:
    """What was deployed, as the case's source recorded it."""

    def __init__(self, deploys: Sequence[Deploy]) -> None:
        self._deploys = sorted(deploys, key=lambda one: one.at, reverse=True)

    async def between(self, product: str, interval: Interval) -> Sequence[Deploy]:
        """Newest first. A product without deploys has none."""
        return [
            one
            for one in self._deploys
            if product in {"*", one.product} and interval.start <= one.at < interval.end
        ]
