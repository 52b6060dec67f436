"""Spending, in integer micro-dollars and tokens. Arithmetic only; prices come from a table."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class BudgetLimits:
    """0 means no limit. `alert_at_pct` of the daily limit."""

    daily_usd_micros: int = 0
    alert_at_pct: int = 80


@dataclass(frozen=True, slots=True)
class Price:
    """Micro-dollars per million tokens, by bucket."""

    input_uncached: int
    cache_read: int
    cache_write: int
    output: int


def cost_usd_micros(
    price: Price, *, input_uncached: int, cache_read: int, cache_write: int, output: int
) -> int:
    """What a round costs, rounded up so that many small rounds never sum to less than the bill."""
    total = (
        price.input_uncached * input_uncached
        + price.cache_read * cache_read
        + price.cache_write * cache_write
        + price.output * output
    )
    return -(-total // 1_000_000)


def may_spend(limits: BudgetLimits, spent_usd_micros: int) -> bool:
    """Whether a new round may start today."""
    return limits.daily_usd_micros == 0 or spent_usd_micros < limits.daily_usd_micros
