"""The current state as gauges, which event counts cannot show.

An unreadable value is absent rather than stale: an alert on a frozen level would never fire.
"""

from collections.abc import Mapping
from typing import Final

from prometheus_client import CollectorRegistry, Gauge, Histogram

# Seconds. A statement takes well under 10 ms; a transaction is given up after 15 s.
DATABASE_BUCKETS_S: Final = (0.001, 0.005, 0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 15.0)


class Levels:
    """In the registry of the process's other metrics. Every label's values are configured or ours."""

    def __init__(self, registry: CollectorRegistry) -> None:
        def gauge(name: str, documentation: str, *labels: str) -> Gauge:
            return Gauge(f"kortex_{name}", documentation, labels, registry=registry)

        self._providers = gauge(
            "provider_available", "Whether a provider is available.", "provider"
        )
        self._budget = gauge(
            "budget_used_ratio", "Share of the daily limit, reservations included."
        )
        self._behind = gauge("audit_behind_rows", "Rows not yet delivered to a sink.", "sink")
        self._behind_seconds = gauge(
            "audit_behind_seconds", "Age of the oldest of these rows.", "sink"
        )
        self._stuck = gauge(
            "proposal_stuck_seconds",
            "Age of the oldest one in its state.",
            "state",
        )
        self._slack_refused = gauge("slack_token_refused", "Whether Slack rejects the bot's token.")
        # With a label: without one it would read 0 where nothing connects.
        self._slack_connected = gauge(
            "slack_connected", "Whether the connection to Slack is up, if there is one.", "mode"
        )
        self._database_up = gauge("database_up", "Whether the database answered the last check.")
        self._database_seconds = Histogram(
            "kortex_database_seconds",
            "Duration of a periodic transaction that changes nothing.",
            registry=registry,
            buckets=DATABASE_BUCKETS_S,
        )

    def providers(self, available: Mapping[str, bool]) -> None:
        """The configured ones in the order."""
        self._providers.clear()
        for name, is_so in available.items():
            self._providers.labels(name).set(is_so)

    def slack_refused(self, is_so: bool) -> None:
        """By the last call."""
        self._slack_refused.set(is_so)

    def slack_connected(self, is_so: bool) -> None:
        """In Socket Mode, which alone keeps a connection."""
        self._slack_connected.labels("socket").set(is_so)

    def slack_connection_lost(self) -> None:
        """The connection's state is unknown."""
        self._slack_connected.clear()

    def database_answered(self, seconds: float) -> None:
        self._database_up.set(1)
        self._database_seconds.observe(seconds)

    def database_lost(self) -> None:
        """Nothing that is read from it is known any more."""
        self._database_up.set(0)
        for each in (self._behind, self._behind_seconds, self._stuck):
            each.clear()
        self._budget.set(float("nan"))

    def budget_used(self, ratio: float) -> None:
        """0 without a limit."""
        self._budget.set(ratio)

    def audit_behind(self, sink: str, rows: int, seconds: float) -> None:
        self._behind.labels(sink).set(rows)
        self._behind_seconds.labels(sink).set(seconds)

    def proposals_stuck(self, seconds: Mapping[str, float]) -> None:
        """By state; 0 without one."""
        for state, age_s in seconds.items():
            self._stuck.labels(state).set(age_s)
