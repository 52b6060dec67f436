"""The products to check first without an established cause: the ones that changed with the symptom."""

import pytest

from tests.fixtures_triage import investigate, moved, world

FELT_AT = "2026-04-07T14:15:00Z"
FELT = moved(
    "checkout", "errors", FELT_AT, usual=0.0, worst=0.05, score=3.5, beyond_all_before=False
)


@pytest.mark.parametrize(
    ("since", "until", "named"),
    [
        (FELT_AT, None, True),
        ("2026-04-07T14:17:00Z", None, True),
        ("2026-04-07T14:06:00Z", None, False),
        (FELT_AT, "2026-04-07T14:25:00Z", False),
    ],
    ids=["at once", "minutes later", "long before", "over while it goes on"],
)
async def test_a_small_record_that_starts_with_the_complaint_is_named(
    since: str, until: str | None, named: bool
) -> None:
    own = moved("cart", "cpu", since, usual=0.04, worst=0.14, score=5.0, until=until, requests=5)
    found = await investigate(world([FELT, own]), "what is wrong?")

    assert ("I would look first at cart" in found.text) is named


def beyond(product: str) -> dict[str, object]:
    figures = {"usual": 40.0, "worst": 900.0, "direction": "up", "spreads": 14.0}
    return {"product": product, "role": "other", "signal": "fd_open", **figures}


@pytest.mark.parametrize(
    ("products", "compared", "named"),
    [(["cart"], 8, True), (["cart", "payments"], 8, False), (["cart"], 400, False)],
    ids=["one of few", "two of few", "one of many may be chance"],
)
async def test_the_only_product_beyond_its_range_is_named(
    products: list[str], compared: int, named: bool
) -> None:
    swept = {
        "shifts": [],
        "within": dict.fromkeys(("checkout", "cart", "payments"), "other"),
        "records": [beyond(product) for product in products],
        "compared": compared,
    }
    found = await investigate(world(around={"sweep_metrics": swept}), "which one is it?")

    assert "cart: fd open at 900, its highest so far (normally 40)" in found.text
    assert ("I would look first at cart." in found.text) is named
