"""What ProposalStore promises, in memory, on SQLite and on PostgreSQL."""

import asyncio
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from bot.domain.audit import AuditEvent, AuditKind
from bot.domain.ids import (
    ChannelId,
    MessageTs,
    Person,
    Place,
    ProposalId,
    SessionId,
    TeamId,
    TurnId,
    UserId,
    session_at,
)
from bot.domain.proposal import (
    LIFETIME,
    IllegalTransition,
    Proposal,
    ProposalState,
    canonical,
    digest,
)
from bot.ports.proposals import Decision, Verdict
from bot.store.database import Database
from bot.store.proposals import StoredProposals
from tests.fixtures_database import database, database_url, other
from tests.fixtures_stores import Stores, stored, stores
from tools.redactor import Redacted

__all__ = ["database", "database_url", "other", "stores"]

S = ProposalState
NOW = datetime.now(UTC).replace(microsecond=123456)
ID = ProposalId("prop-1")
PARAMS = canonical({"version": "1.2"})


def a_proposal(**changes: object) -> Proposal:
    proposal = Proposal(
        id=ID,
        session_id=SessionId("session:1"),
        turn_id=TurnId("turn:1"),
        place=Place(TeamId("T1"), ChannelId("C1"), MessageTs("1700000000.000100")),
        asked_by=Person(TeamId("T1"), UserId("U1")),
        action="rollback-deploy",
        product="checkout",
        params=PARAMS,
        digest=digest("rollback-deploy", "checkout", PARAMS),
        rationale="errors began with 1.3",
        model_blast_radius="one service",
        blast_radius="one service",
        reversible=True,
        untrusted_read=False,
        confirm_roles=("responder", "sre-lead"),
        four_eyes=False,
        state=S.PENDING,
        created_at=NOW,
        expires_at=NOW + timedelta(hours=1),
    )
    return replace(proposal, **changes)  # type: ignore[arg-type]


OVERDUE = a_proposal(expires_at=NOW - timedelta(seconds=5))
CREATED = AuditEvent(AuditKind.PROPOSAL_CREATED, "U1", {"proposal": ID})
KINDS = {
    S.CONFIRMED: AuditKind.PROPOSAL_CONFIRMED,
    S.REJECTED: AuditKind.PROPOSAL_REJECTED,
    S.EXPIRED: AuditKind.PROPOSAL_EXPIRED,
    S.SUPERSEDED: AuditKind.PROPOSAL_SUPERSEDED,
}


def audit_of(to: ProposalState) -> AuditEvent:
    return AuditEvent(KINDS[to], "U2", {"proposal": ID})


def decision(to: ProposalState, key: str = "click-1", by: str = "U2") -> Decision:
    return Decision(to, UserId(by), key, Redacted("because"))


INTENT = AuditEvent(AuditKind.DISPATCH_INTENT, "U2", {"proposal": ID})
OUTCOME = AuditEvent(AuditKind.DISPATCH_OUTCOME, "U2", {"proposal": ID})


async def confirm(stores: Stores, proposal_id: ProposalId = ID) -> None:
    await stores.proposals.decide(proposal_id, decision(S.CONFIRMED), audit_of(S.CONFIRMED))


async def test_a_created_proposal_is_read_back_completely(stores: Stores) -> None:
    proposal = a_proposal(card_ts=MessageTs("1.2"), reason="r", outcome='{"a":1}')
    assert await stores.proposals.create(proposal, CREATED) == proposal
    assert await stores.proposals.get(ID) == proposal


async def test_an_unknown_proposal_is_not_found(stores: Stores) -> None:
    assert await stores.proposals.get(ID) is None
    assert await stores.proposals.decide(ID, decision(S.CONFIRMED), CREATED) is None
    assert await stores.audit_kinds() == []


async def test_creating_again_returns_the_first_and_is_audited_once(stores: Stores) -> None:
    first = await stores.proposals.create(a_proposal(), CREATED)
    assert await stores.proposals.create(a_proposal(rationale="other"), CREATED) == first
    assert await stores.audit_kinds() == [AuditKind.PROPOSAL_CREATED]


