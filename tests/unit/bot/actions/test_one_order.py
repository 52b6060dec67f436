"""One order is one order: of equal open cards one at most is sent, for any approver."""

import asyncio
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.control_plane.port import AnswerKind, ControlAnswer
from bot.actions.decide import expiry
from bot.domain.audit import AuditKind
from bot.domain.ids import ChannelId, MessageTs, Place, TeamId
from bot.domain.proposal import Proposal, ProposalState, refused_by, too_late
from bot.ports.failures import StorageUnavailable
from tests.fakes.control_plane import LOST
from tests.fakes.journal import Fuse
from tests.fixtures_actions import DRAFT, PLACE, World, call, confirm
from tools.errors import InvalidArguments

S = ProposalState


def channel(number: int) -> Place:
    return replace(PLACE, channel=ChannelId(f"C{number}"))


async def equal_cards(world: World, count: int = 2) -> list[Proposal]:
    """The same order, proposed in as many channels."""
    return [await world.proposed(DRAFT, number, channel(number)) for number in range(count)]


async def test_the_second_of_two_equal_cards_reports_the_first_dispatch() -> None:
    world = World()
    first, second = await equal_cards(world)

    await world.carry(first, confirm(first))
    await world.carry(second, confirm(second))
    await world.quiet()

    assert [post.idempotency_key for post in world.control.posts] == [first.id]
    over = world.row(second.id)
    assert (over.state, refused_by(over)) == (S.SUPERSEDED, "one_order")
    assert f"the same order was sent after this was proposed ({first.id}" in over.outcome
    assert world.wall.shown(second.id).state is S.SUPERSEDED


async def test_equal_cards_are_superseded_by_the_dispatch_and_audited() -> None:
    world = World()
    first, *others = await equal_cards(world, 4)

    await world.carry(first, confirm(first))

    assert {world.row(one.id).state for one in others} == {S.SUPERSEDED}
    rows = [e for e in world.memory.audit_log if e.kind is AuditKind.PROPOSAL_SUPERSEDED]
    assert [(e.body["proposal"], e.body["same"]) for e in rows] == [
        (one.id, first.id) for one in others
    ]
    assert world.came_into.count(S.SUPERSEDED) == 3


async def test_a_press_on_a_superseded_card_says_that_it_was_not_confirmed() -> None:
    world = World()
    first, second = await equal_cards(world)
    await world.carry(first, confirm(first))

    told = too_late(world.row(second.id), "someone")

    assert told == (
        "Already superseded and not run: the same was sent by another proposal. "
        "Ask again if it should be done once more."
    )


async def test_two_equal_confirmations_at_once_dispatch_once_and_the_refusal_is_audited() -> None:
    world = World()
    rows = await equal_cards(world)

    async with asyncio.TaskGroup() as group:
        for row in rows:
            group.create_task(world.carry(row, confirm(row)))

    assert len(world.control.posts) == 1
    states = sorted(world.row(row.id).state for row in rows)
    assert states == [S.SUCCEEDED, S.SUPERSEDED]
    verdicts = [
        e.body
        for e in world.memory.audit_log
        if e.kind is AuditKind.GUARD_VERDICT and e.body["verdict"] == "refused"
    ]
    assert [body["guard"] for body in verdicts] == ["one_order"]
    assert "the same order was sent after this was proposed" in str(verdicts[0]["reason"])


@given(
    count=st.integers(2, 5),
    turns=st.lists(st.integers(0, 4), max_size=60),
    moments=st.lists(st.none() | st.integers(0, 80), min_size=5, max_size=5),
)
async def test_any_interleaving_with_any_crash_dispatches_at_most_once(
    count: int, turns: list[int], moments: list[int | None]
) -> None:
    world = World()
    rows = await equal_cards(world, count)

    async def pressed(number: int) -> None:
        for _ in range(turns.count(number)):
            await asyncio.sleep(0)
        fuse = Fuse(moments[number])
        await world.carry(rows[number], confirm(rows[number]), fuse)

    async with asyncio.TaskGroup() as group:
        for number in range(count):
            group.create_task(pressed(number))

    states = [world.row(row.id).state for row in rows]
    went_out = [s for s in states if s in (S.SUCCEEDED, S.UNKNOWN)]
    assert len(world.control.posts) <= 1
    assert len(went_out) == 1
    assert states.count(S.SUPERSEDED) == count - 1


@pytest.mark.parametrize("moment", range(76))
async def test_a_kill_at_any_point_of_the_first_sends_no_second_dispatch(moment: int) -> None:
    world = World()
    first, second = await equal_cards(world)

    await world.carry(first, confirm(first), Fuse(moment))
    await world.carry(second, confirm(second))

    assert len(world.control.posts) <= 1
    assert world.row(second.id).state is S.SUPERSEDED


