"""The demo's incidents: one set of capabilities per scenario, opened when first asked for."""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Final

from adapters.observe.cursor import CursorCodec
from adapters.recorded.observability import Recorded, recorded
from adapters.recorded.simulator.dataset import Dataset, floored_to_minute
from adapters.recorded.simulator.scenario import Scenario
from adapters.recorded.simulator.scenarios import bad_deploy, quiet_day, saturated_dependency
from tools.capabilities import Clock

# Each takes the anchor: the instant at which people begin to ask.
INCIDENTS: Final[Mapping[str, Callable[[datetime], Scenario]]] = {
    "bad-deploy": bad_deploy.build,
    "saturated-dependency": saturated_dependency.build,
    "quiet-day": quiet_day.build,
}


_SEED = 20_261_121


class RecordedIncidents:
    """All scenarios around one anchor (default: now, floored to the minute)."""

    def __init__(
        self,
        clock: Clock,
        codec: CursorCodec,
        anchor: datetime | None = None,
        seed: int = _SEED,
    ) -> None:
        self.anchor = floored_to_minute(anchor or clock.now())
        self.scenarios: Mapping[str, Scenario] = {
            name: build(self.anchor) for name, build in INCIDENTS.items()
        }
        self._clock = clock
        self._codec = codec
        self._seed = seed
        self._opened: dict[str, Recorded] = {}

    def of(self, name: str) -> Recorded:
        """The capabilities of a scenario. Raises KeyError for a name that is no scenario."""
        if name not in self._opened:
            dataset = Dataset(self.scenarios[name], self.anchor, self._seed)
            self._opened[name] = recorded(dataset, self._clock, self._codec)
        return self._opened[name]

    def name_in(self, channel: str) -> str | None:
        """The scenario that plays in a channel, None when none does."""
        plain = channel.lstrip("#")
        return next((n for n, each in self.scenarios.items() if each.channel == plain), None)
