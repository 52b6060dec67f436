"""Later questions of a thread: about all deploys again, and since when it is."""

from collections.abc import Mapping

import pytest

from adapters.llm.messages import Message, Role
from adapters.llm.triage.onset_asked import asks_since_when
from tests.fixtures_triage import TOOLS, Investigation, deploy, investigate, moved, world

POOL = moved("checkout", "pool", "2026-04-07T14:09:00Z", usual=0.3, worst=1.0)
SLOW = moved("checkout", "latency", "2026-04-07T14:10:00Z")
FAILING = moved("checkout", "errors", "2026-04-07T14:11:00Z", worst=0.6)
DEPLOYED = deploy("checkout", "2026-04-07T14:08:00Z")
BEFORE = ("why is checkout slow?",)


async def asked(question: str, *shifts: object, before: tuple[str, ...] = BEFORE) -> Investigation:
    return await investigate(world(shifts, [DEPLOYED]), question, before=before)


@pytest.mark.parametrize("question", ["what was deployed?", "what was deployed before that?"])
async def test_a_general_deploy_question_covers_all_products_in_a_thread(
    question: str,
) -> None:
    found = await asked(question, before=("why is checkout slow?", "and cart?"))

    (arguments,) = found.asked("core__get_recent_deploys")
    assert arguments["product"] == "*"
    assert "as before" not in found.text
    assert "checkout v2" in found.text


