"""The budget's day: its figures for commands and HTTP, and the daily alert to admins."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import structlog
from pydantic import JsonValue

from bot.domain.audit import AuditEvent, AuditKind
from bot.domain.budget import BudgetLimits, is_alert_due, projected_usd_micros
from bot.domain.tenancy import HOME
from bot.ports.audit_log import AuditLog
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


log = structlog.get_logger(__name__)


class AlertDays(Protocol):
    async def claim(self, day: str) -> bool:
        """True if the caller has to send the day's alert."""
        ...

    async def told(self, day: str) -> None: ...


@dataclass(slots=True, eq=False, repr=False)
class BudgetAlert:
    """Alerts admins.

    `tell` returns how many it reached; `tenant` is the workspace with that budget.
    """

    ledger: Ledger
    days: AlertDays
    audit: AuditLog
    limits: BudgetLimits
    tell: Callable[[str], Awaitable[int]]
    tenant: str = HOME

    async def run(self) -> None:
        """Send the alert if it is due. Raises StorageUnavailable."""
        if not self.limits.daily_usd_micros:
            return
        today = await self.ledger.today()
        date = today.at.date().isoformat()
        day = f"{date}:{self.tenant}" if self.tenant else date
        if not is_alert_due(self.limits, today.used_usd_micros) or not await self.days.claim(day):
            return
        reached = await self.tell(alert_text(today, self.limits))
        log.warning("budget_alert", day=day, used=today.used_usd_micros, admins=reached)
        if not reached:
            return  # tried again when the claim has run out
        await self.audit.append(
            AuditEvent(
                AuditKind.BUDGET_ALERT,
                "kortex",
                {"day": date, "used_usd_micros": today.used_usd_micros, "admins": reached},
                key=f"budget.alert:{day}",
            )
        )
        await self.days.told(day)


def alert_text(today: Today, limits: BudgetLimits) -> str:
    used, limit = today.used_usd_micros, limits.daily_usd_micros
    projected = projected_usd_micros(used, today.elapsed_s)
    return (
        f"Today's model budget: ${used / 1_000_000:,.2f} of ${limit / 1_000_000:,.2f} is used "
        f"({100 * used // limit} %). At this rate today will cost ${projected / 1_000_000:,.2f}. "
        "When it is spent, cheaper models and then triage answer until 00:00 UTC. "
        "`/kortex budget` shows who spent it."
    )
