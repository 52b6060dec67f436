"""The suspects of log lines: errors that may be old, and complaints that stopped."""

import pytest

from adapters.llm.triage.question import understand
from tests.fixtures_triage import Investigation, investigate, moved, world

PRODUCTS = ("checkout", "cart", "payments")
LOGS_ALONE = ("core__get_recent_deploys", "core__error_patterns", "core__report_findings")
SLOW_AT = "2026-04-07T14:10:00Z"
REFUSED = "ERROR could not reach the settings store: refused"


def row(product: str, example: str, **more: object) -> dict[str, object]:
    return {
        "product": product,
        "level": "error",
        "change": "new",
        "before": 0,
        "after": 40,
        "expected": 0.0,
        "size": 40.0,
        "since": "2026-04-07T14:10:00Z",
        "example": example,
        **more,
    }


async def asked(*rows: object, before: int) -> Investigation:
    """`before` is how many lines of each product are older than the window."""
    lines = dict.fromkeys(PRODUCTS, f"{before}/500")
    errors = dict.fromkeys(PRODUCTS, "0/40")
    patterns = {"changes": list(rows), "lines": lines, "errors": errors}
    within = dict.fromkeys(PRODUCTS, "latency traffic")  # failures are not measured
    answers = world(within=within, around={"error_patterns": patterns})
    return await investigate(answers, "what is wrong?")


def verdict(found: Investigation) -> object:
    return found.asked("core__report_findings")[-1]["verdict"]


@pytest.mark.parametrize(
    ("example", "before", "is_cause"),
    [
        pytest.param(REFUSED, 0, False, id="others write it too, nothing is older"),
        pytest.param(REFUSED, 900, True, id="others write it too, it was not there before"),
        pytest.param("ERROR no price for the item", 0, True, id="its own words"),
    ],
)
async def test_errors_of_many_products_are_weak_without_older_lines(
    example: str, before: int, is_cause: bool
) -> None:
    others = [row(product, REFUSED) for product in ("cart", "payments")]
    weak = [{**one, "after": 2} for one in others]
    found = await asked(row("checkout", example), *weak, before=before)

    assert (verdict(found) == "cause") is is_cause
    assert verdict(found) != "healthy"


@pytest.mark.parametrize(
    ("before", "until", "is_cause"),
    [(0, "2026-04-07T14:12:00Z", False), (0, None, True), (900, "2026-04-07T14:12:00Z", True)],
    ids=["over, as at a start", "they go on", "over, and they are new"],
)
async def test_past_errors_are_weak_without_older_lines(
    before: int, until: str | None, is_cause: bool
) -> None:
    found = await asked(row("cart", "ERROR no such key", until=until), before=before)

    assert (verdict(found) == "cause") is is_cause
    assert verdict(found) != "healthy"


@pytest.mark.parametrize(
    ("before", "named"), [(900, ["cart"]), (0, [])], ids=["new", "perhaps as old as the log"]
)
async def test_a_general_question_with_a_few_new_errors_names_where_to_look(
    before: int, named: list[str]
) -> None:
    lines = dict.fromkeys(PRODUCTS, f"{before}/500")
    patterns = {"changes": [row("cart", "ERROR the ledger is locked", after=3)], "lines": lines}
    answers = world(around={"error_patterns": {**patterns, "errors": {"cart": "0/3"}}})
    found = await investigate(answers, "what is wrong?", tools=LOGS_ALONE)
    suspects = found.asked("core__report_findings")[-1]["suspects"]

    assert [one["product"] for one in suspects] == named


@pytest.mark.parametrize("level", ["error", "warn"])
async def test_complaints_that_stopped_are_not_trouble(level: str) -> None:
    gone = row("cart", REFUSED, level=level, change="gone", before=400, after=0, expected=60.0)
    found = await asked(gone, before=900)

    assert found.asked("core__report_findings")[-1]["suspects"] == []
    assert "no longer writes" not in found.text


@pytest.mark.parametrize(
    ("text", "subject"),
    [
        ("Which service is it?", ""),
        ("which services are slow?", ""),
        ("is the adservce slow?", "adservice"),
        ("is adservice slow?", "adservice"),
    ],
)
def test_common_word_is_not_a_misspelt_product(text: str, subject: str) -> None:
    assert understand(text, ("adservice", "cartservice"), None).subject == subject


@pytest.mark.parametrize(
    ("example", "first"),
    [
        ("ERROR GET http://cart/v1/items: timeout", "cart"),
        ("ERROR rejected a request from cart: timeout", "payments"),
    ],
    ids=["it calls cart", "cart calls it"],
)
async def test_errors_show_calls_between_services_without_traces(example: str, first: str) -> None:
    slow = [
        moved("payments", "latency", SLOW_AT, worst=2.4, requests=200.0),
        moved("cart", "latency", SLOW_AT, worst=2.4, requests=190.0),
    ]
    patterns = {
        "changes": [row("payments", example, names=["cart"], after=3)],
        "lines": dict.fromkeys(PRODUCTS, "900/900"),
        "errors": {"payments": "0/3"},
    }
    found = await investigate(world(slow, around={"error_patterns": patterns}), "what is wrong?")

    assert found.asked("core__report_findings")[-1]["suspects"][0]["product"] == first
