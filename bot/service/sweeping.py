"""The clock's part in what is kept for so long, and in what admins are told of the budget."""

from collections.abc import Callable, Mapping, Sequence

from bot.app import Base
from bot.chat.budget_alert import BudgetAlert
from bot.domain.budget import BudgetLimits
from bot.domain.tenancy import HOME
from bot.engine.library import forget_ended
from bot.service.own_audit import audit_of
from bot.service.workspace import SlackWorkspace
from bot.store.ledger import StoredAlertDays, StoredLedger
from bot.store.retention import StoredRetention
from bot.upkeep.jobs import Job
from bot.upkeep.retention import RECORDS_S, SWEEP_S, KeptFor, RecordsSweep, RetentionSweep
from bot.wiring import rules

IDLE_S = 60.0


def retention_jobs(base: Base) -> Mapping[str, Job]:
    """By `[retention]`, and by what privacy asks for."""
    days = base.settings.retention
    nothing = base.settings.llm.privacy.do_not_retain_default
    kept = KeptFor(days.messages_days, days.results_days, nothing)
    return {
        "retention": Job(SWEEP_S, RetentionSweep(StoredRetention(base.stores.database), kept).run),
        "records": Job(RECORDS_S, RecordsSweep(forget_ended, kept).run),
    }


def budget_jobs(
    base: Base, served: Callable[[], Sequence[SlackWorkspace]], tick_s: float
) -> Mapping[str, Job]:
    """Tell admins once a day that money is short, and forget what dead processes held.

    Of the budget of all, home's admins; of a workspace's own, its own.
    """
    ledger = base.stores.ledger

    async def tell() -> None:
        for each in served():
            await _budget_alert(base, each).run()

    return {"budget alert": Job(tick_s, tell), "holds": Job(IDLE_S, ledger.forget_dead)}


def _budget_alert(base: Base, workspace: SlackWorkspace) -> BudgetAlert:
    stores, tenant = base.stores, workspace.tenant
    own = stores.ledger if tenant == HOME else StoredLedger(stores.database, tenant)
    days, audit = StoredAlertDays(stores.database), audit_of(stores.audit, tenant)
    limits, tell = limits_of(base, tenant), workspace.admins.tell
    return BudgetAlert(own, days, audit, limits, tell, tenant)


def limits_of(base: Base, tenant: str) -> BudgetLimits:
    """What its admins are told of: of another workspace its own limit, not that of all."""
    limits = rules.budget_limits(base.settings)
    if tenant == HOME:
        return limits
    return BudgetLimits(base.in_force.daily_usd_micros(tenant), limits.alert_at_pct)
