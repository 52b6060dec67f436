"""Trouble that is over: reported as over, without a proposal, and after ongoing trouble."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

import pytest

from tests.fixtures_swept import Minute, measured, product
from tests.fixtures_triage import Investigation, deploy, investigate, moved, world

PRODUCTS = ("checkout", "web")
TOOLS = (
    "core__get_recent_deploys",
    "core__sweep_metrics",
    "core__report_findings",
    "core__propose_action",
)
DEPLOYED = deploy("checkout", "2026-11-23T09:03:00Z", "v2.4.0", "v2.3.7")
HEALED = {"until": "2026-04-07T14:30:00Z", "last": 0.2}
ONSET = "2026-04-07T14:10:00Z"


def at(hour: int, minute: int, second: int = 0) -> datetime:
    return datetime(2026, 11, 23, hour, minute, second, tzinfo=UTC)


def checkout(when: datetime) -> Minute | None:
    """Bad from 09:04:31 to 09:39:16, its pool a minute earlier; three minutes without samples."""
    if at(9, 36, 15) <= when < at(9, 39, 16):
        return None
    is_bad = at(9, 4, 31) <= when < at(9, 39, 16)
    pool = 20.0 if at(9, 3, 31) <= when < at(9, 39, 16) else 6.0
    return Minute(1.6, 0.03, pool) if is_bad else Minute(pool=pool)


def web(when: datetime) -> Minute | None:
    return Minute(1.6 if when >= at(9, 42, 16) else 0.04, pool=4.0)


async def asked(question: str, now: datetime) -> Investigation:
    series = [*product("checkout", now, checkout), *product("web", now, web)]
    tools = measured(now, series, PRODUCTS, [DEPLOYED])
    return await investigate(tools, question, PRODUCTS, TOOLS, now=now)


async def test_recovered_trouble_is_reported_first_without_a_proposal() -> None:
    found = await asked("is checkout fixed?", at(9, 41, 48))

    assert found.text.startswith(
        "**What changed in checkout is back to normal since 09:39 UTC. "
        "Most likely cause: the deploy of checkout v2.4.0 at 09:03 UTC.**"
    )
    assert found.asked("core__propose_action") == []
    assert "It is over, so I propose nothing." in found.text
    (stated,) = found.asked("core__report_findings")
    assert stated["verdict"] == "cause"
    assert stated["suspects"][0]["until"] == "2026-11-23T09:39:48Z"
    assert found.marks == ()


async def test_a_past_range_says_nothing_about_now() -> None:
    found = await asked("was checkout slow between 09:00 and 09:42?", at(9, 58))

    assert (
        "what changed in checkout was back to normal from 09:40 UTC. Most likely cause: the deploy"
        in found.text
    )
    assert "; back to normal from 09:40 UTC" in found.text
    assert "It was over by the end of that time, so I propose nothing." in found.text
    assert found.asked("core__propose_action") == []
    assert found.marks == ()


async def test_ongoing_trouble_has_no_end_and_gets_a_proposal() -> None:
    found = await asked("why is checkout slow?", at(9, 28))

    assert found.text.startswith("**Most likely cause: the deploy of checkout v2.4.0")
    assert "back to normal" not in found.text
    assert "3 % of requests fail since 09:05 UTC" in found.text
    (stated,) = found.asked("core__report_findings")
    assert "until" not in stated["suspects"][0]
    assert len(found.asked("core__propose_action")) == 1


@pytest.mark.parametrize(
    ("question", "now"),
    [
        ("is checkout ok since 2 minutes?", at(9, 40, 21)),
        ("is checkout ok since 2 minutes?", at(9, 41, 48)),
        ("is web slow?", at(9, 43, 1)),
        ("why is checkout slow?", at(9, 44, 45)),
    ],
)
async def test_requests_that_stopped_failing_are_not_reported_in_the_present(
    question: str, now: datetime
) -> None:
    found = await asked(question, now)

    assert "requests fail " not in found.text
    assert "back to normal since 09:" in found.text


@pytest.mark.parametrize("question", ["why is web slow?", "why is checkout slow?"])
async def test_current_trouble_comes_before_past_trouble(question: str) -> None:
    found = await asked(question, at(9, 44, 45))

    assert "trouble seems to begin in web since 09:42 UTC" in found.text
    assert (
        "also suspected: checkout: latency rose to 1.6 s at 09:04 UTC (normally 0.12 s); back to "
        "normal since" in (found.text)
    )


async def test_the_asked_product_comes_first_even_with_a_small_change() -> None:
    shifts = [
        moved("checkout", "latency", ONSET, **HEALED),
        moved("checkout", "errors", ONSET, worst=0.9, **HEALED),
        moved("cart", "latency", "2026-04-07T14:33:00Z", worst=0.3, score=4.0, last=0.3),
    ]
    found = await investigate(world(shifts), "why does cart throw errors?")

    (stated,) = found.asked("core__report_findings")
    assert stated["verdict"] == "symptoms"
    assert [one["product"] for one in stated["suspects"]] == ["cart", "checkout"]
    assert "Most likely cause" not in found.text


async def test_a_recovered_dependency_does_not_explain_ongoing_trouble() -> None:
    shifts = [
        moved("checkout", "latency", ONSET),
        moved("payments", "latency", ONSET, worst=9.0, **HEALED),
    ]
    found = await investigate(world(shifts, calls=["checkout > payments"]))

    assert found.text.startswith("**The trouble seems to begin in checkout since 14:10 UTC")
    assert "It calls payments" not in found.text


LINE = {
    "product": "checkout", "level": "error", "change": "new", "before": 0, "after": 40,
    "expected": 0.0, "example": "no connection", "since": ONSET,
}  # fmt: skip


@pytest.mark.parametrize(
    ("shifts", "around", "is_over"),
    [
        ([{}, {"role": "errors"}], {}, True),
        ([{}, {"role": "errors", "until": None, "last": 1.9}], {}, False),
        ([{}, {"until": None, "last": 1.9, "worst": 0.9, "signal": "another"}], {}, False),
        ([{"last_at": "2026-04-07T14:31:00Z"}], {}, False),
        ([{}], {"error_patterns": {"changes": [LINE], "lines": {}}}, False),
        ([{}], {"error_patterns": {"changes": [{**LINE, "until": "2026-04-07T14:29:00Z"}]}}, True),
        ([{}], {"sweep_traces": {"shifts": [
            {"product": "checkout", "what": "own", "operation": "GET", "before": 9, "after": 900,
             "weight": 1.0}]}}, True),
        ([{}], {"sweep_cluster": {"ill": [
            {"product": "checkout", "kind": "Pod", "name": "checkout-1", "state": "Failed"}]}}, False),
    ],
    ids=["all usual", "another figure is not", "another of its kind is not", "no more samples",
         "errors come", "errors come no more", "spans tell no time", "a pod is ill"],
)  # fmt: skip
async def test_trouble_is_over_only_when_every_relevant_signal_recovered(
    shifts: Sequence[Mapping[str, object]], around: Mapping[str, object], is_over: bool
) -> None:
    rows = [
        {**moved("checkout", "latency", ONSET, worst=3.0, **HEALED), **changes}
        for changes in shifts
    ]
    row = deploy("checkout", "2026-04-07T14:09:00Z")
    found = await investigate(world(rows, [row], around=around))

    assert ("back to normal since 14:30 UTC. " in found.text.splitlines()[0]) is is_over
    assert (found.asked("core__propose_action") == []) is is_over


async def test_an_open_card_for_recovered_trouble_is_linked_with_that_notice() -> None:
    rows = [moved("checkout", "latency", ONSET, **HEALED)]
    note = "- Proposal p-7 (rollback-deploy checkout {'version': 'v1'}): pending until 14:40 UTC; do not propose it again."
    row = deploy("checkout", "2026-04-07T14:09:00Z")
    found = await investigate(world(rows, [row]), told=f"Now\n- Time: x.\n{note}")

    assert (
        "What changed in checkout is back to normal since 14:30 UTC. A rollback of checkout is already "
        "proposed (p-7)" in found.text
    )


async def test_past_saturation_is_reported_in_the_past() -> None:
    full = moved("checkout", "pool", ONSET, worst=0.99, **HEALED)
    found = await investigate(world([full]))

    assert "Most likely cause: checkout was saturated from 14:10 UTC (pool)." in found.text


async def test_one_normal_sample_is_reported_and_is_not_a_recovery() -> None:
    row = moved("checkout", "errors", ONSET, worst=0.9, last=0.21)
    found = await investigate(world([row]))

    assert "up to 90 % of requests failed from 14:10 UTC (normally 20 %); 21 % now" in found.text
    assert found.text.startswith("**The trouble seems to begin in checkout")
    assert found.marks == ()


async def test_errors_that_stopped_are_reported_as_stopped() -> None:
    around = {"error_patterns": {"changes": [{**LINE, "until": "2026-04-07T14:29:00Z"}]}}
    found = await investigate(world(around=around))

    assert "no connection; none after 14:29 UTC [E" in found.text.replace("`", "")