@pytest.mark.parametrize("to", [S.CONFIRMED, S.REJECTED, S.SUPERSEDED])
async def test_a_decision_in_time_wins_and_is_audited(stores: Stores, to: ProposalState) -> None:
    await stores.proposals.create(a_proposal(), CREATED)
    verdict = await stores.proposals.decide(ID, decision(to), audit_of(to))
    assert verdict is not None
    assert verdict.won
    assert verdict.proposal.state is to
    assert verdict.proposal.decided_by == "U2"
    assert verdict.proposal.decided_at is not None
    assert verdict.proposal.reason == "because"
    assert await stores.proposals.get(ID) == verdict.proposal
    assert await stores.audit_kinds() == [AuditKind.PROPOSAL_CREATED, KINDS[to]]


@pytest.mark.parametrize("to", [S.CONFIRMED, S.REJECTED])
async def test_a_decision_after_the_expiry_is_too_late(stores: Stores, to: ProposalState) -> None:
    await stores.proposals.create(OVERDUE, CREATED)
    verdict = await stores.proposals.decide(ID, decision(to), audit_of(to))
    assert verdict is not None
    assert not verdict.won
    assert verdict.proposal == OVERDUE
    assert await stores.audit_kinds() == [AuditKind.PROPOSAL_CREATED]


async def test_the_clock_may_not_expire_a_proposal_early(stores: Stores) -> None:
    await stores.proposals.create(a_proposal(), CREATED)
    verdict = await stores.proposals.decide(ID, decision(S.EXPIRED), audit_of(S.EXPIRED))
    assert verdict is not None
    assert not verdict.won
    assert verdict.proposal.state is S.PENDING


async def test_the_clock_expires_an_overdue_proposal(stores: Stores) -> None:
    await stores.proposals.create(OVERDUE, CREATED)
    verdict = await stores.proposals.decide(ID, decision(S.EXPIRED), audit_of(S.EXPIRED))
    assert verdict is not None
    assert verdict.won
    assert verdict.proposal.state is S.EXPIRED


async def test_a_repeated_key_is_the_same_win(stores: Stores) -> None:
    await stores.proposals.create(a_proposal(), CREATED)
    first = await stores.proposals.decide(ID, decision(S.CONFIRMED), audit_of(S.CONFIRMED))
    assert await stores.proposals.decide(ID, decision(S.CONFIRMED), audit_of(S.CONFIRMED)) == first
    assert await stores.audit_kinds() == [AuditKind.PROPOSAL_CREATED, AuditKind.PROPOSAL_CONFIRMED]


async def test_a_repeated_key_is_a_win_after_the_dispatch_too(stores: Stores) -> None:
    await stores.proposals.create(a_proposal(), CREATED)
    await confirm(stores)
    await stores.proposals.begin_dispatch(ID, INTENT)
    verdict = await stores.proposals.decide(ID, decision(S.CONFIRMED), audit_of(S.CONFIRMED))
    assert verdict is not None
    assert verdict.won
    assert verdict.proposal.state is S.DISPATCHING


async def test_the_loser_learns_who_won(stores: Stores) -> None:
    await stores.proposals.create(a_proposal(), CREATED)
    await confirm(stores)
    late = await stores.proposals.decide(
        ID, decision(S.REJECTED, "click-2", "U3"), audit_of(S.REJECTED)
    )
    assert late is not None
    assert not late.won
    assert late.proposal.state is S.CONFIRMED
    assert late.proposal.decided_by == "U2"
    assert await stores.audit_kinds() == [AuditKind.PROPOSAL_CREATED, AuditKind.PROPOSAL_CONFIRMED]


@pytest.mark.parametrize("to", [S.DISPATCHING, S.SUCCEEDED, S.PENDING])
async def test_a_decision_must_be_a_transition_of_the_state_machine(
    stores: Stores, to: ProposalState
) -> None:
    with pytest.raises(IllegalTransition):
        await stores.proposals.decide(ID, decision(to), CREATED)


