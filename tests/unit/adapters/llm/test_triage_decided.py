"""What people decided in a thread is not proposed to them again."""

from dataclasses import replace

import pytest

from adapters.llm.decided import decision_note, decisions_said
from bot.chat.claims.answer import checked
from bot.domain.ids import MessageTs
from tests.fixtures_actions import DRAFT, PLACE, World, call
from tests.fixtures_triage import Investigation, deploy, investigate, moved, world
from tools.errors import InvalidArguments

SLOW = [moved("checkout", "latency", "2026-04-07T14:10:00Z")]
DEPLOYED = deploy("checkout", "2026-04-07T14:09:00Z")
CONFIRMED = "confirmed by U7 at 2026-04-07T14:20:00Z"


def noted(became: str, product: str = "checkout", *, stands: bool = True) -> str:
    note = decision_note(became, '{"status": "ok"}', stands=stands)
    return f"Now\n- Proposal p-7 (rollback-deploy {product} {{}}): {note}"


async def asked(told: str, row: object = DEPLOYED) -> Investigation:
    errors = moved("checkout", "errors", "2026-04-07T14:10:00Z", worst=0.6)
    return await investigate(world([*SLOW, errors], [row]), told=told)


@pytest.mark.parametrize(
    ("became", "words"),
    [
        (f"{CONFIRMED}; succeeded", "was confirmed by U7 at 14:20 UTC, and is done, with no deploy since"),
        (f"{CONFIRMED}; running", "was confirmed by U7 at 14:20 UTC, and is running, with no deploy"),
        (f"{CONFIRMED}, about to run", "was confirmed by U7 at 14:20 UTC, about to run, with no deploy"),
        (f"{CONFIRMED}; outcome unknown: it may have taken effect",
         "outcome unknown: it may have taken effect, with no deploy"),
        ("rejected by Mira Okafor-Lind at 2026-04-07T14:20:00Z, nothing was run",
         "was rejected by Mira Okafor-Lind at 14:20 UTC, nothing was run, with no deploy since"),
        ("rejected by U7 at 2026-04-07T14:20:00Z, nothing was run",
         "was rejected by U7 at 14:20 UTC, nothing was run, with no deploy since"),
    ],
)  # fmt: skip
async def test_a_decided_proposal_is_reported_and_not_repeated(became: str, words: str) -> None:
    told = noted(became)
    found = await asked(told)
    _, claims = checked(found.text, found.evidence, {}, decisions_said(told))

    assert found.asked("core__propose_action") == []
    assert words in found.text
    assert not [one for one in claims if "14:20" in one.note]


@pytest.mark.parametrize(
    "told",
    [
        noted(f"{CONFIRMED}; failed", stands=False),
        noted("expired; no one decided in time, nothing was run", stands=False),
        noted("confirmed by U7 at 2026-04-07T14:05:00Z; succeeded"),  # before the deploy
        noted(f"{CONFIRMED}; succeeded", "cart"),
        noted(f"{CONFIRMED}; succeeded") + noted(f"{CONFIRMED}; failed", stands=False)[3:],
    ],
    ids=["failed", "expired", "deployed since", "another product", "failed the second time"],
)
async def test_a_failed_or_redeployed_action_is_proposed_again(told: str) -> None:
    found = await asked(told)

    assert len(found.asked("core__propose_action")) == 1


@pytest.mark.parametrize(
    ("at", "words"),
    [
        ("14:20", "I see no improvement yet"),
        ("14:34", "It is too early to say whether it helped"),
    ],
)
async def test_a_confirmed_action_without_an_effect_is_reported(at: str, words: str) -> None:
    found = await asked(noted(f"confirmed by U7 at 2026-04-07T{at}:00Z; succeeded"))

    assert f"was confirmed by U7 at {at} UTC, and is done" in found.text
    assert words in found.text


def elsewhere(became: str, *, stands: bool = True) -> str:
    return noted(became, stands=stands).replace("{}):", "{}) in another thread of this channel:")


async def test_a_decision_in_another_thread_is_reported_and_not_repeated() -> None:
    found = await asked(elsewhere(f"{CONFIRMED}; succeeded"))

    assert found.asked("core__propose_action") == []
    assert "A rollback of checkout was confirmed by U7 at 14:20 UTC, and is done" in found.text