async def test_deploys_of_it_are_those_of_the_previous_product() -> None:
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
async def test_since_when_is_answered_first_with_the_figures_in_order(
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
    assert "did not understand the time" not in found.text
    assert "Assumed: you mean checkout, as before." in found.text
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


async def test_since_when_uses_the_previously_asked_time() -> None:
    found = await asked(
        "since when?", SLOW, before=("was checkout slow between 14:00 and 14:20 utc?",)
    )

    assert found.asked("core__sweep_metrics")[0]["time_range"] == (
        "2026-04-07T14:00:00Z/2026-04-07T14:20:00Z"
    )


async def test_an_onset_before_the_checked_range_is_reported_as_before_it() -> None:
    found = await asked("since when?", {**SLOW, "since_before": True})

    assert found.text.startswith("**checkout: since before 14:10 UTC.**")


async def test_past_trouble_is_reported_with_start_and_end() -> None:
    found = await asked(
        "since when?",
        {**SLOW, "until": "2026-04-07T14:25:00Z"},
        FAILING | {"until": "2026-04-07T14:24:00Z"},
    )

    assert found.text.startswith(
        "**checkout: from 14:10 UTC until 14:25 UTC; back to normal now.**"
    )


async def test_an_unknown_onset_is_reported_as_unknown() -> None:
    found = await asked("since when?")

    assert found.text.startswith("I do not see when anything began.\n\n**Nothing is wrong")


async def test_since_when_of_a_named_product_is_not_an_unreadable_time() -> None:
    found = await asked("since when is checkout slow?", SLOW, FAILING, before=())

    assert "did not understand the time" not in found.text


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
def test_a_longer_question_is_not_a_since_when(question: str) -> None:
    assert not asks_since_when(question)


@pytest.mark.parametrize(
    "question", ["roll it back", "revert that please", "rolling checkout back"]
)
async def test_a_rollback_of_it_refers_to_the_threads_product(question: str) -> None:
    found = await asked(question, SLOW, FAILING, POOL)

    (proposed,) = found.asked("core__propose_action")
    assert (proposed["action"], proposed["product"]) == ("rollback-deploy", "checkout")


@pytest.mark.parametrize(
    "question", ["payments healthy?", "whats payments doing", "payments ok now"]
)
async def test_a_name_with_a_few_common_words_asks_for_its_state(question: str) -> None:
    found = await asked(question, SLOW, FAILING)

    assert found.text.startswith("**payments: its errors, latency, traffic are as usual [E1].**")


async def test_why_not_another_product_is_answered_for_that_one() -> None:
    found = await asked("why not payments?", SLOW, FAILING)

    assert found.text.startswith("I see no sign that it is payments")


@pytest.mark.parametrize("question", ["is it still slow", "how is it now", "is it over now"])
async def test_a_state_is_not_a_name(question: str) -> None:
    found = await asked(question, SLOW, FAILING)

    assert "I have no data with that name" not in found.text


READ = "core__get_metrics"
FIND = "core__find_metrics"
SAMPLES = {
    "unit": "ratio",
    "samples": [{"ts": "2026-04-07T14:34:00Z", "value": 0.98}],
    "stats": {"min": 0.9, "max": 0.99, "mean": 0.95},
}


async def figures(
    question: str, has: str, before: tuple[str, ...] = BEFORE, said: str = ""
) -> Investigation:
    """Metrics exist for that product alone; `said` was answered before."""

    def answer(tool: str, arguments: Mapping[str, object]) -> object:
        is_there = tool == FIND and arguments["product"] == has
        return SAMPLES if tool == READ else {"found": [{"name": "usage_p99"}] if is_there else []}

    earlier = [Message(Role.USER, text=before[0]), Message(Role.ASSISTANT, text=said)]
    return await investigate(answer, question, tools=(*TOOLS, READ, FIND), earlier=earlier)


async def test_a_figure_that_the_product_lacks_comes_from_the_cause() -> None:
    found = await figures(
        "pool usage?",
        "payments",
        said="**Most likely cause: payments is saturated since 14:09 UTC.**",
    )

    assert [one["product"] for one in found.asked(FIND)] == ["checkout", "payments"]
    assert "connection pool of payments is 98 %" in found.text


@pytest.mark.parametrize(
    ("question", "then"),
    [
        ("compare with yesterday", "2026-04-06T14:20:00Z/2026-04-06T14:50:00Z"),
        ("and yesterday?", "2026-04-06T14:20:00Z/2026-04-06T14:50:00Z"),
        ("same as last week?", "2026-03-31T14:20:00Z/2026-03-31T14:50:00Z"),
    ],
)
async def test_another_day_is_compared_at_the_same_time(question: str, then: str) -> None:
    found = await figures(question, "checkout")

    windows = list(dict.fromkeys(one["time_range"] for one in found.asked(READ)))
    assert windows == ["2026-04-07T14:05:00Z/2026-04-07T14:35:00Z", then]
    assert f"; at this time on {then[:10]} it was between" in found.text
    assert found.marks == ()


async def test_the_database_is_the_one_of_the_found_cause() -> None:
    products = ("checkout", "orders-db", "payments-db")
    earlier = [
        Message(Role.USER, text="why is checkout slow?"),
        Message(Role.ASSISTANT, text="**Most likely cause: payments-db is saturated.**"),
    ]
    found = await investigate(world(), "show me the db logs", products, earlier=earlier)

    assert [one["product"] for one in found.asked("core__get_logs")] == ["payments-db"]


async def test_what_it_was_keeps_its_answer_after_the_end() -> None:
    earlier = [
        Message(Role.USER, text="why is checkout slow?"),
        Message(Role.ASSISTANT, text="**Most likely cause: the deploy of checkout v2.**"),
    ]
    back = deploy("checkout", "2026-04-07T14:20:00Z", "v1", "v2")
    found = await investigate(world((), [back, DEPLOYED]), "was it the deploy?", earlier=earlier)

    assert found.text.startswith(
        "**As answered in this thread: Most likely cause: the deploy of checkout v2.**"
    )
    assert "no sign" not in found.text
    assert "Not the cause" not in found.text


async def test_whether_the_database_is_fine_refers_to_the_cause() -> None:
    earlier = [
        Message(Role.USER, text="why is checkout slow?"),
        Message(Role.ASSISTANT, text="**Most likely cause: orders-db is saturated.**"),
    ]
    found = await investigate(
        world(within={"orders-db": "cpu pool"}),
        "db ok now?",
        ("checkout", "orders-db"),
        earlier=earlier,
    )

    assert found.text.startswith("**orders-db: its cpu, pool are as usual [E1].**")
