"""Missing samples and unreachable targets: reported, and never an all-clear."""

from collections.abc import Mapping

import pytest

from tests.fixtures_triage import Investigation, deploy, investigate, moved, world
from tools.core.get_recent_deploys import NO_SOURCE, UNREAD

ENDED = {"product": "checkout", "roles": "errors latency", "since": "2026-04-07T14:28:00Z"}
HOLE = {**ENDED, "until": "2026-04-07T14:31:00Z"}
DOWN = {"product": "checkout", "roles": "", "signal": "up", "since": "2026-04-07T14:33:00Z",
        "is_down": True}  # fmt: skip
LOOKED = dict.fromkeys(("checkout", "cart", "payments"), "errors latency traffic")


async def asked(
    gap: Mapping[str, object], question: str = "is checkout ok?", **swept: object
) -> Investigation:
    sweep = {"shifts": [], "within": LOOKED, "gaps": [gap], **swept}
    row = deploy("checkout", "2026-04-07T14:09:00Z")
    return await investigate(world(deploys=[row], around={"sweep_metrics": sweep}), question)


@pytest.mark.parametrize(
    ("gap", "words"),
    [
        (ENDED, "checkout: no samples of its errors, latency after 14:28 UTC [E1]"),
        (HOLE, "checkout: no samples of its errors, latency between 14:28 and 14:31 UTC [E1]"),
        (DOWN, "checkout: a metrics target is unreachable since 14:33 UTC (up) [E1]"),
    ],
    ids=["ended", "a hole", "down"],
)
@pytest.mark.parametrize("question", ["is checkout ok?", "what is wrong?"])
async def test_an_unmeasured_signal_is_reported_and_prevents_the_all_clear(
    gap: Mapping[str, object], words: str, question: str
) -> None:
    found = await asked(gap, question)

    (stated,) = found.asked("core__report_findings")
    assert stated["verdict"] == "unknown"
    assert words in stated["missing"]
    assert found.text.count(words) == 1
    assert "Nothing is wrong" not in found.text
    assert found.marks == ()


@pytest.mark.parametrize("gap", [ENDED, DOWN], ids=["ended", "down"])
async def test_an_ongoing_gap_is_the_first_sentence(gap: Mapping[str, object]) -> None:
    found = await asked(gap)

    assert found.text.startswith("You asked about checkout: ")


async def test_a_past_gap_comes_after_the_findings() -> None:
    found = await asked(HOLE)

    assert found.text.startswith("**I found no clear failure, but I cannot rule one")


async def test_another_products_gap_is_reported_and_prevents_nothing() -> None:
    found = await asked({**DOWN, "product": "cart"})

    assert found.text.startswith("**Nothing is wrong with checkout, as far as I can see.**")
    assert "- cart: a metrics target is unreachable since 14:33 UTC (up) [E1]" in found.text


async def test_a_product_whose_samples_all_ended_still_has_metrics() -> None:
    within = {"cart": "errors latency traffic"}
    found = await asked(ENDED, within=within)

    assert "no metrics of its own were found" not in found.text
    assert "neither latency nor errors" not in found.text


async def test_a_cause_is_reported_with_the_signals_unmeasured_since() -> None:
    slow = moved("checkout", "latency", "2026-04-07T14:10:00Z")
    found = await asked(ENDED, shifts=[slow])

    assert found.text.startswith("**Most likely cause: the deploy of checkout")
    assert "Caveat: checkout: no samples of its errors, latency after 14:28 UTC" in found.text


async def test_a_product_without_any_data_is_not_reported_as_without_failure() -> None:
    sweep = {"shifts": [], "within": {}, "without": ["ghost"], "products": ["ghost"]}
    found = await investigate(
        world(around={"sweep_metrics": sweep, "sweep_logs": {"changes": [], "lines": {}}}),
        "is ghost ok?",
        products=("ghost",),
    )

    assert "\n**No data for ghost was found, so I cannot say whether" in found.text
    assert "stands out" not in found.text
    (stated,) = found.asked("core__report_findings")
    assert stated["verdict"] == "unknown"


@pytest.mark.parametrize("question", ["is checkout ok?", "was it a deploy?", "is it the rollout?"])
async def test_a_missing_deploy_source_is_reported_once_and_not_as_no_deploys(
    question: str,
) -> None:
    none = {"deploys": [], "total_matches": 0, "notes": [NO_SOURCE]}
    found = await investigate(world(around={"get_recent_deploys": none}), question)

    assert found.text.count("no deploy source is connected") == 1
    assert "no deploys in that time" not in found.text


@pytest.mark.parametrize(
    ("question", "words"),
    [
        ("is checkout ok?", "I could not check: all deploys, because 1 source does not answer."),
        ("what was deployed?", "Not all deploys could be read, because 1 source does not answer."),
    ],
)
async def test_a_failing_deploy_source_is_reported_and_prevents_the_all_clear(
    question: str, words: str
) -> None:
    note = f"{UNREAD}, because 1 source does not answer"
    none = {"deploys": [], "total_matches": 0, "notes": [note]}
    sweep = {"shifts": [], "within": LOOKED}
    found = await investigate(
        world(around={"get_recent_deploys": none, "sweep_metrics": sweep}), question
    )

    assert words in found.text
    assert "that is known in" in found.text.replace("that are known", "that is known")
    assert "Nothing is wrong" not in found.text
    assert [one["verdict"] for one in found.asked("core__report_findings")] != ["healthy"]