async def test_an_unknown_end_blocks_its_equal_and_says_so() -> None:
    world = World()
    first, second = await equal_cards(world)
    world.control.answer, world.control.before_settled = LOST, [LOST] * 3
    keep = world.store.retire_same

    async def gone(*_args: object) -> list[str]:
        raise StorageUnavailable("for a moment")

    world.store.retire_same = gone  # type: ignore[method-assign,assignment]
    await world.carry(first, confirm(first))
    world.store.retire_same = keep  # type: ignore[method-assign]
    assert (world.row(first.id).state, world.row(second.id).state) == (S.UNKNOWN, S.PENDING)

    await world.carry(second, confirm(second))

    assert len(world.control.posts) == 1
    assert world.row(second.id).state is S.SUPERSEDED
    line = world.wall.lines[f"{second.id}:outcome"]
    assert "it may have taken effect, so check the target first" in line
    assert "Ask again if it should be done once more." in line


async def test_an_equal_proposal_after_the_end_is_dispatched() -> None:
    world = World()
    first = await world.proposed()
    await world.carry(first, confirm(first))

    again = await world.proposed(DRAFT, 2)
    await world.carry(again, confirm(again))

    assert [post.idempotency_key for post in world.control.posts] == [first.id, again.id]


async def test_an_equal_proposal_during_the_first_dispatch_is_not_dispatched() -> None:
    world = World()
    world.control.answer = ControlAnswer(AnswerKind.RUNNING, "step 1 of 3")
    first = await world.proposed()
    await world.carry(first, confirm(first))
    assert world.row(first.id).state is S.DISPATCHING

    meanwhile = await world.proposed(DRAFT, 2, channel(2))
    await world.carry(meanwhile, confirm(meanwhile))

    assert len(world.control.posts) == 1
    assert "it had not ended yet" in world.row(meanwhile.id).outcome


async def test_another_parameter_is_another_dispatch() -> None:
    world = World()
    first, other = (
        await world.proposed(DRAFT, 1),
        await world.proposed(replace(DRAFT, params={"version": "v40"}), 2),
    )

    await world.carry(first, confirm(first))
    await world.carry(other, confirm(other))

    assert len(world.control.posts) == 2


async def test_a_rejected_or_expired_proposal_blocks_no_other() -> None:
    world = World()
    gone = await world.proposed()
    world.later(minutes=11)
    await world.carry(gone, expiry(gone.id))
    row = await world.proposed(DRAFT, 2)

    await world.carry(row, confirm(row))

    assert len(world.control.posts) == 1


async def test_a_dispatch_stopped_by_the_last_guard_blocks_no_other() -> None:
    world = World()
    first, second = await equal_cards(world)
    begin_dispatch = world.store.begin_dispatch

    async def begin_and_freeze(*args: object) -> object:
        departure = await begin_dispatch(*args)  # type: ignore[arg-type]
        world.freeze.words = "every action is frozen"
        return departure

    world.store.begin_dispatch = begin_and_freeze  # type: ignore[method-assign,assignment]
    await world.carry(first, confirm(first))
    world.store.begin_dispatch = begin_dispatch  # type: ignore[method-assign]
    world.freeze.words = ""

    await world.carry(second, confirm(second))

    assert [post.idempotency_key for post in world.control.posts] == [second.id]


async def test_an_open_proposal_in_the_channel_is_linked_and_not_repeated() -> None:
    world = World()
    first = await world.proposed()
    thread = replace(PLACE, thread_ts=MessageTs("1700000000.000777"))

    with pytest.raises(InvalidArguments) as told:
        await world.intake(thread).propose(DRAFT, call(2, session_id="s2"))

    assert list(world.store.rows) == [first.id]
    assert str(told.value) == (
        f"the same is proposed already in another thread of this channel: {first.id} is open until "
        "12:10 UTC; point people to its card. Nothing new was stored."
    )
    assert world.came_into == [S.PENDING]


async def test_a_running_action_in_the_channel_is_not_proposed_again() -> None:
    world = World()
    world.control.answer = ControlAnswer(AnswerKind.RUNNING, "step 1 of 3")
    first = await world.proposed()
    await world.carry(first, confirm(first))

    with pytest.raises(InvalidArguments, match="confirmed, and has not ended yet"):
        await world.proposed(DRAFT, 2)


async def test_an_expired_proposal_is_proposed_again_before_the_clock_runs() -> None:
    world = World()
    first = await world.proposed()
    world.later(minutes=10)

    again = await world.proposed(DRAFT, 2)

    assert (world.row(first.id).state, again.state) == (S.PENDING, S.PENDING)


async def test_a_retried_call_gets_its_own_card() -> None:
    world = World()
    first = await world.proposed()

    assert (await world.proposed()).id == first.id


async def test_an_api_conversation_gets_only_its_own_cards() -> None:
    world = World()
    http = replace(PLACE, team=TeamId("@http"))
    await world.proposed(DRAFT, 1, http)

    elsewhere = await world.proposed(DRAFT, 2, replace(http, thread_ts=MessageTs("2")))

    assert elsewhere.state is S.PENDING
    with pytest.raises(InvalidArguments, match="in this thread"):
        await world.proposed(DRAFT, 3, http)
