"""A question about a point in time: how it was just then, and what came only later."""

import pytest

from tests.fixtures_triage import Investigation, deploy, investigate, moved, world

SHIFTS = [
    moved("checkout", "latency", "2026-04-07T14:10:00Z"),
    moved("checkout", "errors", "2026-04-07T14:10:00Z", worst=0.6),
]
DEPLOYED = deploy("checkout", "2026-04-07T14:09:00Z")
ALL = {"checkout": "traffic", "cart": "latency errors", "payments": "latency"}


async def asked(question: str, **more: object) -> Investigation:
    return await investigate(world(SHIFTS, [DEPLOYED], within=ALL, **more), question)  # type: ignore[arg-type]


async def test_a_cause_after_the_asked_point_is_reported_as_later() -> None:
    found = await asked("what was wrong with checkout at 13:50 UTC?")
    first, shown, second, *_ = found.text.split("\n\n")

    assert first == (
        "At the time you mention, checkout was as usual. I checked the time between 13:20 and 14:20 UTC."
    )
    assert shown == "- no change then in errors, latency, traffic of checkout [E1]"
    assert second == (
        "**What follows came later, from 14:10 UTC on. "
        "Most likely cause: the deploy of checkout v2 at 14:09 UTC.**"
    )
    assert found.marks == ()


@pytest.mark.parametrize("when", ["at 14:20 UTC", "around 14:20", "at 2026-04-07T14:20Z"])
async def test_trouble_at_the_asked_point_comes_first_with_the_checked_minutes(
    when: str,
) -> None:
    found = await asked(f"what was wrong with checkout {when}?")

    assert found.text.startswith(
        "At the time you mention, checkout was not as usual. I checked the time between 13:50 and 14:35 UTC.\n\n"
        "- checkout: up to 60 % of requests fail since 14:10 UTC (normally 20 %)"
    )
    assert "**Between 13:50 and 14:35 UTC, most likely cause: the deploy" in found.text
    assert found.marks == ()


async def test_a_point_just_before_the_onset_is_not_called_normal() -> None:
    found = await asked("what was wrong with checkout at 14:09 UTC?")

    assert found.text.startswith(
        "At the time you mention, checkout was at the edge of its usual range"
    )


async def test_trouble_that_ended_before_the_point_was_normal_then() -> None:
    rows = [{**row, "until": "2026-04-07T14:14:00Z", "last": 0.2} for row in SHIFTS]
    found = await investigate(world(rows, [DEPLOYED]), "was checkout ok at 14:25 UTC?")

    assert found.text.startswith("At the time you mention, checkout was as usual.")
    assert (
        "was back to normal from 14:14" in found.text
        or "is back to normal since 14:14" in found.text
    )


async def test_a_point_without_samples_is_unmeasured_and_never_normal() -> None:
    gap = {
        "product": "checkout",
        "roles": "errors latency",
        "since": "2026-04-07T13:45:00Z",
        "until": "2026-04-07T13:55:00Z",
    }
    swept = {"shifts": SHIFTS, "within": ALL, "gaps": [gap]}
    found = await asked("how was checkout at 13:50 UTC?", around={"sweep_metrics": swept})

    assert found.text.startswith("At the time you mention, checkout was not measured. ")
    assert "- no samples of checkout's errors, latency [E1]" in found.text
    assert "What follows came later, from 14:10 UTC on." in found.text


async def test_a_range_names_no_point() -> None:
    found = await asked("what was wrong with checkout between 13:45 and 14:30 UTC?")

    assert found.text.startswith("**Between 13:45 and 14:30 UTC, most likely cause")


async def test_a_small_change_at_the_point_is_not_called_normal() -> None:
    faint = moved("checkout", "cpu", "2026-04-07T13:40:00Z", score=1.0, worst=0.21)
    found = await investigate(
        world([*SHIFTS, faint], [DEPLOYED], within=ALL), "was checkout ok at 13:50 UTC?"
    )

    line = "- no change then in errors, latency, traffic of checkout; cpu of checkout changed a little [E1]"
    assert line in found.text


async def test_a_general_question_reports_each_product() -> None:
    found = await asked("what was wrong at 13:50 UTC?")

    assert found.text.startswith(
        "At the time you mention, checkout was as usual; cart was as usual; payments was as usual."
    )
    assert "- no change then in errors, latency of cart [E1]" in found.text
