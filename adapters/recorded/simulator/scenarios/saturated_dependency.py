"""A batch job holds payments-db's connections: payments waits, and checkout waits for payments.

Misleading: inventory shouts about its cache, as it has all day. Nothing relevant was deployed.
"""

from datetime import datetime, timedelta

from adapters.recorded.simulator.scenario import Chronic, Fault, OneLine, Scenario, Truth, deployed
from tools.capabilities import Deploy


def build(anchor: datetime) -> Scenario:
    """The incident 40 minutes after the batch job started."""
    started_at = anchor - timedelta(minutes=40)
    return Scenario(
        name="saturated-dependency",
        channel="incident-payments",
        products=("payments", "payments-db", "checkout", "inventory", "gateway"),
        truth=Truth("saturation", "payments-db", started_at, ("inventory",)),
        fault=Fault(
            "payments-db",
            started_at,
            ramp_s=300.0,  # the job opens its connections one by one
            added_self_ms=640.0,
            added_error_ratio=0.035,
            added_cpu_ratio=0.08,
            connections_ratio=0.99,
            timeout_ms=3000.0,
            error_text="timeout: no server connection available from pool payments within 3000 ms",
            wait_operation="wait for pooled connection",
        ),
        deploys=_deploys(anchor),
        chronic=(*_inventory_noise(), *_pool_lines(started_at)),
        lines=(
            OneLine(
                "payments-db",
                "info",
                started_at,
                "connection authorized: user=recon application_name=reconciliation-batch",
            ),
            OneLine(
                "payments-db",
                "info",
                started_at + timedelta(seconds=42),
                "reconciliation-batch: settlement scan started, 90 days, 34 workers",
            ),
        ),
    )


def _inventory_noise() -> tuple[Chronic, ...]:
    return (
        Chronic("inventory", "error", 8.0, "CACHE TIMEOUT!!! redis stock:{id} after {n} ms"),
        Chronic("inventory", "warn", 2.0, "falling back to stock table for sku {id}"),
    )


def _pool_lines(started_at: datetime) -> tuple[Chronic, ...]:
    return (
        Chronic(
            "checkout",
            "error",
            0.8,
            "payments: authorization timed out after 3000 ms, order={id} left pending",
            since=started_at + timedelta(minutes=4),
        ),
        Chronic(
            "payments",
            "error",
            3.0,
            "connection pool payments-db: none available after 3000 ms (total=40 active=40 idle=0)",
            since=started_at + timedelta(minutes=3),
        ),
        Chronic(
            "payments-db",
            "warn",
            2.0,
            "39 of 40 connections in use: reconciliation-batch 34, payments-api 5; {n} waiting",
            since=started_at + timedelta(minutes=2),
        ),
        Chronic(
            "payments-db",
            "warn",
            0.6,
            "transaction open for {n}s: pid {id} application_name=reconciliation-batch "
            "state='idle in transaction'",
            since=started_at + timedelta(minutes=8),
        ),
    )


def _deploys(anchor: datetime) -> tuple[Deploy, ...]:
    def ago(hours: int, minutes: int) -> datetime:
        return anchor - timedelta(hours=hours, minutes=minutes)

    return (
        deployed("inventory", "v3.2.0", "v3.1.9", ago(18, 5), "ci", "5d81f6c", 88.0),
        deployed("web", "v5.31.2", "v5.31.1", ago(21, 30), "ci", "0b6cd52", 102.0),
    )
