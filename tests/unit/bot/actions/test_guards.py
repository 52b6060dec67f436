"""Each guard refuses what it is for, in words, and its verdict is on the audit log first."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from bot.actions.catalog import ActionRule
from bot.actions.guards import Refused
from bot.domain.audit import AuditEvent, AuditKind
from bot.domain.ids import ProposalId, UserId
from bot.domain.proposal import Proposal, ProposalState, confirmed_from_row
from bot.ports.failures import StorageUnavailable
from bot.ports.proposals import Departure
from tests.fakes.stores import MemoryAudit
from tests.fixtures_actions import ROLLBACK, World, another, confirm

Change = Callable[[Proposal], Proposal]


async def judged(world: World, by: str = "U-lead", change: Change = lambda row: row) -> object:
    row = await world.proposed()
    await world.store.decide(
        row.id, confirm(row, by), AuditEvent(AuditKind.PROPOSAL_CONFIRMED, by, key="c")
    )
    confirmed = confirmed_from_row(world.row(row.id))
    guards = world.guards()
    return await guards.refusal(confirmed, change(world.row(row.id)))


def refused_by(answer: object) -> str:
    assert isinstance(answer, Refused)
    assert answer.reason
    return answer.guard


async def test_a_valid_confirmation_passes_every_guard() -> None:
    world = World()

    assert await judged(world) is None
    verdicts = [
        e.body["verdict"] for e in world.memory.audit_log if e.kind is AuditKind.GUARD_VERDICT
    ]
    assert verdicts == ["passed"] * 10


@pytest.mark.parametrize(
    ("change", "guard"),
    [
        (lambda row: replace(row, decided_by=None), "require_approval"),
        (lambda row: replace(row, state=ProposalState.PENDING), "require_approval"),
        (
            lambda row: replace(row, four_eyes=True, decided_by=UserId("U-asker")),
            "require_approval",
        ),
        (lambda row: replace(row, params='{"version":"v1"}'), "digest"),
        (lambda row: replace(row, product="payments"), "digest"),
        (lambda row: replace(row, blast_radius="one host"), "blast_radius"),
        (lambda row: replace(row, model_blast_radius="whole cluster"), "blast_radius"),
    ],
)
async def test_a_row_that_differs_from_the_confirmed_one_is_refused(
    change: Change, guard: str
) -> None:
    world = World()

    assert refused_by(await judged(world, change=change)) == guard
    assert world.memory.audit_log[-1].body["guard"] == guard
    assert world.memory.audit_log[-1].body["verdict"] == "refused"


@pytest.mark.parametrize(
    ("rules", "guard"),
    [
        ((), "require_approval"),
        ((replace(ROLLBACK, products=("other",)),), "require_approval"),
        ((replace(ROLLBACK, params_schema={"required": ["version", "ticket"]}),), "params"),
        ((replace(ROLLBACK, blast_radius="whole cluster"),), "blast_radius"),
    ],
)
async def test_the_current_catalogue_counts_and_not_the_cards(
    rules: tuple[ActionRule, ...], guard: str
) -> None:
    world = World()
    row = await world.proposed()
    await world.store.decide(
        row.id, confirm(row), AuditEvent(AuditKind.PROPOSAL_CONFIRMED, "U-lead", key="c")
    )
    guards = world.guards(rules)

    answer = await guards.refusal(confirmed_from_row(world.row(row.id)), world.row(row.id))

    assert refused_by(answer) == guard


async def test_four_eyes_declared_after_the_card_still_applies() -> None:
    world = World()
    row = await world.proposed()
    await world.store.decide(
        row.id, confirm(row, "U-asker"), AuditEvent(AuditKind.PROPOSAL_CONFIRMED, "U", key="c")
    )
    guards = world.guards((replace(ROLLBACK, four_eyes=True),))

    answer = await guards.refusal(confirmed_from_row(world.row(row.id)), world.row(row.id))

    assert refused_by(answer) == "require_approval"


async def test_the_rate_limit_is_per_action_and_product_and_recovers() -> None:
    world = World(rules=(replace(ROLLBACK, rate_limit="1/1h"),))
    first = await world.proposed(number=1)
    await world.carry(first, confirm(first))

    over = await judged_number(world, 2)
    world.later(hours=1)
    after = await judged_number(world, 3)

    assert refused_by(over) == "rate_limit"
    assert after is None


async def judged_number(world: World, number: int) -> object:
    row = await world.proposed(another(number), number)
    await world.store.decide(
        row.id, confirm(row), AuditEvent(AuditKind.PROPOSAL_CONFIRMED, "U", key=f"c{number}")
    )
    guards = world.guards()
    return await guards.refusal(confirmed_from_row(world.row(row.id)), world.row(row.id))


async def test_without_an_audit_log_nothing_passes() -> None:
    class FullAuditLog(MemoryAudit):
        async def append(self, event: AuditEvent) -> None:
            raise StorageUnavailable("disk full")

    world = World()
    world.audit = FullAuditLog(world.memory)

    with pytest.raises(StorageUnavailable):
        await judged(world)


async def test_a_freeze_after_the_confirmation_stops_the_dispatch() -> None:
    world = World()
    row = await world.proposed()
    world.freeze.words = "every action is frozen"
    await world.carry(row, confirm(row))
    assert world.control.posts == []
    assert world.row(row.id).state is ProposalState.FAILED
    assert "every action is frozen" in world.row(row.id).outcome


async def test_a_freeze_while_the_intent_is_written_stops_the_dispatch() -> None:
    world = World()
    row = await world.proposed()
    begin_dispatch = world.store.begin_dispatch

    async def begin_and_freeze(proposal_id: ProposalId, audit: AuditEvent) -> Departure:
        departure = await begin_dispatch(proposal_id, audit)
        world.freeze.words = "every action is frozen"
        return departure

    world.store.begin_dispatch = begin_and_freeze  # type: ignore[method-assign]
    await world.carry(row, confirm(row))
    assert world.control.posts == []
    assert world.row(row.id).state is ProposalState.FAILED


async def test_an_unreadable_freeze_stops_everything() -> None:
    world = World()
    row = await world.proposed()
    world.freeze.broken = True
    with pytest.raises(StorageUnavailable):
        await world.carry(row, confirm(row))
    assert world.control.posts == []
