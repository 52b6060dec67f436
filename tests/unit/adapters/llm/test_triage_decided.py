"""What people decided in a thread is not proposed to them again."""

import pytest

from adapters.llm.decided import decision_note, decisions_said
from bot.chat.claims.answer import checked
from tests.fixtures_triage import Investigation, deploy, investigate, moved, world

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
        (f"{CONFIRMED}; succeeded", "was confirmed by U7 at 14:20 UTC, and is done; no deploy came since"),
        (f"{CONFIRMED}; running", "was confirmed by U7 at 14:20 UTC, and is running; no deploy"),
        (f"{CONFIRMED}, about to run", "was confirmed by U7 at 14:20 UTC, about to run; no deploy"),
        (f"{CONFIRMED}; outcome unknown: whether it took effect could not be learned",
         "outcome unknown: whether it took effect could not be learned; no deploy"),
        ("rejected by U7 at 2026-04-07T14:20:00Z, nothing was run",
         "was rejected by U7 at 14:20 UTC, nothing was run, and no deploy came since"),
    ],
)  # fmt: skip
async def test_what_was_decided_is_told_and_not_proposed_again(became: str, words: str) -> None:
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
        noted("expired, nobody decided in time and nothing was run", stands=False),
        noted("confirmed by U7 at 2026-04-07T14:05:00Z; succeeded"),  # before the deploy
        noted(f"{CONFIRMED}; succeeded", "cart"),
        noted(f"{CONFIRMED}; succeeded") + noted(f"{CONFIRMED}; failed", stands=False)[3:],
    ],
    ids=["failed", "expired", "deployed since", "another product", "failed the second time"],
)
async def test_what_failed_or_was_deployed_since_is_proposed(told: str) -> None:
    found = await asked(told)

    assert len(found.asked("core__propose_action")) == 1
