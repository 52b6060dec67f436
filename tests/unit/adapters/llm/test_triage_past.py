"""A time that is over, or cut to what can be looked at: the first sentence says which it is."""

import re

import pytest

from adapters.llm.local_time import in_zone
from tests.fixtures_triage import deploy, investigate, moved, world

ONSET = "2026-04-07T08:10:00Z"


@pytest.mark.parametrize(
    ("question", "first"),
    [
        ("was checkout slow at 08:30?", "with checkout between 08:00 and 09:00 UTC, as"),
        ("was checkout slow at 14:03?", "with checkout between 13:33 and 14:33 UTC, as"),
        ("was checkout slow between 08:00 and 08:30 utc?", "between 08:00 and 08:30 UTC, as"),
        (
            "was checkout slow yesterday around 12:00?",
            "between 2026-04-06 11:30 and 2026-04-06 12:30 UTC, as",
        ),
        (
            "is checkout slow since yesterday?",
            "between 2026-04-06 14:35 and 2026-04-07 14:35 UTC, as",
        ),
    ],
)
async def test_an_all_clear_of_a_past_time_names_the_time(question: str, first: str) -> None:
    found = await investigate(world(), question)

    assert found.text.startswith("**Nothing was wrong with checkout")
    assert first in found.text.splitlines()[0]
    assert "slowness now" not in found.text
    assert found.marks == ()


@pytest.mark.parametrize("question", ["is checkout slow?", "is checkout slow since 14:00?"])
async def test_a_range_up_to_now_is_not_named(question: str) -> None:
    found = await investigate(world(), question)

    assert found.text.startswith("**Nothing is wrong with checkout, as far as I can see.**")
    assert "If it is slow now" in found.text


async def test_a_cause_of_a_past_time_names_the_time() -> None:
    shifts = [moved("checkout", "latency", ONSET), moved("checkout", "errors", ONSET, worst=0.6)]
    row = deploy("checkout", "2026-04-07T08:09:00Z")
    found = await investigate(world(shifts, [row]), "why was checkout slow at 08:30?")

    assert found.text.startswith("At the time you mention, checkout was not as usual.")
    assert (
        "**Between 08:00 and 09:00 UTC, most likely cause: the deploy of checkout v2 at 08:09 UTC.**"
    ) in found.text


async def test_a_past_time_gets_no_proposal_and_no_current_state() -> None:
    shifts = [moved("checkout", "latency", ONSET), moved("checkout", "errors", ONSET, worst=0.6)]
    played = world(shifts, [deploy("checkout", "2026-04-07T08:09:00Z")])
    found = await investigate(played, "why was checkout slow at 08:30?")
    wanted = await investigate(played, "roll back checkout that was slow at 08:30")

    assert found.asked("core__propose_action") == wanted.asked("core__propose_action") == []
    assert "up to 60 % of requests failed from 08:10 UTC" in found.text
    assert (
        "I did not check the current state, so I propose nothing. Ask again without a time."
        in found.text
    )
    assert wanted.text.startswith(
        "I do not propose a rollback of checkout: I did not check the current"
    )


async def test_since_when_of_a_past_time_shows_no_current_state() -> None:
    shifts = [moved("checkout", "latency", ONSET), moved("checkout", "errors", ONSET, worst=0.6)]
    before = ("why was checkout slow at 08:30?",)
    found = await investigate(world(shifts), "since when?", before=before)

    assert found.text.startswith("**checkout: from 08:10 UTC.**")


async def test_too_small_a_change_of_a_past_time_names_the_time() -> None:
    shifts = [moved("checkout", "latency", ONSET, score=2.0, worst=0.3, beyond_all_before=False)]
    found = await investigate(world(shifts), "was checkout slow at 08:30?")

    assert "between 08:00 and 09:00 UTC" in found.text.splitlines()[0]


async def test_a_time_before_the_data_is_not_reported_as_a_wrong_name() -> None:
    gone = {"sweep_metrics": {"shifts": [], "within": {}, "without": ["checkout", "cart"]}}
    found = await investigate(world(around=gone), "why is checkout slow at 15:05?")

    assert found.text.startswith(
        "You asked about checkout between 2026-04-06 14:35 and 2026-04-06 15:35 UTC: it has no metrics "
        "from that time [E1].\n\n"
    )
    assert "no metrics of its own were found" not in found.text


async def test_another_product_than_the_asked_one_is_reported_with_the_time() -> None:
    shifts = [moved("cart", "latency", ONSET), moved("cart", "errors", ONSET, worst=0.6)]
    found = await investigate(world(shifts), "was checkout ok at 08:30?")

    assert found.text.startswith(
        "You asked about checkout between 08:00 and 09:00 UTC: its errors, latency, traffic were as usual"
    )


@pytest.mark.parametrize("question", ["since 2 minutes", "in the last 3 minutes", "since 14:33"])
async def test_a_short_range_is_reported_as_checked_for_five_minutes(
    question: str,
) -> None:
    found = await investigate(world(), f"is checkout slow {question}?")

    (asked,) = {one["time_range"] for one in found.asked("core__sweep_metrics")}
    assert asked == "2026-04-07T14:30:00Z/2026-04-07T14:35:00Z"
    assert "five minutes, the shortest time that shows when a change began" in found.text
    assert found.marks == ()


@pytest.mark.parametrize("question", ["since yesterday", "between 13:30 and 13:32", "at 11:00"])
async def test_an_assumed_time_gets_no_mark(question: str) -> None:
    told = f"Now\n- {in_zone('Europe/Berlin')}"
    asked = f"is checkout slow {question}?"
    found = await investigate(world(), asked, told=told)

    assert "Assumed: your times are in Europe/Berlin, so this covers " in found.text
    assert found.marks == ()


@pytest.mark.parametrize(
    "question",
    [
        "why is checkout slow since 16:00?",
        "what happened at 16:10?",
        "when was checkout deployed since 16:00?",
        "show the logs of checkout between 16:00 and 16:20",
        "was checkout ok at 16:10 today?",
    ],
)
async def test_all_times_of_an_answer_are_in_utc(question: str) -> None:
    slow = moved("checkout", "latency", "2026-04-07T14:10:00Z")
    told = f"Now\n- {in_zone('Europe/Berlin')}"
    row = deploy("checkout", "2026-04-07T14:09:00Z")
    found = await investigate(world([slow], [row]), question, told=told)

    clocks = re.findall(r"\b(\d\d):\d\d\b", found.text)
    assert "UTC" in found.text
    assert clocks
    assert set(clocks) <= {"13", "14"}
