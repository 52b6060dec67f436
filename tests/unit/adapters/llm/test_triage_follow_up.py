"""Later questions of a thread: about all deploys again, and since when it is."""

import pytest

from adapters.llm.triage.onset_asked import asks_since_when
from tests.fixtures_triage import Investigation, deploy, investigate, moved, world

POOL = moved("checkout", "pool", "2026-04-07T14:09:00Z", usual=0.3, worst=1.0)
SLOW = moved("checkout", "latency", "2026-04-07T14:10:00Z")
FAILING = moved("checkout", "errors", "2026-04-07T14:11:00Z", worst=0.6)
DEPLOYED = deploy("checkout", "2026-04-07T14:08:00Z")
BEFORE = ("why is checkout slow?",)


async def asked(question: str, *shifts: object, before: tuple[str, ...] = BEFORE) -> Investigation:
    return await investigate(world(shifts, [DEPLOYED]), question, before=before)


@pytest.mark.parametrize("question", ["what was deployed?", "what was deployed before that?"])
async def test_deploys_of_nobody_are_those_of_all_whoever_was_asked_about_before(
    question: str,
) -> None:
    found = await asked(question, before=("why is checkout slow?", "and cart?"))

    (arguments,) = found.asked("core__get_recent_deploys")
    assert arguments["product"] == "*"
    assert "as before" not in found.text
    assert "checkout v2" in found.text


async def test_deploys_of_it_are_those_of_whoever_was_asked_about_before() -> None:
    found = await asked("what was deployed to it last week?")

    (arguments,) = found.asked("core__get_recent_deploys")
    assert arguments["product"] == "checkout"


SINCE_WHEN = [
    "since when exactly?",
    "and since when?",
    "when did it start?",
    "when exactly did this begin?",
    "how long has this been going on?",
]


@pytest.mark.parametrize("question", SINCE_WHEN)
async def test_since_when_is_answered_first_and_by_the_figures_in_their_order(
    question: str,
) -> None:
    found = await asked(question, FAILING, SLOW, POOL)

    lines = found.text.splitlines()
    assert lines[0] == "**checkout: since 14:09 UTC.**"
    assert [line.partition(" ")[2].split()[0] for line in lines if line.startswith("- ")] == [
        "v2",
        "pool",
        "latency",
        "up",  # to 60 % of requests
    ]
    assert "no time that I can read" not in found.text
    assert "Assumed: this is about checkout, as before." in found.text
    assert found.asked("core__propose_action") == []
    assert found.marks == ()


async def test_since_when_takes_at_most_five_lines_below_its_headline() -> None:
    others = [
        moved("checkout", role, f"2026-04-07T14:1{minute}:00Z")
        for minute, role in enumerate(("queue", "memory", "cpu", "restarts"), start=2)
    ]

    found = await asked("since when?", FAILING, SLOW, POOL, *others)

    headline, lines = found.text.split("\n\n")[:2]
    assert headline.startswith("**checkout: since 14:09 UTC")
    assert [line[:2] for line in lines.splitlines()] == ["- "] * 5


async def test_since_when_is_of_the_time_that_was_asked_about_before() -> None:
    found = await asked(
        "since when?", SLOW, before=("was checkout slow between 14:00 and 14:20 utc?",)
    )

    assert found.asked("core__sweep_metrics")[0]["time_range"] == (
        "2026-04-07T14:00:00Z/2026-04-07T14:20:00Z"
    )


async def test_an_onset_before_what_was_looked_at_is_told_as_that() -> None:
    found = await asked("since when?", {**SLOW, "since_before": True})

    assert found.text.startswith("**checkout: since before 14:10 UTC.**")


async def test_what_is_over_is_told_with_both_its_ends() -> None:
    found = await asked(
        "since when?",
        {**SLOW, "until": "2026-04-07T14:25:00Z"},
        FAILING | {"until": "2026-04-07T14:24:00Z"},
    )

    assert found.text.startswith("**checkout: from 14:10 UTC until 14:25 UTC; usual again now.**")


async def test_without_an_onset_since_when_is_said_not_to_be_known() -> None:
    found = await asked("since when?")

    assert found.text.startswith("I see no time at which anything began.\n\n**Nothing is wrong")


async def test_since_when_of_a_named_product_is_no_time_that_cannot_be_read() -> None:
    found = await asked("since when is checkout slow?", SLOW, FAILING, before=())

    assert "no time that I can read" not in found.text


@pytest.mark.parametrize(
    "question",
    [
        "since when is web slow?",
        "how long until it is fixed?",
        "when was v2 deployed?",
        "is it slow since 14:05?",
        "since the deploy?",
        "what happened when it started?",
        "",
    ],
)
def test_a_question_of_more_than_that_is_another(question: str) -> None:
    assert not asks_since_when(question)
