"""The demo's incidents: one set of backends per scenario, opened when first asked for.

They do not age between questions, and they go on after a rollback.
"""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

from adapters.observe.cursor import CursorCodec
from adapters.recorded.simulator.backends import SimulatedBackends, simulated
from adapters.recorded.simulator.dataset import Dataset, floored_to_minute
from adapters.recorded.simulator.loglines import versions_at
from adapters.recorded.simulator.scenario import INCIDENTS, OneLine, Scenario
from tools.capabilities import Clock, Deploy

_SEED = 20_261_121
# Longer than a card is open: an incident with an open decision does not restart.
REST: Final = timedelta(minutes=15)


class RecordedIncidents:
    """All scenarios around one anchor (default: now, floored to the minute)."""

    def __init__(
        self, clock: Clock, codec: CursorCodec, anchor: datetime | None = None, seed: int = _SEED
    ) -> None:
        self.anchor = floored_to_minute(anchor or clock.now())
        self.scenarios: dict[str, Scenario] = {
            name: build(self.anchor) for name, build in INCIDENTS.items()
        }
        self._clock = clock
        self._codec = codec
        self._seed = seed
        self._opened: dict[str, SimulatedBackends] = {}
        self._looked = dict.fromkeys(INCIDENTS, self.anchor)
        self._touched: set[str] = set()

    def of(self, name: str) -> SimulatedBackends:
        """The capabilities of a scenario. Raises KeyError for a name that is no scenario."""
        if name not in self._opened:
            dataset = Dataset(self.scenarios[name], self.anchor, self._seed)
            self._opened[name] = simulated(dataset, self._clock, self._codec)
        return self._opened[name]

    def look(self, name: str) -> SimulatedBackends:
        """As `of`, for a question of now. After a pause the incident starts again at its first minute.

        After a rollback it goes on instead: a cured service stays cured.
        """
        now = self._clock.now()
        rested = now - self._looked[name] >= REST
        self._looked[name] = now
        opened = self.of(name)
        if rested:
            if name not in self._touched:
                self.scenarios[name] = INCIDENTS[name](floored_to_minute(now))
            opened.dataset.play(self.scenarios[name], floored_to_minute(now))
        return opened

    def running(self) -> Mapping[str, tuple[str, str]]:
        """Product → (running version, previous version), of every deployed product."""
        deploys = [each for one in self.scenarios.values() for each in one.deploys]
        deploys.sort(key=lambda deploy: deploy.at)
        return {each.product: (each.version, each.previous_version) for each in deploys}

    def rolled_back(self, product: str, version: str, before: str) -> None:
        """Record that a product went from `before` to `version` now, in each scenario that ran `before`."""
        now = self._clock.now()
        for name, scenario in self.scenarios.items():
            goes_on = rolled_back(scenario, product, version, before, now)
            if goes_on is None:
                continue
            self._touched.add(name)
            self.scenarios[name] = goes_on
            if name in self._opened:
                dataset = self._opened[name].dataset
                dataset.play(goes_on, dataset.anchor)

    def name_in(self, channel: str) -> str | None:
        """The scenario that plays in a channel, None when none does."""
        plain = channel.lstrip("#")
        return next((n for n, each in self.scenarios.items() if each.channel == plain), None)


TOOK_S: Final = 41.0


def rolled_back(
    scenario: Scenario, product: str, version: str, before: str, at: datetime
) -> Scenario | None:
    """The scenario from `at` on; None where that product was not running `before`."""
    if versions_at(scenario, at.timestamp()).get(product) != before:
        return None
    deploy = Deploy(
        product, version, at, actor="kortex", previous_version=before, duration_s=TOOK_S
    )
    line = OneLine(product, "info", at, f"starting {product} {version} (was {before})")
    goes_on = replace(scenario, deploys=(deploy, *scenario.deploys), lines=(*scenario.lines, line))
    return _cured(goes_on, before, at) if product == scenario.truth.culprit else goes_on


def _cured(scenario: Scenario, before: str, at: datetime) -> Scenario:
    """Without the fault from `at` on, if it came with the release that is gone."""
    truth, fault = scenario.truth, scenario.fault
    released = {(each.product, each.version, each.at) for each in scenario.deploys}
    if fault is None or (truth.culprit, before, truth.since) not in released:
        return scenario
    return replace(
        scenario,
        fault=replace(fault, ended_at=at),
        chronic=tuple(
            replace(one, until=at) if one.since is not None else one for one in scenario.chronic
        ),
    )
