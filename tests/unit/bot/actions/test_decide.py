"""One winner, one dispatch, a truthful card: in any order, after any crash, for any answer."""

import asyncio
from dataclasses import replace

import pytest
import structlog
from pydantic import JsonValue

from adapters.control_plane.port import AnswerKind, ControlAnswer
from bot.actions.decide import expiry
from bot.domain.audit import AuditKind
from bot.domain.ids import ProposalId, UserId
from bot.domain.proposal import ProposalState
from bot.ports.failures import MessageGone, SurfaceFailed, SurfaceGone
from bot.telemetry.spans import trace_of
from tests.fakes.control_plane import LOST, FakeControlPlane
from tests.fakes.journal import Fuse, MemoryJournal
from tests.fixtures_actions import DRAFT, ROLLBACK, SCALE, World, confirm, reject

S = ProposalState


async def test_a_confirmed_proposal_is_sent_once_with_what_the_card_showed() -> None:
    world = World()
    row = await world.proposed()

    await world.carry(row, confirm(row))

    (order,) = world.control.posts
    assert (order.idempotency_key, order.action, order.product) == (row.id, row.action, "checkout")
    assert order.params == {"version": "v41"}
    assert order.confirmed_by == "U-lead"
    assert world.row(row.id).state is S.SUCCEEDED
    assert world.row(row.id).outcome == '{"status":"rolled back"}'
    assert world.wall.shown(row.id).state is S.SUCCEEDED
    assert [p.state for p in world.wall.cards[row.id]] == [S.PENDING, S.CONFIRMED, S.SUCCEEDED]
    assert world.came_into == [S.PENDING, S.CONFIRMED, S.SUCCEEDED]
    assert "succeeded" in world.wall.words()[0]


async def test_everything_is_audited_before_it_happens() -> None:
    world = World()
    row = await world.proposed()

    await world.carry(row, confirm(row))

    assert world.memory.kinds() == [
        AuditKind.PROPOSAL_CREATED,
        AuditKind.PROPOSAL_CONFIRMED,
        *[AuditKind.GUARD_VERDICT] * 10,
        AuditKind.DISPATCH_INTENT,
        AuditKind.DISPATCH_OUTCOME,
    ]
    guards = [e.body["guard"] for e in world.memory.audit_log if e.kind is AuditKind.GUARD_VERDICT]
    assert guards == [
        "require_approval",
        "digest",
        "one_order",
        "params",
        "channel",
        "freeze",
        "rate_limit",
        "blast_radius",
        "dry_run",
        "drift",
    ]


async def test_a_rejection_keeps_its_reason_and_sends_nothing() -> None:
    world = World()
    row = await world.proposed()

    await world.carry(row, reject(row))

    assert world.control.posts == []
    assert world.row(row.id).reason == "not now"
    assert world.memory.audit_log[-1].kind is AuditKind.PROPOSAL_REJECTED
    assert world.memory.audit_log[-1].body["reason"] == "not now"
    assert world.wall.shown(row.id).state is S.REJECTED


@pytest.mark.parametrize("winner", [confirm, reject])
async def test_the_loser_learns_privately_who_won_and_is_audited(winner: object) -> None:
    world = World()
    row = await world.proposed()
    await world.carry(row, winner(row))  # type: ignore[operator]

    await world.carry(row, confirm(row, by="U-late"))

    ((user, text),) = world.wall.whispers
    assert user == "U-late"
    assert str(world.row(row.id).decided_by) in text
    assert "12:00" in text
    assert world.memory.audit_log[-1].kind is AuditKind.CLICK_REFUSED
    assert len(world.control.posts) <= 1


async def test_confirm_and_reject_at_once_have_one_winner() -> None:
    world = World()
    row = await world.proposed()

    async with asyncio.TaskGroup() as group:
        group.create_task(world.carry(row, confirm(row)))
        group.create_task(world.carry(row, reject(row)))
        group.create_task(world.carry(row, confirm(row, by="U-third")))

    assert len(world.control.posts) == (world.row(row.id).state is S.SUCCEEDED)
    assert len(world.wall.whispers) == 2
    assert world.wall.shown(row.id).state is world.row(row.id).state


