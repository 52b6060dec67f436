"""What the simulated shop's services say of themselves."""

import hashlib

from pydantic import JsonValue

from adapters.recorded.simulator.dataset import Dataset
from adapters.recorded.simulator.topology import BY_NAME
from tools.capabilities import CallContext, Clock
from tools.errors import InvalidArguments


class RecordedAdminInfo:
    """`/admin/info` of one incident: every service is up, whatever it is slow at."""

    def __init__(self, dataset: Dataset, clock: Clock) -> None:
        self._dataset = dataset
        self._clock = clock

    async def info(self, product: str, call: CallContext) -> dict[str, JsonValue]:
        """Raises InvalidArguments (no such product)."""
        del call
        if product not in BY_NAME:
            raise InvalidArguments(f"product: the control plane knows no {product!r}")
        now = self._clock.now()
        done = [d for d in self._dataset.scenario.deploys if d.product == product and d.at <= now]
        newest = max(done, key=lambda deploy: deploy.at, default=None)
        version = newest.version if newest else BY_NAME[product].version
        since = newest.at if newest else self._dataset.start
        build: dict[str, JsonValue] = {"commit": newest.commit} if newest else {}
        return {
            "product": product,
            "version": version,
            "uptime_s": int((now - since).total_seconds()),
            "health": "ok",
            "build": build,
            "config_hash": hashlib.sha256(f"{product} {version}".encode()).hexdigest()[:12],
            "feature_flags": {},
        }