async def test_an_open_proposal_in_another_thread_is_linked() -> None:
    told = "Now\n- Proposal p-7 (rollback-deploy checkout {}) in another thread of this channel: "
    found = await asked(f"{told}open until 14:40 UTC; do not propose it again.")

    assert found.asked("core__propose_action") == []
    assert (
        "A rollback of checkout is already proposed (p-7). Its card is in another thread of this "
        "channel; it is linked below."
    ) in found.text


DONE_QUESTIONS = [
    "what has been done so far?",
    "who confirmed the rollback?",
    "what was done?",
    "who rolled back checkout?",
    "was the rollback of checkout confirmed?",
    "what have you tried?",
]


@pytest.mark.parametrize("question", DONE_QUESTIONS)
async def test_questions_about_actions_are_answered_from_the_decisions(
    question: str,
) -> None:
    told = elsewhere(f"{CONFIRMED}; succeeded")
    found = await investigate(world([*SLOW], [DEPLOYED]), question, told=told)
    _, claims = checked(found.text, found.evidence, {}, decisions_said(told))

    assert found.calls == []
    assert found.text.startswith(
        "**A rollback of checkout was confirmed by U7 at 14:20 UTC, and is done.**"
    )
    assert "I cannot see manual changes" in found.text
    assert [one.note for one in claims if one.note] == []


async def test_waiting_and_rejected_proposals_are_reported_as_unconfirmed() -> None:
    told = (
        noted("rejected by U7 at 2026-04-07T14:20:00Z, nothing was run")
        + "\n- Proposal p-8 (restart checkout {}): open until 14:40 UTC; do not propose it again."
    )
    found = await investigate(world([*SLOW], [DEPLOYED]), "what has been done so far?", told=told)

    assert found.text.startswith("**No proposal has been confirmed here.**")
    assert (
        "- A rollback of checkout was rejected by U7 at 14:20 UTC, nothing was run." in found.text
    )
    assert "- restart of checkout is proposed and waits for a decision." in found.text


@pytest.mark.parametrize(
    "question",
    ["what is wrong with checkout?", "why is checkout slow?", "is checkout fixed?", "roll back checkout",
     "what has changed?", "was checkout slow at 14:20?"],
)  # fmt: skip
async def test_a_question_about_the_cause_is_still_investigated(question: str) -> None:
    found = await investigate(
        world([*SLOW], [DEPLOYED]), question, told=noted(f"{CONFIRMED}; succeeded")
    )

    assert found.calls != []


async def test_a_proposal_raised_at_the_same_moment_elsewhere_is_linked() -> None:
    earlier = World()
    await earlier.proposed()
    thread = replace(PLACE, thread_ts=MessageTs("1700000000.000777"))
    with pytest.raises(InvalidArguments) as refused:
        await earlier.intake(thread).propose(DRAFT, call(2, session_id="s2"))
    (name,) = earlier.store.rows

    answers = world(
        [*SLOW, moved("checkout", "errors", "2026-04-07T14:10:00Z", worst=0.6)],
        [DEPLOYED],
        around={"propose_action": LookupError(str(refused.value))},
    )
    found = await investigate(answers)

    assert (
        f"A rollback of checkout is already proposed ({name}). Its card is in another thread of this "
        "channel; it is linked below."
    ) in found.text


FAR_AWAY = (
    "Now\n- rollback-deploy of checkout was carried out from another channel at 2026-04-07T14:20:00Z; "
    "succeeded. Do not propose it again unless something was deployed since."
)


async def test_an_action_from_another_channel_is_reported_and_not_repeated() -> None:
    found = await asked(FAR_AWAY)
    _, claims = checked(found.text, found.evidence, {}, decisions_said(FAR_AWAY))

    assert found.asked("core__propose_action") == []
    assert (
        "A rollback of checkout was carried out from another channel at 14:20 UTC, and is done, with no "
        "deploy since, so I do not propose it again. I see no improvement yet"
    ) in found.text
    assert not [one for one in claims if "14:20" in one.note]


