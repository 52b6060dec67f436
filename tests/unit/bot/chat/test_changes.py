"""A failed turn says what became of its own proposals, and never that nothing changed where it may have."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from bot.chat.changes import NOT_READ, ProposalsOf, changes_of
from bot.domain.ids import SessionId, TurnId
from bot.domain.proposal import Proposal, ProposalState
from bot.domain.turn_events import TurnEnd
from bot.ports.failures import StorageUnavailable
from tests.fakes.scripted_provider import ScriptedProvider, text
from tests.fixtures_turn import ASK, turn_bench
from tests.slack_ingress import proposal

TOLD = {
    ProposalState.PENDING: "still waits for a decision",
    ProposalState.CONFIRMED: "is being carried out",
    ProposalState.DISPATCHING: "is being carried out",
    ProposalState.SUCCEEDED: "was confirmed and carried out",
    ProposalState.FAILED: "was confirmed and failed",
    ProposalState.UNKNOWN: "its result is unknown",
    ProposalState.REJECTED: "was rejected; nothing was sent",
    ProposalState.EXPIRED: "expired; nothing was sent",
    ProposalState.SUPERSEDED: "was replaced by another proposal",
}


def made(state: ProposalState, outcome: str = "", turn: str = ASK.turn_id) -> Proposal:
    return replace(proposal(), state=state, outcome=outcome, turn_id=TurnId(turn))


def stored(*rows: Proposal) -> ProposalsOf:
    async def of_session(_session: SessionId) -> Sequence[Proposal]:
        return rows

    return of_session


@pytest.mark.parametrize("state", ProposalState)
async def test_each_state_is_reported(state: ProposalState) -> None:
    assert TOLD[state] in await changes_of(ASK, stored(made(state)))


async def test_what_a_guard_refused_was_not_sent() -> None:
    refused = made(ProposalState.FAILED, '{"guard": "frozen"}')
    assert "nothing was sent" in await changes_of(ASK, stored(refused))


@pytest.mark.parametrize(
    ("rows", "told"),
    [
        (
            [made(ProposalState.SUPERSEDED), replace(made(ProposalState.SUCCEEDED), product="api.web")],
            ["of checkout was replaced by another proposal.", "of api.web was confirmed and carried out."],
        ),
        (
            [made(ProposalState.UNKNOWN), made(ProposalState.PENDING), made(ProposalState.REJECTED)],
            ["its result is unknown.", "still waits for a decision on its card.", "nothing was sent."],
        ),
        (
            [made(ProposalState.DISPATCHING), made(ProposalState.SUCCEEDED, turn="turn:another")],
            ["is being carried out."],
        ),
    ],
)  # fmt: skip
async def test_each_proposal_of_the_turn_is_reported_in_order(
    rows: Sequence[Proposal], told: Sequence[str]
) -> None:
    sentences = (await changes_of(ASK, stored(*rows))).split("The proposed ")[1:]
    assert [s.strip().endswith(end) for s, end in zip(sentences, told, strict=True)] == [
        True
    ] * len(told)


async def test_proposals_of_other_turns_are_not_its_own() -> None:
    rows = stored(made(ProposalState.SUCCEEDED, turn="turn:other"))
    assert await changes_of(ASK, rows) == ""


async def test_proposals_that_cannot_be_read_are_not_denied() -> None:
    async def gone(_session: SessionId) -> Sequence[Proposal]:
        raise StorageUnavailable("gone")

    assert await changes_of(ASK, gone) == NOT_READ


async def test_a_turn_that_fails_after_its_proposal_ran_says_so() -> None:
    class Breaks(ScriptedProvider):
        def stream(self, request):  # type: ignore[no-untyped-def]
            raise ZeroDivisionError

    rows = stored(made(ProposalState.SUCCEEDED))
    bench = turn_bench(providers=[Breaks([])], proposals_of=rows)
    await bench.answer()
    final = bench.surface.finals[-1]
    assert final.end is TurnEnd.FAILED
    assert "was confirmed and carried out" in final.changes


async def test_a_turn_that_ends_well_says_nothing_of_it() -> None:
    rows = stored(made(ProposalState.SUCCEEDED))
    bench = turn_bench([text("Done.")], proposals_of=rows)
    await bench.answer()
    assert bench.surface.finals[-1].changes == ""