async def test_a_press_after_the_expiry_expires_the_proposal_and_says_so() -> None:
    world = World()
    row = await world.proposed()
    world.later(minutes=10)

    await world.carry(row, confirm(row))

    assert world.control.posts == []
    assert world.row(row.id).state is S.EXPIRED
    assert world.wall.shown(row.id).state is S.EXPIRED
    assert "expired at 12:10" in world.wall.whispers[0][1]


async def test_an_early_expiry_changes_nothing() -> None:
    world = World()
    row = await world.proposed()

    await world.carry(row, expiry(row.id))

    assert world.row(row.id).state is S.PENDING
    assert world.wall.whispers == []


async def test_an_unknown_proposal_is_skipped() -> None:
    world = World()
    row = await world.proposed()

    await world.carry(replace(row, id=ProposalId("p_none")), confirm(row))

    assert world.control.posts == []


async def test_the_logs_of_a_decision_name_the_turn_that_proposed_it() -> None:
    world = World()
    row = await world.proposed()

    await world.carry(row, confirm(row))

    named = structlog.contextvars.get_contextvars()
    assert named["trace"] == trace_of(row.turn_id).hex()
    assert (named["turn"], named["session"]) == (row.turn_id, row.session_id)


async def test_a_row_with_changed_arguments_is_not_sent() -> None:
    world = World()
    row = await world.proposed()
    world.store.rows[row.id] = replace(world.row(row.id), params='{"version":"v1"}')

    await world.carry(row, confirm(row))

    assert world.control.posts == []
    assert world.row(row.id).state is S.FAILED
    assert "digest" in world.row(row.id).outcome
    assert world.wall.shown(row.id).state is S.FAILED


@pytest.mark.parametrize(
    ("answer", "state"),
    [
        (ControlAnswer(AnswerKind.FAILED, "refused it with 409", 409, {"e": 1}), S.FAILED),
        (ControlAnswer(AnswerKind.NOT_SENT, "cannot be reached"), S.FAILED),
    ],
)
async def test_a_refusal_is_a_failure_without_a_status_request(
    answer: ControlAnswer, state: ProposalState
) -> None:
    world = World(control=FakeControlPlane(answer))
    row = await world.proposed()

    await world.carry(row, confirm(row))

    assert world.row(row.id).state is state
    assert answer.words in world.row(row.id).outcome
    assert world.control.asked == []


async def test_a_lost_answer_is_resolved_by_a_status_request() -> None:
    running = ControlAnswer(AnswerKind.RUNNING, "status lookup says running", 200)
    world = World(control=FakeControlPlane(LOST, [running, LOST]))
    row = await world.proposed()

    await world.carry(row, confirm(row))

    assert (len(world.control.posts), len(world.control.asked)) == (1, 3)
    assert world.row(row.id).state is S.SUCCEEDED


async def test_an_unresolved_answer_is_unknown_and_says_what_to_check() -> None:
    world = World(control=FakeControlPlane(LOST, [LOST] * 3))
    row = await world.proposed()

    await world.carry(row, confirm(row))

    assert len(world.control.posts) == 1
    assert world.row(row.id).state is S.UNKNOWN
    assert "check the target" in world.wall.words()[0]


async def test_without_a_status_url_nothing_is_requested() -> None:
    silent = replace(ROLLBACK, endpoint=replace(ROLLBACK.endpoint, status_url=""))
    world = World(rules=(silent,), control=FakeControlPlane(LOST))
    row = await world.proposed()

    await world.carry(row, confirm(row))

    assert world.control.asked == []
    assert world.row(row.id).state is S.UNKNOWN


async def test_secrets_in_an_answer_reach_neither_row_nor_journal_nor_thread() -> None:
    body: JsonValue = {"note": "SECRET-canary"}
    world = World(
        control=FakeControlPlane(ControlAnswer(AnswerKind.SUCCEEDED, "answered 200", 200, body))
    )
    row = await world.proposed()

    journal = await world.carry(row, confirm(row))

    kept = f"{world.row(row.id)} {journal.record} {world.wall.lines} {world.memory.audit_log}"
    assert "canary" not in kept
    assert world.row(row.id).state is S.SUCCEEDED


