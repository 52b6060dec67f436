"""Proposing stores a draft and hands back a receipt; nothing else happens."""

import orjson
import pytest

from tests.fakes.capabilities import FakeProposals, fake_capabilities
from tests.fakes.tools import Bench, bench
from tools.core.propose_action import ProposeAction
from tools.records import ToolOutcome

NAME = "core__propose_action"


def proposing() -> tuple[Bench, FakeProposals]:
    proposals = FakeProposals()
    return bench([ProposeAction()], caps=fake_capabilities(proposals=proposals)), proposals


async def propose(b: Bench, **arguments: object) -> ToolOutcome:
    given = {"action": "restart", "product": "checkout", "rationale": "OOM loop", **arguments}
    return await b.run(orjson.dumps(given).decode(), NAME)


async def test_the_receipt_says_that_people_must_confirm() -> None:
    b, _ = proposing()
    outcome = await propose(b)
    assert orjson.loads(outcome.content) == {
        "proposal_id": "p1",
        "posted_to_chat": True,
        "awaits_confirmation": True,
        "expires_at": "2026-04-07T14:45:00Z",
        "awaits": ["responder"],
    }
    assert outcome.proposal_id == "p1"
    assert outcome.summary == "restart checkout, awaits responder"


async def test_a_receipt_without_approvers_says_what_to_answer() -> None:
    b, proposals = proposing()
    proposals.decides = False
    outcome = await propose(b)
    assert outcome.record.ok
    assert orjson.loads(outcome.content) == {
        "posted_to_chat": False,
        "awaits_confirmation": False,
        "awaits": ["responder"],
        "note": "It cannot be confirmed here, so no card was posted and nothing is stored. Say "
        "what you would propose, and that people get a card if they ask in a channel.",
    }
    assert (outcome.proposal_id, proposals.stored) == (None, {})
    assert outcome.summary == "restart checkout, would await responder"


async def test_the_stored_draft_is_what_the_model_sent() -> None:
    b, proposals = proposing()
    await propose(b, params={"version": "v1", "token": "SECRET-x"}, reversible=True)
    (draft,) = proposals.stored.values()
    assert (draft.action, draft.product, draft.reversible) == ("restart", "checkout", True)
    assert draft.params == {"version": "v1", "token": "SECRET-x"}


async def test_the_same_call_twice_is_one_proposal() -> None:
    b, proposals = proposing()
    first, second = await propose(b), await propose(b)
    assert first.proposal_id == second.proposal_id
    assert len(proposals.stored) == 1


async def test_an_unknown_action_lists_the_known_ones() -> None:
    b, proposals = proposing()
    outcome = await propose(b, action="delete-everything")
    assert "rollback-deploy" in orjson.loads(outcome.content)["message"]
    assert (outcome.proposal_id, proposals.stored) == (None, {})


@pytest.mark.parametrize(
    "arguments",
    [
        {"action": ""},
        {"product": "a b"},
        {"rationale": ""},
        {"rationale": "x" * 2001},
        {"params": [1]},
        {"confirmed": True},
        {"connection_id": "c"},
    ],
)
async def test_a_malformed_proposal_is_not_stored(arguments: dict[str, object]) -> None:
    b, proposals = proposing()
    assert not (await propose(b, **arguments)).record.ok
    assert proposals.stored == {}
