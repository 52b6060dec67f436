"""The questions that Kortex suggests mean, as typed, what their words say."""

from datetime import UTC, datetime

import pytest

from adapters.llm.triage.question import understand
from bot.slack.listeners import replies
from tests.fixtures_triage import deploy, investigate, moved, world

NOW = datetime(2026, 4, 7, 14, 35, tzinfo=UTC)
SLOW = [moved("checkout", "latency", "2026-04-07T14:10:00Z")]
PRODUCTS = ("checkout", "cart")
CHANGED, UNUSUAL, ABLE = (question for _title, question in replies.PROMPTS)


@pytest.mark.parametrize(
    "question",
    [
        UNUSUAL,
        "is checkout slower than yesterday?",
        "what is different from this morning?",
        "why is it slower than on Monday?",
        "errors compared to last week?",
        "is latency higher than it was yesterday evening?",
        "why is checkout slower than at 10:00?",
    ],
)
def test_a_time_that_now_is_compared_with_is_not_the_time_asked_about(question: str) -> None:
    asked = understand(question, PRODUCTS, NOW)

    assert (asked.topic, asked.start, asked.end) == ("cause", None, None)
    assert not asked.is_time_unread


@pytest.mark.parametrize(
    "question", ["what broke yesterday?", "show the logs from yesterday", "more than 5% yesterday?"]
)
def test_another_time_is_the_one_asked_about(question: str) -> None:
    asked = understand(question, PRODUCTS, NOW)

    assert asked.start is not None
    assert asked.start.date().isoformat() == "2026-04-06"


async def test_a_question_about_what_differs_names_the_cause_of_today() -> None:
    found = await investigate(world(SLOW, [deploy("checkout", "2026-04-07T14:09:00Z")]), UNUSUAL)

    assert "checkout" in found.text.splitlines()[0]
    assert "2026-04-06" not in str(found.calls)


async def test_what_changed_lists_each_deploy_once_and_the_trouble_since() -> None:
    found = await investigate(world(SLOW, [deploy("checkout", "2026-04-07T14:09:00Z")]), CHANGED)

    assert found.text.startswith("**Deploys, newest first:**")
    assert found.text.count("- 2026-04-07 14:09 UTC: checkout") == 1
    assert "Most likely cause" in found.text


def test_what_it_can_do_is_a_question_about_itself() -> None:
    assert understand(ABLE, PRODUCTS, NOW).topic == "help"