async def test_an_answer_that_cannot_be_redacted_is_withheld() -> None:
    world = World()
    world.redactor.fails = True
    row = await world.proposed()

    await world.carry(row, confirm(row))

    assert world.row(row.id).state is S.SUCCEEDED
    assert "rolled back" not in world.row(row.id).outcome
    assert "hidden" in world.row(row.id).outcome


async def test_a_deleted_thread_does_not_stop_the_dispatch() -> None:
    world = World()
    row = await world.proposed()
    world.wall.failures = [SurfaceGone()] * 10

    await world.carry(row, confirm(row))

    assert world.row(row.id).state is S.SUCCEEDED


async def test_a_card_that_slack_refuses_briefly_ends_correct() -> None:
    world = World()
    row = await world.proposed()
    world.wall.failures = [SurfaceFailed("ratelimited", retryable=True)] * 2

    await world.carry(row, confirm(row))

    assert world.wall.shown(row.id).state is S.SUCCEEDED


async def test_a_process_that_froze_during_its_edit_leaves_no_stale_card() -> None:
    world = World()
    row = await world.proposed()
    gate = world.wall.gate = asyncio.Event()
    frozen = asyncio.create_task(world.carry(row, reject(row)))
    await world.wall.at_gate.wait()
    world.store.rows[row.id] = replace(world.row(row.id), outcome="changed meanwhile")

    await world.quiet()
    assert world.wall.shown(row.id).outcome == "changed meanwhile"
    gate.set()
    await frozen

    assert world.wall.shown(row.id).outcome == "changed meanwhile"


async def test_losers_do_not_edit_a_correct_card() -> None:
    world = World()
    row = await world.proposed()
    await world.carry(row, confirm(row))
    edits = len(world.wall.cards[row.id])

    for press in range(5):
        await world.carry(row, confirm(row, by=f"U-{press}"))

    assert len(world.wall.cards[row.id]) == edits


async def test_a_card_in_a_lost_channel_is_correct_once_it_returns() -> None:
    world = World()
    row = await world.proposed()
    world.wall.failures = [SurfaceGone("not_in_channel")] * 4

    await world.carry(row, reject(row))
    await world.quiet()
    assert world.wall.shown(row.id).state is S.PENDING
    world.wall.failures.clear()
    await world.quiet()

    assert world.wall.shown(row.id).state is S.REJECTED


@pytest.mark.parametrize(
    ("answer", "state"),
    [
        (ControlAnswer(AnswerKind.SUCCEEDED, "ok"), S.SUCCEEDED),
        (ControlAnswer(AnswerKind.FAILED, "no"), S.FAILED),
    ],
)
async def test_an_end_during_a_platform_outage_is_reported_afterwards(
    answer: ControlAnswer, state: ProposalState
) -> None:
    world = World(control=FakeControlPlane(answer))
    row = await world.proposed()
    world.wall.failures = [SurfaceFailed("token_revoked", retryable=False)] * 50

    await world.carry(row, confirm(row))
    await world.quiet()
    assert world.wall.words() == []
    world.wall.failures.clear()
    await world.quiet()

    assert world.wall.shown(row.id).state is state
    assert list(world.wall.lines) == [f"{row.id}:outcome"]


async def test_a_deleted_card_is_left_alone() -> None:
    world = World()
    row = await world.proposed()
    world.wall.failures = [MessageGone("message_not_found")]

    await world.carry(row, reject(row))
    await world.quiet()

    assert await world.cards.due(10) == []
    assert world.wall.shown(row.id).state is S.PENDING


def _ticks_of(answer: ControlAnswer, settled: int) -> int:
    """How many moments one whole confirmation has."""

    async def count() -> int:
        world = World(control=FakeControlPlane(answer, [LOST] * settled))
        row = await world.proposed()
        fuse = Fuse()
        await world.decide(fuse).run(row.id, confirm(row), MemoryJournal(fuse))
        return fuse.ticks

    return asyncio.run(count())


