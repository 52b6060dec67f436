"""The price table: dates, snapshots, overrides, and unknown staying unknown."""

from datetime import date

import pytest
from pydantic import ValidationError

from adapters.llm.port import Cost, Tier
from adapters.llm.prices import PriceRow, Prices, prices_of


def row(model: str, price: int, since: date = date(2026, 1, 1), tier: Tier = Tier.FAST) -> PriceRow:
    return PriceRow(
        provider="p",
        model=model,
        valid_from=since,
        tier=tier,
        context_tokens=1000,
        input=price,
        cache_read=price // 10,
        cache_write=price,
        output=price * 5,
    )


DATED = Prices([row("m", 3_000_000, date(2026, 9, 1)), row("m", 2_000_000, date(2026, 1, 1))])


@pytest.mark.parametrize(
    ("on", "price"),
    [(date(2026, 8, 31), 2_000_000), (date(2026, 9, 1), 3_000_000), (date(2027, 1, 1), 3_000_000)],
)
def test_the_price_is_the_one_of_the_day(on: date, price: int) -> None:
    cost = DATED.cost("m", on)
    assert cost is not None
    assert cost.input_uncached == price


def test_before_its_first_row_a_model_has_no_price() -> None:
    assert DATED.cost("m", date(2025, 12, 31)) is None


def test_an_unknown_model_has_no_price() -> None:
    assert prices_of("anthropic").cost("claude-unheard-of") is None


@pytest.mark.parametrize("suffix", ["-20251101", "-2025-11-01", "-latest"])
def test_a_snapshot_costs_what_its_model_costs(suffix: str) -> None:
    assert DATED.cost(f"m{suffix}") == DATED.cost("m")


def test_prices_are_micro_dollars_per_million_tokens() -> None:
    assert prices_of("anthropic").cost("claude-opus-5-5") == Cost(
        4_000_000, 200_000, 5_000_000, 20_000_000
    )


def test_an_operators_price_wins_and_may_be_zero() -> None:
    free = {"gpt-4o": {"input": 0, "cache_read": 0, "cache_write": 0, "output": 0}}
    assert prices_of("openai", free).cost("gpt-4o") == Cost(0, 0, 0, 0)


def test_an_override_of_the_wrong_shape_is_refused() -> None:
    with pytest.raises(ValidationError):
        prices_of("openai", {"gpt-4o": {"input": "2.50"}})


def test_configured_models_are_offered_first_and_once() -> None:
    models = DATED.models(("own-model", "m", ""), 5000)
    assert [(model.id, model.context_tokens) for model in models] == [
        ("own-model", 5000),
        ("m", 1000),
    ]


@pytest.mark.parametrize("provider", ["anthropic", "openai"])
def test_every_shipped_vendor_has_a_model_of_each_tier(provider: str) -> None:
    assert {model.tier for model in prices_of(provider).models((), 1)} == set(Tier)
