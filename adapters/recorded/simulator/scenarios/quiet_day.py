"""Nothing is wrong: ordinary noise, a release five hours ago that changed nothing, a few old errors."""

from datetime import datetime, timedelta

from adapters.recorded.simulator.scenario import Chronic, OneLine, Scenario, Truth, deployed


def build(anchor: datetime) -> Scenario:
    deployed_at = anchor - timedelta(hours=5)
    return Scenario(
        name="quiet-day",
        channel="incident-quiet",
        products=("checkout", "shipping", "payments", "inventory", "web"),
        truth=Truth("nothing", "", None, ("shipping", "inventory")),
        fault=None,
        deploys=(deployed("shipping", "v2.0.8", "v2.0.7", deployed_at, "ana", "e1f7a40", 66.0),),
        chronic=(
            Chronic("inventory", "error", 0.4, "cache timeout redis stock:{id} after {n} ms"),
            Chronic("checkout", "warn", 0.5, "coupon {id} is no longer valid"),
            Chronic("checkout", "error", 0.04, "address service answered 502, retried order={id}"),
        ),
        lines=(OneLine("shipping", "info", deployed_at, "starting shipping v2.0.8 (was v2.0.7)"),),
    )
