"""What went wrong in the simulated shop in the months before, and how it was resolved."""

from datetime import datetime, timedelta

from tools.capabilities import PastIncident

# Days ago, minutes it took, product, severity, title, resolution.
_PAST = (
    (
        34, 41, "checkout", "error", "checkout p99 above 2 s after release v2.2.0",
        "v2.2.0 asked pricing once per cart line instead of in one batch. Rolled back to v2.1.9;"
        " the batch call came back in v2.2.1 with a test that counts calls.",
    ),
    (
        61, 95, "payments-db", "error", "payments failing: connection pool exhausted",
        "A report held 38 of 40 connections of payments-db. The report was stopped and moved to"
        " the replica; pool use is now alerted at 80 %.",
    ),
    (
        78, 22, "recommendations", "warn", "recommendations slow after a model update",
        "The new model missed its feature cache. Warmed the cache; no customer impact.",
    ),
    (
        103, 180, "shipping", "warn", "label requests time out at the carrier",
        "The carrier's own outage. Labels were queued and sent when it came back.",
    ),
    (
        139, 33, "gateway", "error", "gateway 503 during a certificate renewal",
        "The renewed certificate was not reloaded on one of three hosts. Reloaded it.",
    ),
)  # fmt: skip


def past_incidents(anchor: datetime) -> tuple[PastIncident, ...]:
    """The newest first."""
    return tuple(
        PastIncident(
            id=f"shop:INC-{240 - number}",
            title=title,
            opened_at=(opened := anchor - timedelta(days=days, minutes=17)),
            closed_at=opened + timedelta(minutes=minutes),
            product=product,
            severity=severity,
            resolution=resolution,
        )
        for number, (days, minutes, product, severity, title, resolution) in enumerate(_PAST)
    )
