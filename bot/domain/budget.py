"""Spending, in integer micro-dollars and tokens. Arithmetic only; prices come from a table."""

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from adapters.llm.port import Price

NO_MODEL: Final = "triage"  # the provider that is no model: no limit holds for it
DAY_S: Final = 86_400


class Limit(StrEnum):
    """Which limit did not allow a round."""

    DAILY = "daily"
    WORKSPACE = "workspace"
    CHANNEL = "channel"
    USER = "user"
    SESSION = "session"


@dataclass(frozen=True, slots=True)
class BudgetLimits:
    """0 means no limit. Days and hours are UTC, by the database's clock.

    `alert_at_pct` is of the daily limit. `channel_daily_usd_micros` is the limit of the channel in
    question, `workspace_daily_usd_micros` of the workspace, if it is not home.
    """

    daily_usd_micros: int = 0
    alert_at_pct: int = 80
    user_hourly_questions: int = 0
    session_tokens: int = 0
    channel_daily_usd_micros: int = 0
    workspace_daily_usd_micros: int = 0

    @property
    def any_set(self) -> bool:
        """Whether there is anything to hold rounds to."""
        return bool(
            self.daily_usd_micros
            or self.user_hourly_questions
            or self.session_tokens
            or self.channel_daily_usd_micros
            or self.workspace_daily_usd_micros
        )

    def for_channel(self, daily_usd_micros: int) -> "BudgetLimits":
        return replace(self, channel_daily_usd_micros=daily_usd_micros)


@dataclass(frozen=True, slots=True)
class Refusal:
    """A limit that one more round would pass.

    Amounts as that limit counts: micro-dollars, questions, tokens. `held` is what rounds under way
    may still cost.
    """

    limit: Limit
    most: int
    spent: int
    held: int
    wanted: int


# The assumed cost of a model without a known price, for checks of limits: the highest list price of
# all. It is never reported as spending.
ASSUMED_PRICE: Final = Price(11_000_000, 1_100_000, 13_750_000, 55_000_000)


def projected_usd_micros(spent_usd_micros: int, elapsed_s: float) -> int:
    """Where the day ends if it goes on as it began."""
    return round(spent_usd_micros * DAY_S / max(elapsed_s, 1.0))


def is_alert_due(limits: BudgetLimits, used_usd_micros: int) -> bool:
    limit = limits.daily_usd_micros
    return limit > 0 and used_usd_micros * 100 >= limit * limits.alert_at_pct


def refusal_words(refusal: Refusal) -> str:
    """The message about the limit reached, and when it ends."""
    if refusal.limit is Limit.USER:
        return (
            f"you asked {refusal.most} question{'' if refusal.most == 1 else 's'} this hour, the "
            "limit for one person; ask again at the next full hour"
        )
    whose, amount, end = _NAMED[refusal.limit]
    most, spent = amount(refusal.most), amount(refusal.spent)
    if refusal.spent >= refusal.most:
        return f"{whose} ({most}) is spent; {end}"
    if refusal.spent + refusal.wanted > refusal.most:
        return (
            f"{spent} of {whose} ({most}) is spent, and this round may cost "
            f"{amount(refusal.wanted)}; {end}"
        )
    return (
        f"{spent} of {whose} ({most}) is spent, and {amount(refusal.held)} is reserved for "
        "running answers; ask again when they have ended"
    )


def _tokens(count: int) -> str:
    return f"{count:,} tokens"


def _dollars(usd_micros: int) -> str:
    amount = usd_micros / 1_000_000
    return f"${amount:,.2f}" if amount >= 1 else f"${amount:.4f}"


_AT_MIDNIGHT = "a new budget starts at 00:00 UTC"
_NAMED: Final = {
    Limit.DAILY: ("today's budget", _dollars, _AT_MIDNIGHT),
    Limit.WORKSPACE: ("this workspace's budget for today", _dollars, _AT_MIDNIGHT),
    Limit.CHANNEL: ("this channel's budget for today", _dollars, _AT_MIDNIGHT),
    Limit.SESSION: ("this thread's allowance", _tokens, "a new thread has its own"),
}
