"""How an incident goes on after a rollback: another deploy, and the end of what its release broke."""

from dataclasses import replace
from datetime import datetime
from typing import Final

from adapters.recorded.simulator.loglines import versions_at
from adapters.recorded.simulator.scenario import OneLine, Scenario
from tools.capabilities import Deploy

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