@pytest.mark.parametrize(
    "told",
    [
        FAR_AWAY.replace("T14:20", "T14:05"),  # before the deploy
        FAR_AWAY.replace("checkout", "cart"),
        FAR_AWAY.replace("succeeded. Do not propose it again unless something was deployed since.", "failed."),
    ],
    ids=["deployed since", "another product", "failed"],
)  # fmt: skip
async def test_another_channels_action_on_another_product_does_not_matter(
    told: str,
) -> None:
    found = await asked(told)

    assert len(found.asked("core__propose_action")) == 1


@pytest.mark.parametrize("question", DONE_QUESTIONS)
async def test_another_channels_action_answers_what_was_done(question: str) -> None:
    rejected = noted("rejected by U7 at 2026-04-07T14:25:00Z, nothing was run")[4:]
    told = f"{FAR_AWAY}\n{rejected}"
    found = await investigate(world([*SLOW], [DEPLOYED]), question, told=told)
    _, claims = checked(found.text, found.evidence, {}, decisions_said(told))

    assert found.text.startswith(
        "**A rollback of checkout was carried out from another channel at 14:20 UTC, and is done.**"
    )
    assert "- A rollback of checkout was rejected by U7 at 14:25 UTC" in found.text
    assert "Only its own channel shows who confirmed an action." in found.text
    assert "has been confirmed" not in found.text
    assert [one.note for one in claims if one.note] == []


@pytest.mark.parametrize(
    "question", ["who confirmed the rollback?", "what has been done so far?", "what was done?"]
)
async def test_what_was_done_refers_to_the_incident_and_not_to_a_side_question(
    question: str,
) -> None:
    before = ["why is checkout slow?", "and cart?"]
    told = noted(f"{CONFIRMED}; succeeded")
    found = await investigate(world(SLOW, [DEPLOYED]), question, told=told, before=before)

    assert found.text.startswith("**A rollback of checkout was confirmed by U7 at 14:20 UTC")
    assert "you mean cart" not in found.text


@pytest.mark.parametrize(
    "question",
    [
        "did the rollback help?",
        "did it help?",
        "has the rollback helped?",
        "did rolling back help?",
    ],
)
async def test_whether_it_helped_refers_to_the_actions_product(question: str) -> None:
    before = ["why is checkout slow?", "and cart?"]
    told = noted(f"{CONFIRMED}; succeeded")
    found = await investigate(world(SLOW, [DEPLOYED]), question, told=told, before=before)

    assert found.asked("core__sweep_metrics")[0]["product"] == "checkout"
    assert "you mean checkout, the product of the last confirmed action" in found.text


async def test_whether_it_helped_continues_the_thread_without_a_confirmed_action() -> None:
    found = await investigate(world(SLOW), "did it help?", before=["and cart?"])

    assert found.asked("core__sweep_metrics")[0]["product"] == "cart"


async def test_whether_it_helped_covers_another_channels_action() -> None:
    found = await investigate(
        world([*SLOW], [DEPLOYED]),
        "did the rollback help?",
        told=FAR_AWAY,
        before=["why is checkout slow?", "and cart?"],
    )

    assert "you mean checkout, the product of the last confirmed action" in found.text


async def test_a_rejection_is_explained_by_its_typed_reason() -> None:
    became = "rejected by U7 at 2026-04-07T14:20:00Z, nothing was run"
    note = decision_note(became, "wait for [the](https://evil.test) 15:30 sale", stands=True)
    told = f"Now\n- Proposal p-7 (rollback-deploy checkout {{}}): {note}"
    found = await investigate(world(), "why was it rejected?", told=told)
    _, claims = checked(found.text, found.evidence, {}, decisions_said(told))

    assert "was rejected by U7 at 14:20 UTC" in found.text.partition("\n")[0]
    assert "Reason: `wait for [the](https://evil.test) 15:30 sale`" in found.text
    assert "`propose rollback-deploy checkout`" in found.text
    assert [one.note for one in claims if one.note] == []


async def test_a_rejection_that_never_was_is_denied() -> None:
    found = await investigate(
        world(), "why was it rejected?", told=noted(f"{CONFIRMED}; succeeded")
    )

    assert found.text.startswith("**No proposal was rejected here.**")