async def test_a_confirmed_proposal_advances_step_by_step(stores: Stores) -> None:
    await stores.proposals.create(a_proposal(), CREATED)
    await confirm(stores)
    assert (await stores.proposals.begin_dispatch(ID, INTENT)).is_ours
    assert await stores.proposals.advance(ID, S.DISPATCHING, S.SUCCEEDED, '{"ok":1}', OUTCOME)
    row = await stores.proposals.get(ID)
    assert row is not None
    assert (row.state, row.outcome) == (S.SUCCEEDED, '{"ok":1}')
    assert await stores.audit_kinds() == [
        AuditKind.PROPOSAL_CREATED,
        AuditKind.PROPOSAL_CONFIRMED,
        AuditKind.DISPATCH_INTENT,
        AuditKind.DISPATCH_OUTCOME,
    ]


async def test_advancing_from_another_state_changes_nothing(stores: Stores) -> None:
    await stores.proposals.create(a_proposal(), CREATED)
    assert not (await stores.proposals.begin_dispatch(ID, INTENT)).is_ours
    assert await stores.proposals.get(ID) == a_proposal()
    assert await stores.audit_kinds() == [AuditKind.PROPOSAL_CREATED]


async def test_advancing_twice_succeeds_once(stores: Stores) -> None:
    await stores.proposals.create(a_proposal(), CREATED)
    await confirm(stores)
    assert (await stores.proposals.begin_dispatch(ID, INTENT)).is_ours
    assert not (await stores.proposals.begin_dispatch(ID, INTENT)).is_ours


async def test_advancing_without_a_transition_is_refused(stores: Stores) -> None:
    with pytest.raises(IllegalTransition):
        await stores.proposals.advance(ID, S.PENDING, S.DISPATCHING, "", INTENT)


async def test_due_proposals_are_listed_longest_overdue_first(stores: Stores) -> None:
    for name, state, age_s in (
        ("b", S.PENDING, 10),
        ("a", S.PENDING, 10),
        ("c", S.PENDING, 60),
        ("later", S.PENDING, -3600),
        ("over", S.REJECTED, 60),
    ):
        late = a_proposal(id=name, state=state, expires_at=NOW - timedelta(seconds=age_s))
        await stores.proposals.create(late, CREATED)
    assert await stores.proposals.due(10) == ["c", "a", "b"]
    assert await stores.proposals.due(1) == ["c"]


async def test_a_session_lists_its_proposals_oldest_first(stores: Stores) -> None:
    newer = a_proposal(id="1", digest="01", created_at=NOW + timedelta(seconds=1))
    older = a_proposal(id="2", digest="02")
    decided = a_proposal(id="3", digest="03", state=S.REJECTED)
    foreign = a_proposal(id="4", digest="04", session_id="session:2")
    for each in (newer, older, decided, foreign):
        await stores.proposals.create(each, CREATED)
    found = await stores.proposals.of_session(SessionId("session:1"), S.PENDING)
    assert list(found) == [older, newer]
    assert list(await stores.proposals.of_session(SessionId("session:1"))) == [
        older, decided, newer,
    ]  # fmt: skip


async def test_other_threads_of_a_channel_show_open_and_decided_proposals(
    stores: Stores,
) -> None:
    here = a_proposal().place

    async def raised(name: str, thread: str, **changes: object) -> None:
        place = replace(here, thread_ts=MessageTs(thread))
        each = a_proposal(id=name, place=place, session_id=session_at(place), digest=f"0{name}")
        await stores.proposals.create(replace(each, **changes), CREATED)  # type: ignore[arg-type]

    await raised("1", here.thread_ts)
    await raised("2", "2", created_at=NOW + timedelta(seconds=2))
    await raised("3", "3", created_at=NOW + timedelta(seconds=1), state=S.REJECTED)
    await raised("4", "4", created_at=NOW - timedelta(hours=3), state=S.SUCCEEDED)
    await raised("5", "5", state=S.EXPIRED)
    await raised("6", "6", state=S.SUPERSEDED)
    await raised("7", "7", expires_at=NOW - timedelta(seconds=1))
    await raised("8", "8", place=replace(here, channel=ChannelId("C1:"), thread_ts=MessageTs("8")),
                 session_id=SessionId("session:T1:C10:8"))  # fmt: skip

    around = await stores.proposals.around(session_at(here), here, None, 7200, 5)

    assert [row.id for row in around.threads] == ["3", "2"]
    assert [row.id for row in around.own] == ["1"]
    latest = await stores.proposals.around(session_at(here), here, None, 7200, 1)
    assert [row.id for row in latest.threads] == ["2"]


