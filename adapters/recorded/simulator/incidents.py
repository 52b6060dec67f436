"""The catalogue of simulated incidents."""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Final

from adapters.recorded.simulator.scenario import Scenario
from adapters.recorded.simulator.scenarios import bad_deploy, quiet_day, saturated_dependency

# Each takes the anchor: the instant at which people begin to ask.
INCIDENTS: Final[Mapping[str, Callable[[datetime], Scenario]]] = {
    "bad-deploy": bad_deploy.build,
    "saturated-dependency": saturated_dependency.build,
    "quiet-day": quiet_day.build,
}
