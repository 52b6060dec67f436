"""The price table: dates, snapshots, overrides, and unknown staying unknown."""

from datetime import date

import pytest

from adapters.llm.model_table import ModelOverride, ModelRow, ModelTable, model_table
from adapters.llm.port import Model, Price, Tier


def row(model: str, price: int, since: date = date(2026, 1, 1), tier: Tier = Tier.FAST) -> ModelRow:
    return ModelRow(
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


DATED = ModelTable([row("m", 3_000_000, date(2026, 9, 1)), row("m", 2_000_000, date(2026, 1, 1))])


@pytest.mark.parametrize(
    ("on", "price"),
    [(date(2026, 8, 31), 2_000_000), (date(2026, 9, 1), 3_000_000), (date(2027, 1, 1), 3_000_000)],
)
def test_the_price_is_the_one_of_the_day(on: date, price: int) -> None:
    cost = DATED.price_of("m", on)
    assert cost is not None
    assert cost.input_uncached == price


def test_before_its_first_row_a_model_has_no_price() -> None:
    assert DATED.price_of("m", date(2025, 12, 31)) is None


def test_an_unknown_model_has_no_price() -> None:
    assert model_table("anthropic").price_of("claude-unheard-of") is None


@pytest.mark.parametrize("suffix", ["-20251101", "-2025-11-01", "-latest"])
def test_a_snapshot_costs_what_its_model_costs(suffix: str) -> None:
    assert DATED.price_of(f"m{suffix}") == DATED.price_of("m")


def test_prices_are_micro_dollars_per_million_tokens() -> None:
    assert model_table("anthropic").price_of("claude-opus-5-5") == Price(
        4_000_000, 200_000, 5_000_000, 20_000_000
    )


def test_an_operators_price_wins_and_may_be_zero() -> None:
    free = {"gpt-4o": ModelOverride(price=Price(0, 0, 0, 0))}
    assert model_table("openai", free).price_of("gpt-4o") == Price(0, 0, 0, 0)
    assert model_table("openai", free).price_of("gpt-4o-2024-08-06") == Price(0, 0, 0, 0)


def test_an_operator_may_override_one_field() -> None:
    table = model_table("openai", {"gpt-4o": ModelOverride(context_tokens=64_000)})
    assert table.context_tokens("gpt-4o", 1) == 64_000
    assert table.price_of("gpt-4o") == model_table("openai").price_of("gpt-4o")


def test_an_operators_own_model_is_offered_as_described() -> None:
    own = ModelOverride(context_tokens=32_000, tier=Tier.DEEP, display_name="Ours")
    model = ModelTable([], {"ours-1": own}).models(("ours-1",), 5)[0]
    assert model == Model("ours-1", "Ours", 32_000, Tier.DEEP)


@pytest.mark.parametrize(
    "model",
    [
        "anthropic.claude-haiku-4-5-20251001-v1:0",
        "us.anthropic.claude-haiku-4-5-20251001-v1:0",
        "global.anthropic.claude-haiku-4-5",
        "arn:aws:bedrock:us-east-1:123456789012:inference-profile/eu.anthropic.claude-haiku-4-5",
    ],
)
def test_a_bedrock_model_is_recognised_in_every_region(model: str) -> None:
    assert model_table("bedrock").price_of(model) == Price(1_100_000, 110_000, 1_375_000, 5_500_000)


@pytest.mark.parametrize(
    ("model", "known"),
    [
        ("anthropic.claude-opus-4-6-v1", True),
        ("amazon.nova-pro-v1:0", True),
        ("amazon.nova", False),
    ],
)
def test_bedrock_versions_are_snapshots(model: str, known: bool) -> None:
    assert (model_table("bedrock").row(model) is not None) is known


def test_configured_models_are_offered_first_and_once() -> None:
    models = DATED.models(("own-model", "m", ""), 5000)
    assert [(model.id, model.context_tokens) for model in models] == [
        ("own-model", 5000),
        ("m", 1000),
    ]


@pytest.mark.parametrize("provider", ["anthropic", "openai", "bedrock"])
def test_every_shipped_vendor_has_a_model_of_each_tier(provider: str) -> None:
    assert {model.tier for model in model_table(provider).models((), 1)} == set(Tier)
