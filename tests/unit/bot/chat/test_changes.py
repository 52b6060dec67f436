"""A failed turn says what became of its own proposals, and never that nothing changed where it may have."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

import pytest

from bot.chat.delivery import NOT_READ, ProposalsOf, changes_of
from bot.chat.turn_result import lost
from bot.domain.ids import SessionId, TurnId, UserId
from bot.domain.proposal import ONE_ORDER, Proposal, ProposalState, Vote
from bot.domain.turn_events import TurnEnd
from bot.ports.failures import StorageUnavailable
from bot.slack.views.render import render
from tests.fakes.scripted_provider import ScriptedProvider, text
from tests.fixtures_turn import ASK, turn_bench
from tests.golden.slack_views import view
from tests.slack_ingress import proposal

TOLD = {
    ProposalState.PENDING: "still waits for a decision",
    ProposalState.CONFIRMED: "is being carried out",
    ProposalState.DISPATCHING: "is being carried out",
    ProposalState.SUCCEEDED: "was confirmed and carried out",
    ProposalState.FAILED: "was confirmed and failed",
    ProposalState.UNKNOWN: "may have taken effect; its result is unknown",
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


async def test_a_first_approval_of_two_is_reported() -> None:
    votes = (Vote(UserId("U2"), proposal().created_at, "press:1"),)
    half = replace(made(ProposalState.PENDING), approvals=2, votes=votes)

    told = await changes_of(ASK, stored(half))

    assert told.endswith("has 1 of 2 approvals and still waits for a decision on its card.")


@pytest.mark.parametrize("state", [ProposalState.SUCCEEDED, ProposalState.FAILED])
async def test_a_rehearsal_is_not_reported_as_carried_out(state: ProposalState) -> None:
    row = replace(made(state), preview='{"rehearsal": true, "would_send": {}}')

    assert "carried out" not in await changes_of(ASK, stored(row))


@pytest.mark.parametrize(
    ("state", "guard", "told"),
    [
        (ProposalState.FAILED, "frozen", "was confirmed, then refused; nothing was sent."),
        (ProposalState.SUPERSEDED, "drift", "was confirmed, then refused; nothing was sent."),
        (
            ProposalState.SUPERSEDED,
            ONE_ORDER,
            "was not sent, because another proposal sent the same",
        ),
    ],
)
async def test_an_action_refused_by_a_guard_was_not_sent(
    state: ProposalState, guard: str, told: str
) -> None:
    refused = made(state, f'{{"guard": "{guard}"}}')
    assert told in await changes_of(ASK, stored(refused))


@pytest.mark.parametrize(
    ("rows", "told"),
    [
        (
            [made(ProposalState.SUPERSEDED), replace(made(ProposalState.SUCCEEDED), product="api.web")],
            ["of api.web was confirmed and carried out.", "of checkout was replaced by another proposal."],
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
async def test_every_proposal_of_the_turn_is_reported_with_ineffective_ones_last(
    rows: Sequence[Proposal], told: Sequence[str]
) -> None:
    sentences = (await changes_of(ASK, stored(*rows))).split("The proposed ")[1:]
    assert [s.strip().endswith(end) for s, end in zip(sentences, told, strict=True)] == [
        True
    ] * len(told)


async def test_proposals_of_other_turns_are_omitted() -> None:
    rows = stored(made(ProposalState.SUCCEEDED, turn="turn:other"))
    assert await changes_of(ASK, rows) == ""


async def test_unreadable_proposals_are_not_denied() -> None:
    async def gone(_session: SessionId) -> Sequence[Proposal]:
        raise StorageUnavailable("gone")

    assert await changes_of(ASK, gone) == NOT_READ


async def test_a_turn_that_fails_after_its_proposal_ran_says_so() -> None:
    rows = stored(made(ProposalState.SUCCEEDED))
    bench = turn_bench(providers=[Breaks([])], proposals_of=rows)
    await bench.answer()
    final = bench.surface.finals[-1]
    assert final.end is TurnEnd.FAILED
    assert "was confirmed and carried out" in final.changes


@pytest.mark.parametrize("over", [ProposalState.EXPIRED, ProposalState.SUPERSEDED])
async def test_many_proposals_without_effect_do_not_hide_the_one_that_ran(
    over: ProposalState,
) -> None:
    rows = stored(*[made(over)] * 40, made(ProposalState.SUCCEEDED))
    final = replace(lost(), changes=await changes_of(ASK, rows))
    assert "confirmed and carried out" in str(render(view([final])))


class Breaks(ScriptedProvider):
    def stream(self, request):  # type: ignore[no-untyped-def]
        raise ZeroDivisionError


async def broken_notes(_place: object, _channel: object, _question: object) -> list[str]:
    raise ZeroDivisionError


@pytest.mark.parametrize("broken", [set(), {"finish_turn"}, {"history", "finish_turn"}])
async def test_a_failed_turn_that_cannot_be_stored_says_what_ran(broken: set[str]) -> None:
    bench = turn_bench(providers=[Breaks([])], proposals_of=stored(made(ProposalState.SUCCEEDED)))
    bench.sessions.broken = broken
    with suppress(StorageUnavailable):
        await bench.answer()
    (final,) = bench.surface.finals
    assert "was confirmed and carried out" in final.changes


async def test_a_turn_that_fails_on_resumption_says_what_ran() -> None:
    bench = turn_bench(notes=broken_notes, proposals_of=stored(made(ProposalState.SUCCEEDED)))
    await bench.answer()
    (final,) = bench.surface.finals
    assert "was confirmed and carried out" in final.changes


async def test_a_successful_turn_reports_no_proposals() -> None:
    rows = stored(made(ProposalState.SUCCEEDED))
    bench = turn_bench([text("Done.")], proposals_of=rows)
    await bench.answer()
    assert bench.surface.finals[-1].changes == ""
