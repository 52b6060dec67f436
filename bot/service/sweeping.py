"""The clock's part in what is kept for so long, and in what admins are told of the budget."""

from collections.abc import Mapping

from bot.app import Base
from bot.chat.budget_alert import BudgetAlert
from bot.engine.library import forget_ended
from bot.slack.showing.admins import AdminMessages
from bot.store.ledger import StoredAlertDays
from bot.store.retention import StoredRetention
from bot.upkeep.jobs import Job
from bot.upkeep.retention import KeptFor, RetentionSweep
from bot.wiring import rules

IDLE_S = 60.0


def retention(base: Base) -> RetentionSweep:
    """By `[retention]`, and by what privacy asks for."""
    kept = base.settings.retention
    nothing = base.settings.llm.privacy.do_not_retain_default
    return RetentionSweep(
        StoredRetention(base.stores.database),
        forget_ended,
        KeptFor(kept.messages_days, kept.results_days, nothing),
    )


def budget_jobs(
    base: Base, admins: AdminMessages, tick_s: float
) -> Mapping[str, tuple[float, Job]]:
    """Tell admins once a day that money is short, and forget what dead processes held."""
    settings, stores = base.settings, base.stores
    days = StoredAlertDays(stores.database)
    limits = rules.budget_limits(settings)
    alert = BudgetAlert(stores.ledger, days, stores.audit, limits, admins.tell)
    return {"budget alert": (tick_s, alert.run), "holds": (IDLE_S, stores.ledger.forget_dead)}
