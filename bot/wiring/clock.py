"""The system's clock."""

from datetime import UTC, datetime


class SystemClock:
    """Wall time in UTC. Expiry and budgets are judged by the database's clock, not by this one."""

    def now(self) -> datetime:
        """The time now, aware, in UTC."""
        return datetime.now(UTC)
