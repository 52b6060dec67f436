"""The budget's day in figures, for `/kortex budget`, `kortex budget` and HTTP."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pydantic import JsonValue

from bot.domain.budget import BudgetLimits, projected_usd_micros
from bot.ports.ledger import Ledger, SpentBy, Today

GROUPS = ("user", "channel", "provider", "session")


@dataclass(frozen=True, slots=True)
class BudgetReport:
    """`by` holds today's totals, the most expensive first, for each of `GROUPS`."""

    today: Today
    limits: BudgetLimits
    by: Mapping[str, Sequence[SpentBy]]

    @property
    def projected_usd_micros(self) -> int:
        """Where the day ends if it goes on as it began."""
        return projected_usd_micros(self.today.used_usd_micros, self.today.elapsed_s)

    @property
    def used_pct(self) -> int | None:
        """Of the daily limit; None without one."""
        limit = self.limits.daily_usd_micros
        return 100 * self.today.used_usd_micros // limit if limit else None

    def as_json(self) -> dict[str, JsonValue]:
        """Whole micro-dollars; a limit of 0 means no limit."""
        today, limits = self.today, self.limits
        return {
            "at": today.at.isoformat(),
            "spent_usd_micros": today.spent_usd_micros,
            "used_usd_micros": today.used_usd_micros,
            "held_usd_micros": today.held_usd_micros,
            "projected_usd_micros": self.projected_usd_micros,
            "limits": {
                "daily_usd_micros": limits.daily_usd_micros,
                "per_user_hourly_questions": limits.user_hourly_questions,
                "per_session_tokens": limits.session_tokens,
                "alert_at_pct": limits.alert_at_pct,
            },
            "by": {group: [row.as_json() for row in rows] for group, rows in self.by.items()},
        }


async def budget_report(ledger: Ledger, limits: BudgetLimits) -> BudgetReport:
    """Read it now. Raises StorageUnavailable."""
    by = {group: await ledger.report(None, group) for group in GROUPS}
    return BudgetReport(await ledger.today(), limits, by)