DONE_TICKS = 76  # a little more than a confirmation has; `test_every_kill_point_is_tried` holds it


def test_every_kill_point_is_tried() -> None:
    assert _ticks_of(FakeControlPlane().answer, 0) < DONE_TICKS


@pytest.mark.parametrize("second", [None, 0, 3, 11])
@pytest.mark.parametrize("moment", range(DONE_TICKS))
async def test_a_kill_at_any_point_sends_at_most_once_and_ends_correct(
    moment: int, second: int | None
) -> None:
    world = World()
    row = await world.proposed()

    await world.carry(row, confirm(row), Fuse(moment), Fuse(second))
    await world.quiet()

    final = world.row(row.id)
    assert len(world.control.posts) <= 1
    # The control plane can be asked: what did not arrive is unknown, what did is a success.
    assert final.state is (S.SUCCEEDED if world.control.effects else S.UNKNOWN)
    assert world.wall.shown(row.id).state is final.state
    assert list(world.wall.lines) == [f"{row.id}:outcome"]
    assert world.memory.kinds().count(AuditKind.DISPATCH_INTENT) == 1
    assert world.memory.kinds().count(AuditKind.DISPATCH_OUTCOME) == 1


@pytest.mark.parametrize("moment", range(DONE_TICKS))
async def test_a_kill_without_a_status_url_never_claims_an_unknown_outcome(
    moment: int,
) -> None:
    silent = replace(ROLLBACK, endpoint=replace(ROLLBACK.endpoint, status_url=""))
    world = World(rules=(silent,))
    row = await world.proposed()

    await world.carry(row, confirm(row), Fuse(moment))
    await world.quiet()

    final = world.row(row.id)
    assert len(world.control.posts) <= 1
    assert final.state in (S.SUCCEEDED, S.UNKNOWN)
    assert (final.state, world.control.effects) != (S.SUCCEEDED, [])
    assert world.wall.shown(row.id).state is final.state


async def test_two_processes_that_both_believe_they_won_send_once() -> None:
    world = World()
    row = await world.proposed()

    async with asyncio.TaskGroup() as group:
        group.create_task(world.carry(row, confirm(row)))
        group.create_task(world.carry(row, confirm(row)))

    assert len(world.control.posts) == 1


async def test_a_refusing_guard_ends_in_failed_with_its_reason_on_card_and_thread() -> None:
    world = World()
    first = await world.proposed(replace(DRAFT, action="scale", product="shop-web"), 1)
    other = replace(DRAFT, action="scale", product="shop-web", params={"version": "v40"})
    second = await world.proposed(other, 2)
    await world.carry(first, confirm(first))

    await world.carry(second, confirm(second))

    assert len(world.control.posts) == 1
    assert world.row(second.id).state is S.FAILED
    assert "rate limit of 1/1h" in world.wall.shown(second.id).outcome
    assert "rate limit of 1/1h" in world.wall.lines[f"{second.id}:outcome"]
    assert AuditKind.DISPATCH_INTENT not in world.memory.kinds()[-2:]


@pytest.mark.parametrize("moment", range(40))
async def test_a_refusal_survives_a_kill_and_stays_a_refusal(moment: int) -> None:
    world = World(rules=(replace(SCALE, four_eyes=True),))
    row = await world.proposed(replace(DRAFT, action="scale", product="shop-web"))

    await world.carry(row, confirm(row, by="U-asker"), Fuse(moment))
    await world.quiet()

    assert world.control.posts == []
    assert world.row(row.id).state is S.FAILED
    assert world.wall.shown(row.id).state is S.FAILED


async def test_rate_limited_actions_that_race_stay_within_their_limit() -> None:
    world = World()
    draft = replace(DRAFT, action="scale", product="shop-web")
    rows = [
        await world.proposed(replace(draft, params={"version": f"v{number}"}), number)
        for number in range(4)
    ]

    async with asyncio.TaskGroup() as group:
        for row in rows:
            group.create_task(world.carry(row, confirm(row, by=UserId(f"U-{row.id}"))))

    assert len(world.control.posts) <= 1