async def test_dispatches_are_counted_by_action_and_product(stores: Stores) -> None:
    for name, product in (("1", "checkout"), ("2", "checkout"), ("3", "search"), ("4", "checkout")):
        each = a_proposal(id=name, product=product, digest=name)
        await stores.proposals.create(each, CREATED)
        await confirm(stores, ProposalId(name))
    for name in ("1", "2", "3"):
        await stores.proposals.begin_dispatch(ProposalId(name), INTENT)
    assert await stores.proposals.dispatches_since("rollback-deploy", "checkout", 3600) == 2
    assert await stores.proposals.dispatches_since("rollback-deploy", "billing", 3600) == 0
    assert await stores.proposals.dispatches_since("restart", "checkout", 3600) == 0
    assert await stores.proposals.dispatches_since("rollback-deploy", "checkout", -5) == 0


async def test_text_that_a_database_cannot_store_is_kept_legible(stores: Stores) -> None:
    await stores.proposals.create(a_proposal(), CREATED)
    verdict = await stores.proposals.decide(
        ID,
        Decision(S.REJECTED, UserId("U2"), "k", Redacted("no\x00 \ud800 é 🎉")),
        audit_of(S.REJECTED),
    )
    assert verdict is not None
    assert verdict.won
    assert "é 🎉" in verdict.proposal.reason


async def vote(stores: Stores, by: str, key: str = "") -> Verdict:
    verdict = await stores.proposals.decide(
        ID, decision(S.CONFIRMED, key or f"click-{by}", by), audit_of(S.CONFIRMED)
    )
    assert verdict is not None
    return verdict


async def test_the_last_required_vote_decides_and_every_vote_is_audited(stores: Stores) -> None:
    await stores.proposals.create(a_proposal(approvals=3), CREATED)
    verdicts = [await vote(stores, by) for by in ("U2", "U3", "U4")]
    assert [(v.won, v.voted) for v in verdicts] == [(False, True), (False, True), (True, False)]
    row = await stores.proposals.get(ID)
    assert row is not None
    assert (row.state, row.decided_by) == (S.CONFIRMED, "U4")
    assert [v.by for v in row.votes] == ["U2", "U3", "U4"]
    assert await stores.audit_kinds() == [
        AuditKind.PROPOSAL_CREATED,
        *[AuditKind.PROPOSAL_VOTED] * 3,
        AuditKind.PROPOSAL_CONFIRMED,
    ]


async def test_a_persons_repeated_presses_count_once(stores: Stores) -> None:
    await stores.proposals.create(a_proposal(approvals=2), CREATED)
    first = await vote(stores, "U2")
    again = await vote(stores, "U2", "another click")
    assert (again.won, again.voted) == (False, False)
    assert again.proposal == first.proposal
    assert again.proposal.state is S.PENDING
    assert await stores.audit_kinds() == [AuditKind.PROPOSAL_CREATED, AuditKind.PROPOSAL_VOTED]


async def test_a_repeated_vote_is_the_same_vote(stores: Stores) -> None:
    await stores.proposals.create(a_proposal(approvals=2), CREATED)
    assert await vote(stores, "U2") == await vote(stores, "U2")
    decided = await vote(stores, "U3")
    assert await vote(stores, "U3") == decided
    late = await vote(stores, "U2")
    assert (late.won, late.voted, late.proposal) == (False, True, decided.proposal)


async def test_no_vote_counts_after_the_expiry(stores: Stores) -> None:
    await stores.proposals.create(replace(OVERDUE, approvals=2), CREATED)
    verdict = await vote(stores, "U2")
    assert (verdict.won, verdict.voted, verdict.proposal.votes) == (False, False, ())


