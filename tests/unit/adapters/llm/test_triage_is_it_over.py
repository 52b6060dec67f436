"""Whether all is well again, and whether a rollback helped: a plain first sentence, as sure as what was seen."""

import pytest

from adapters.llm.decided import decisions_said
from bot.chat.claims.answer import checked
from tests.fixtures_triage import Investigation, deploy, investigate, moved, world

ONSET = "2026-04-07T14:10:00Z"
OVER = {"until": "2026-04-07T14:26:00Z", "last": 0.2}
DEPLOYED = deploy("checkout", "2026-04-07T14:09:00Z")


def confirmed(at: str, then: str = "succeeded") -> str:
    return (
        f"Now\n- Proposal p-7 (rollback-deploy checkout {{}}): confirmed by U7 at 2026-04-07T{at}:00Z; "
        f"{then}. Do not propose it again unless something was deployed since."
    )


async def asked(
    question: str, *, told: str = "", over: bool = True, **more: object
) -> Investigation:
    ends = OVER if over else {}
    rows = [moved("checkout", role, ONSET, **ends) for role in ("latency", "errors")]
    return await investigate(world([*rows], [DEPLOYED], **more), question, told=told)  # type: ignore[arg-type]


@pytest.mark.parametrize("question", ["is checkout ok now?", "and is checkout fine?"])
async def test_a_recovered_product_is_over(question: str) -> None:
    found = await asked(question)
    first, second, *_ = found.text.split("\n\n")

    assert first == (
        "**Yes, as far as I can see: all that changed in checkout is back to normal since 14:26 UTC.**"
    )
    assert second == "**Most likely cause: the deploy of checkout v2 at 14:09 UTC.**"
    assert found.marks == ()


@pytest.mark.parametrize(
    "question",
    ["is checkout still not ok?", "why is checkout slow?", "what is wrong with checkout?"],
)
async def test_another_question_gets_no_yes(question: str) -> None:
    found = await asked(question)

    assert "Yes" not in found.text


async def test_ongoing_trouble_is_not_over() -> None:
    assert "Yes" not in (await asked("is checkout ok now?", over=False)).text


async def test_an_unread_source_prevents_a_yes() -> None:
    around = {"error_patterns": LookupError("down")}
    found = await asked("is checkout ok now?", around=around)

    assert "Yes" not in found.text


@pytest.mark.parametrize(
    ("at", "words"),
    [
        ("14:20", "It is back to normal since 14:26 UTC, after the rollback was confirmed at 14:20 UTC; "
         "that it was the rollback is not proven."),
        ("14:30", "It is back to normal since 14:26 UTC, before the rollback was confirmed at 14:30 UTC."),
    ],
)  # fmt: skip
async def test_whether_it_helped_is_answered_with_the_time_of_recovery(at: str, words: str) -> None:
    told = confirmed(at)
    found = await asked("did the rollback help?", told=told)
    _, claims = checked(found.text, found.evidence, {}, decisions_said(told))

    assert found.text.startswith(f"**{words}**")
    assert "may be older" not in found.text
    assert "A rollback of checkout was confirmed by U7" in found.text
    assert [one.note for one in claims if "after" in one.text and one.note] == []


async def test_ongoing_trouble_means_the_action_has_not_helped() -> None:
    found = await asked("did the rollback help?", told=confirmed("14:20"), over=False)

    assert found.text.startswith("**I see no sign that the rollback helped.**")


async def test_an_action_a_minute_ago_is_too_recent_to_judge() -> None:
    found = await asked("did the rollback help?", told=confirmed("14:34"), over=False)

    assert found.text.startswith("**It is too early to say whether the rollback helped.**")


async def test_a_running_action_cannot_have_helped_yet() -> None:
    found = await asked("did the rollback help?", told=confirmed("14:20", "running"), over=False)

    assert found.text.startswith("**I cannot say whether it helped: a rollback of checkout was")


async def test_a_product_that_was_always_normal_does_not_show_that_it_helped() -> None:
    found = await investigate(world(), "did the rollback help?", told=confirmed("14:00"))

    assert found.text.startswith(
        "**checkout was normal in the time that I checked; I cannot say whether"
    )
