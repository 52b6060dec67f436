"""A stranded confirmed proposal ends truthfully, once, and nothing is sent."""

from collections.abc import Sequence
from contextlib import suppress

import orjson
import pytest

from bot.actions.display import ProposalDisplay
from bot.actions.stranded import StrandedSweep
from bot.domain.audit import AuditKind
from bot.domain.ids import ProposalId
from bot.domain.proposal import ProposalState
from tests.fakes.journal import Crash, Fuse, MemoryJournal
from tests.fixtures_actions import World, confirm, no_sleep, reject

S = ProposalState
MOMENTS = range(45)  # past the last one of a whole decision
TRUTHS = {
    (S.FAILED, 0),  # not sent, and it says so
    (S.UNKNOWN, 0),  # the intent was written: whether it was sent cannot be known
    (S.UNKNOWN, 1),
    (S.SUCCEEDED, 1),  # the decision itself came so far
    (S.PENDING, 0),  # it had not begun
}


def sweep(world: World, *found: ProposalId) -> StrandedSweep:
    """Of a process that finds these."""

    async def find(_limit: int) -> Sequence[ProposalId]:
        return found

    display = ProposalDisplay(world.cards, world.wall, sleep=no_sleep)
    return StrandedSweep(find, world.store, display, on_state=world.came_into.append)


async def died(world: World, moment: int | None) -> ProposalId:
    """A proposal whose Confirm died for good at that moment."""
    row = await world.proposed()
    fuse = Fuse(moment)
    with suppress(Crash):
        await world.decide(fuse).run(row.id, confirm(row), MemoryJournal(fuse))
    return row.id


@pytest.mark.parametrize("moment", MOMENTS)
async def test_a_decision_killed_at_any_point_ends_correct_and_sends_nothing(
    moment: int,
) -> None:
    world = World()
    left = await died(world, moment)
    sent = len(world.control.posts)

    await sweep(world, left).run()

    row = world.row(left)
    assert (row.state, len(world.control.posts)) in TRUTHS
    assert len(world.control.posts) == sent


async def test_a_possibly_sent_action_is_unknown_on_card_thread_and_record() -> None:
    world = World()
    row = await world.proposed()
    await world.store.decide(row.id, confirm(row), world.memory.audit_log[0])
    await world.store.begin_dispatch(row.id, world.memory.audit_log[0])

    ended = await sweep(world, row.id).run()

    assert ended == 1
    assert world.wall.shown(row.id).state is S.UNKNOWN
    (line,) = world.wall.words()
    assert "it may have taken effect" in line
    assert "not sent again" in line
    (event,) = [e for e in world.memory.audit_log if e.kind is AuditKind.DISPATCH_OUTCOME]
    assert event.body["state"] == "unknown"
    assert world.came_into[-1] is S.UNKNOWN


async def test_an_unsent_action_says_that_nothing_changed() -> None:
    world = World()
    row = await world.proposed()
    await world.store.decide(row.id, confirm(row), world.memory.audit_log[0])

    await sweep(world, row.id).run()

    assert world.wall.shown(row.id).state is S.FAILED
    assert "nothing was changed" in orjson.loads(world.row(row.id).outcome)["error"]


async def test_a_second_sweep_posts_nothing() -> None:
    world = World()
    row = await world.proposed()
    await world.store.decide(row.id, confirm(row), world.memory.audit_log[0])

    assert [await sweep(world, row.id).run(), await sweep(world, row.id).run()] == [1, 0]
    assert len(world.wall.words()) == 1


async def test_a_proposal_decided_otherwise_is_left_alone() -> None:
    world = World()
    row = await world.proposed()
    await world.carry(row, reject(row))

    assert await sweep(world, row.id, ProposalId("p_unknown")).run() == 0
    assert world.row(row.id).state is S.REJECTED