async def test_one_rejection_ends_a_proposal_with_several_required_confirmations(
    stores: Stores,
) -> None:
    await stores.proposals.create(a_proposal(approvals=2), CREATED)
    await vote(stores, "U2")
    rejected = await stores.proposals.decide(
        ID, decision(S.REJECTED, "no", "U3"), audit_of(S.REJECTED)
    )
    assert rejected is not None
    assert rejected.won
    late = await vote(stores, "U4")
    assert (late.won, late.voted, late.proposal.state) == (False, False, S.REJECTED)


async def test_the_third_person_decides_among_twenty_votes_at_once_on_two_replicas(
    database: Database, other: Database
) -> None:
    await StoredProposals(database).create(a_proposal(approvals=3), CREATED)
    on = [stored(database), stored(other)]
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(vote(on[n % 2], f"U{n % 4}", f"click-{n}")) for n in range(20)]
    row = await StoredProposals(other).get(ID)
    assert row is not None
    assert [task.result().won for task in tasks].count(True) == 1
    assert len({v.by for v in row.votes}) == len(row.votes) == 3
    assert row.state is S.CONFIRMED
    audit_kinds = await stored(database).audit_kinds()
    assert audit_kinds.count(AuditKind.PROPOSAL_VOTED) == 3
    assert audit_kinds.count(AuditKind.PROPOSAL_CONFIRMED) == 1


async def replaced(stores: Stores, key: str = "edit-1") -> Verdict:
    edited = decision(S.SUPERSEDED, key)
    new = a_proposal(id=f"new:{key}", supersedes=ID)
    verdict = await stores.proposals.supersede(
        ID, edited, audit_of(S.SUPERSEDED), new, AuditEvent(AuditKind.PROPOSAL_CREATED, "U2")
    )
    assert verdict is not None
    return verdict


async def test_a_successor_is_stored_together_with_the_end_of_the_old_one(stores: Stores) -> None:
    await stores.proposals.create(a_proposal(), CREATED)
    verdict = await replaced(stores)
    assert await replaced(stores) == verdict
    new = await stores.proposals.get(ProposalId("new:edit-1"))
    assert new is not None
    assert verdict.won
    assert verdict.proposal.state is S.SUPERSEDED
    assert (new.state, new.created_at) == (S.PENDING, verdict.proposal.decided_at)
    assert new.expires_at - new.created_at == LIFETIME
    assert (await stores.audit_kinds())[1:] == [
        AuditKind.PROPOSAL_SUPERSEDED,
        AuditKind.PROPOSAL_CREATED,
    ]


@pytest.mark.parametrize("late", [OVERDUE, a_proposal(state=S.CONFIRMED)], ids=["over", "taken"])
async def test_a_proposal_that_is_no_longer_open_gets_no_successor(
    stores: Stores, late: Proposal
) -> None:
    await stores.proposals.create(late, CREATED)
    verdict = await replaced(stores)
    assert (verdict.won, verdict.proposal) == (False, late)
    assert await stores.proposals.get(ProposalId("new:edit-1")) is None


PEOPLE = {S.CONFIRMED, S.REJECTED}


@pytest.mark.parametrize(
    ("proposal", "possible"),
    [(a_proposal(), PEOPLE), (OVERDUE, {S.EXPIRED})],
    ids=["in time", "overdue"],
)
async def test_one_of_twenty_decisions_at_once_on_two_replicas_wins(
    database: Database, other: Database, proposal: Proposal, possible: set[ProposalState]
) -> None:
    await StoredProposals(database).create(proposal, CREATED)
    start = asyncio.Event()

    async def decide(n: int) -> ProposalState | None:
        store = StoredProposals((database, other)[n % 2])
        to = (S.CONFIRMED, S.REJECTED, S.EXPIRED)[n % 3]
        await start.wait()
        verdict = await store.decide(ID, decision(to, f"try-{n}", f"U{n}"), audit_of(to))
        return to if verdict is not None and verdict.won else None

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(decide(n)) for n in range(20)]
        start.set()
    winners = [to for task in tasks if (to := task.result()) is not None]
    row = await StoredProposals(other).get(ID)
    assert row is not None
    assert winners == [row.state]
    assert row.state in possible
    assert await stored(database).audit_kinds() == [AuditKind.PROPOSAL_CREATED, KINDS[row.state]]
