"""Trouble older than the range of the question must not count as normal."""

from collections.abc import Callable
from datetime import UTC, datetime

import pytest

from tests.fixtures_swept import Minute, Rows, measured, product
from tests.fixtures_triage import Investigation, deploy, investigate, moved, world

TOOLS = ("core__get_recent_deploys", "core__sweep_metrics", "core__report_findings")


def at(clock: str) -> datetime:
    return datetime.fromisoformat(f"2026-11-23T{clock}").replace(tzinfo=UTC)


NOW, ONSET = at("09:36"), at("09:04:31")


def ill(when: datetime) -> Minute:
    """Full from a minute before it is slow."""
    pool = 20.0 if when >= at("09:03:31") else 6.0
    return Minute(1.6, 0.03, pool) if when >= ONSET else Minute(pool=pool)


async def asked(
    question: str,
    now: datetime = NOW,
    does: Callable[[datetime], Minute | None] = ill,
    deploys: Rows = (),
) -> Investigation:
    tools = measured(now, product("checkout", now, does), ["checkout"], deploys)
    return await investigate(tools, question, ["checkout"], TOOLS, now=now)


@pytest.mark.parametrize(
    ("when", "fail"),
    [
        ("since 09:10", "fail since"),
        ("since 09:15", "fail since"),
        ("since 09:20", "fail since"),
        ("since 09:25", "fail since"),
        ("since 5 minutes", "fail since"),
        ("between 09:20 and 09:30", "failed from"),
    ],
)
async def test_trouble_is_reported_completely_for_any_start_of_the_range(
    when: str, fail: str
) -> None:
    found = await asked(f"why is checkout slow {when}?")

    assert (
        "he trouble seems to begin in checkout since 09:04 UTC (pool, then latency)" in found.text
    )
    assert "latency rose to 1.6 s at 09:05 UTC (normally 0.12 s)" in found.text
    assert f"3 % of requests {fail} 09:05 UTC (normally 0.2 %)" in found.text
    assert "pool (db pool connections active) rose to 20 at 09:04 UTC (normally 6)" in found.text
    assert "otherwise normal" not in found.text
    assert found.marks == ()


async def test_a_deploy_before_the_onset_is_blamed_for_any_start_of_the_range() -> None:
    shipped = deploy("checkout", "2026-11-23T09:03:00Z", "v2.4.0")
    found = await asked("why is checkout slow since 09:30?", deploys=[shipped])

    assert "Most likely cause: the deploy of checkout v2.4.0 at 09:03 UTC." in found.text


async def test_trouble_that_ended_before_the_range_is_not_reported_as_current() -> None:
    def over(when: datetime) -> Minute:
        return ill(when) if when < at("09:39:16") else Minute()

    found = await asked("is checkout ok since 10:00?", at("10:05"), over)

    assert "Nothing is wrong with checkout" in found.text


async def test_an_all_clear_says_which_trouble_would_look_normal() -> None:
    found = await asked("is checkout ok since 08:40?", at("09:00"))

    assert "Nothing is wrong with checkout" in found.text
    assert "or a problem that began before 03:10 UTC" in found.text
    assert found.marks == ()


async def test_every_changed_figure_is_reported_when_it_is_too_small_to_blame() -> None:
    def a_little(when: datetime) -> Minute:
        return Minute(0.146, 0.0056) if when >= at("09:20") else Minute()

    found = await asked("why is checkout slow since 09:10?", does=a_little)

    assert "Something changed, but not enough to name a cause." in found.text
    assert "checkout: latency rose to" in found.text
    assert "% of requests fail" in found.text
    assert "(checkout: pool traffic) [E1]: otherwise normal" in found.text


@pytest.mark.parametrize(
    ("pool_since", "said"),
    [
        ("2026-04-07T14:09:50Z", "since 14:09 UTC (pool, then latency)"),
        ("2026-04-07T14:10:05Z", "since 14:10 UTC (latency)"),
        ("2026-04-07T14:12:00Z", "since 14:10 UTC (latency)"),
    ],
    ids=["before, in another minute", "in the same minute", "after"],
)
async def test_the_first_sentences_onset_is_of_the_figure_it_names(
    pool_since: str, said: str
) -> None:
    slow = moved("checkout", "latency", "2026-04-07T14:10:20Z")
    full = moved("checkout", "pool", pool_since, unit="", usual=6.0, worst=20.0)
    failing = moved("checkout", "errors", "2026-04-07T14:10:20Z", worst=0.5)
    found = await investigate(world([slow, failing, full]))

    assert f"The trouble seems to begin in checkout {said}; the reason is not known." in found.text


async def test_the_first_change_follows_the_asked_products_figure() -> None:
    rows = [
        moved("checkout", "latency", "2026-04-07T14:10:00Z"),
        moved("checkout", "errors", "2026-04-07T14:10:00Z", worst=0.5),
        moved("checkout", "pool", "2026-04-07T14:09:00Z", unit="", usual=6.0, worst=20.0),
    ]
    found = await investigate(world(rows))

    lines = [line for line in found.text.splitlines() if line.startswith("- ")]
    assert "latency rose" in lines[0]
    assert "pool (pool signal) rose to 20 at 14:09 UTC" in lines[1]
    assert "requests fail" in lines[2]
