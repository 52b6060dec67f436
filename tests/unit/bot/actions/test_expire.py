"""The sweep starts due work, once per proposal, and leaves the rest for later."""

import pytest

from bot.actions.decide import ExpirySweep
from bot.domain.proposal import ProposalState
from bot.ports.failures import StorageUnavailable
from tests.fakes.workflows import RecordingWorkflows
from tests.fixtures_actions import World, another


async def test_only_due_proposals_are_expired_with_the_clocks_key() -> None:
    world = World()
    early = await world.proposed(another(1), 1)
    world.later(minutes=5)
    await world.proposed(another(2), 2)
    world.later(minutes=5)
    workflows = RecordingWorkflows()

    started = await ExpirySweep(world.store, workflows).run()

    ((proposal_id, decision),) = workflows.decisions
    assert started == 1
    assert proposal_id == early.id
    assert (decision.to, decision.by) == (ProposalState.EXPIRED, "clock")
    assert decision.key == f"{early.id}:expired"


async def test_two_sweeps_request_the_same_decision() -> None:
    world = World()
    await world.proposed()
    world.later(minutes=10)
    workflows = RecordingWorkflows()

    await ExpirySweep(world.store, workflows).run()
    await ExpirySweep(world.store, workflows).run()

    first, second = workflows.decisions
    assert first == second


async def test_a_database_outage_leaves_the_rest_for_the_next_sweep() -> None:
    world = World()
    await world.proposed(another(1), 1)
    await world.proposed(another(2), 2)
    world.later(minutes=10)
    workflows = RecordingWorkflows(StorageUnavailable("locked"))
    sweep = ExpirySweep(world.store, workflows)

    with pytest.raises(StorageUnavailable):
        await sweep.run()

    assert await sweep.run() == 2


async def test_a_swept_proposal_ends_in_an_expired_card() -> None:
    world = World()
    row = await world.proposed()
    world.later(minutes=10)
    workflows = RecordingWorkflows()
    await ExpirySweep(world.store, workflows).run()

    await world.carry(row, workflows.decisions[0][1])

    assert world.wall.shown(row.id).state is ProposalState.EXPIRED
    assert world.wall.words() == [
        "⌛ Roll back checkout to v41: expired; no one decided in time, nothing was run. "
        "Ask again for a new card."
    ]
