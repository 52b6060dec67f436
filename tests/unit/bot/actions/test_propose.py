"""A proposal is checked, stored and shown; it never does anything."""

import asyncio
from dataclasses import replace
from datetime import timedelta

import pytest

from bot.domain.audit import AuditKind
from bot.domain.channel import DIRECT, UNKNOWN, Channel, ChannelRule, channel_of
from bot.domain.ids import ChannelId
from bot.domain.proposal import LIFETIME, ProposalState
from bot.ports.failures import StorageUnavailable, SurfaceFailed, SurfaceGone
from bot.slack.views.cards import CONFIRM_ACTION, card
from tests.fakes.card_wall import TRAITS, CardWall
from tests.fixtures_actions import DRAFT, HERE, NOW, PLACE, ROLLBACK, World, another, call
from tools.errors import CapabilityUnavailable, InvalidArguments
from tools.operation import ProposalDraft

NOBODYS = Channel("incident-checkout", ChannelRule("*"))


async def test_declared_and_claimed_effects_are_stored_separately() -> None:
    world = World()

    receipt = await world.intake().propose(DRAFT, call(untrusted_read=True))

    row = world.row(receipt.proposal_id)
    assert (row.state, row.place, row.params) == (
        ProposalState.PENDING,
        PLACE,
        '{"version":"v41"}',
    )
    assert (row.blast_radius, row.model_blast_radius) == ("one service", "one service")
    assert (row.asked_by.user, row.untrusted_read, row.reversible) == ("U-asker", True, True)
    assert (row.expires_at, receipt.expires_at) == (NOW + LIFETIME, NOW + LIFETIME)
    assert receipt.awaits == ("responder",)
    assert receipt.posted
    assert row.card_ts is not None
    assert world.memory.kinds() == [AuditKind.PROPOSAL_CREATED]
    assert world.control.posts == []


async def test_omitted_parameters_are_audited() -> None:
    world = World()
    await world.intake().propose(DRAFT, call(1))
    await world.intake().propose(replace(DRAFT, params={}), call(2))

    given, none = (event.body for event in world.memory.audit_log)
    assert "left_open" not in given
    assert "your deploy system picks" in str(none["left_open"])


async def test_an_actions_roles_are_required_in_addition_to_the_channels() -> None:
    world = World(rules=(replace(ROLLBACK, confirm=("sre-lead", "on-call")),))

    receipt = await world.intake().propose(DRAFT, call())

    row = world.row(receipt.proposal_id)
    assert receipt.awaits == ("responder (only if also an sre-lead or on call)",)
    assert (row.confirm_roles, row.action_roles) == (("responder",), ("sre-lead", "on-call"))
    assert world.memory.audit_log[0].body["action_roles"] == ["sre-lead", "on-call"]


async def test_an_action_cannot_add_approvers_to_a_channel() -> None:
    world = World(rules=(replace(ROLLBACK, confirm=("sre-lead",)),), channel=NOBODYS)

    with pytest.raises(InvalidArguments, match="no role may confirm in this channel"):
        await world.intake().propose(DRAFT, call())


@pytest.mark.parametrize("hours", [-1, 1])
async def test_a_proposal_expires_by_the_databases_clock(
    hours: int,
) -> None:
    world = World()
    jumped = call(now=NOW + timedelta(hours=hours))

    receipt = await world.intake().propose(DRAFT, jumped)

    assert receipt.expires_at == NOW + LIFETIME


async def test_a_repeated_tool_call_is_one_proposal_with_one_life() -> None:
    world = World()
    first = await world.intake().propose(DRAFT, call())
    world.later(minutes=3)

    again = await world.intake().propose(DRAFT, call())

    assert again == first
    assert len(world.store.rows) == 1
    assert world.memory.kinds() == [AuditKind.PROPOSAL_CREATED]


async def test_a_reused_call_number_for_another_action_is_another_proposal() -> None:
    world = World()

    first = await world.intake().propose(DRAFT, call())
    other = await world.intake().propose(replace(DRAFT, params={"version": "v40"}), call())

    assert first.proposal_id != other.proposal_id


async def test_equal_params_in_any_order_have_one_digest() -> None:
    rule = replace(ROLLBACK, params_schema={"additionalProperties": True})
    world = World(rules=(rule,))
    intake = world.intake()

    first = await intake.propose(replace(DRAFT, params={"a": 1, "b": [2]}), call(1))
    elsewhere = world.intake(replace(PLACE, channel=ChannelId("C2")))
    second = await elsewhere.propose(replace(DRAFT, params={"b": [2], "a": 1}), call(2))

    assert world.row(first.proposal_id).digest == world.row(second.proposal_id).digest


@pytest.mark.parametrize(
    ("draft", "said"),
    [
        (replace(DRAFT, action="delete-everything"), "What exists for checkout"),
        (replace(DRAFT, action="scale"), "not declared for checkout"),
        (replace(DRAFT, product="check out"), "product must be"),
        (replace(DRAFT, params={"version": 41}), "version"),
        (replace(DRAFT, params={"force": True}), "contains a name that is not declared"),
        (replace(DRAFT, params={"version": "v" * 3000}), "too long"),
        (replace(DRAFT, params={"version": "\u202e" * 500}), "too long"),
        (replace(DRAFT, params={"version": 2**80}), "JSON cannot carry"),
        (replace(DRAFT, blast_radius="whole cluster"), "at most one service"),
        (replace(DRAFT, blast_radius="The  Whole Cluster, sadly"), "at most one service"),
    ],
)
async def test_an_unproposable_action_is_reported_and_leaves_nothing(
    draft: ProposalDraft, said: str
) -> None:
    world = World()

    with pytest.raises(InvalidArguments) as caught:
        await world.intake().propose(draft, call())

    assert said in caught.value.message
    assert (world.store.rows, world.wall.cards, world.memory.audit_log) == ({}, {}, [])


@pytest.mark.parametrize("filler", ["x", "&", "`", "@", "é", "\u202e", "😀", "\u3164"])
async def test_every_accepted_proposal_fits_on_the_card(filler: str) -> None:
    world = World()
    accepted = []
    for length in range(50, TRAITS.card_chars, 50):
        draft = replace(DRAFT, params={"version": filler * length})
        try:
            receipt = await world.intake(max_open=99).propose(draft, call(length))
        except InvalidArguments:
            break
        accepted.append(world.row(receipt.proposal_id))

    longest = card(accepted[-1], "responder", NOW)

    assert CONFIRM_ACTION in str(longest.blocks)


async def test_open_proposals_of_a_session_are_capped_even_when_raised_at_once() -> None:
    world = World()
    intake = world.intake()

    results = await asyncio.gather(
        *(intake.propose(another(number), call(number)) for number in range(6)),
        return_exceptions=True,
    )

    assert sum(isinstance(r, InvalidArguments) for r in results) == 3
    assert len(world.store.rows) == 3


async def test_the_limit_frees_up_when_proposals_expire_or_belong_elsewhere() -> None:
    world = World()
    intake = world.intake(max_open=1)
    await intake.propose(another(1), call(1))

    await intake.propose(another(2), call(2, session_id="s2"))
    world.later(minutes=10)
    await intake.propose(another(3), call(3))

    assert len(world.store.rows) == 3


@pytest.mark.parametrize("failure", [SurfaceGone(), SurfaceFailed("down", retryable=True)])
async def test_a_card_that_cannot_be_shown_is_reported_and_the_proposal_stays(
    failure: Exception,
) -> None:
    world = World()
    world.wall.failures = [failure]

    receipt = await world.intake().propose(DRAFT, call())

    assert not receipt.posted
    assert world.row(receipt.proposal_id).card_ts is None


async def test_a_card_that_could_not_be_shown_is_shown_later() -> None:
    world = World()
    world.wall.failures = [SurfaceFailed("down", retryable=True)]
    await world.intake().propose(DRAFT, call())

    waiting = await world.intake().propose(DRAFT, call())
    await world.quiet()
    again = await world.intake().propose(DRAFT, call())

    assert (waiting.posted, again.posted) == (False, True)
    assert world.wall.shown(world.row(again.proposal_id).id).state is ProposalState.PENDING


async def test_a_database_outage_is_reported_as_unavailable() -> None:
    world = World()

    async def gone(*_: object) -> None:
        raise StorageUnavailable("locked")

    world.store.create = gone  # type: ignore[method-assign, assignment]

    with pytest.raises(CapabilityUnavailable):
        await world.intake().propose(DRAFT, call())

    assert world.wall.cards == {}


@pytest.mark.parametrize(
    ("channel", "said"),
    [
        (channel_of((), "incident-x"), 'this channel: .* of incident-x; .* match = "incident-x"'),
        (channel_of((ChannelRule("incident-*"),), "incident-x"), 'match = "incident-\\*"'),
        (channel_of((), DIRECT), 'of direct messages; .* match = "@direct"'),
    ],
)
async def test_without_approvers_no_card_is_raised_and_the_setting_is_named(
    channel: Channel, said: str
) -> None:
    world = World(channel=channel)

    with pytest.raises(InvalidArguments, match=said):
        await world.intake().propose(DRAFT, call())

    assert (world.store.rows, world.wall.cards, world.memory.audit_log) == ({}, {}, [])


async def test_without_deciders_a_proposal_is_checked_and_shown_and_never_stored() -> None:
    world = World(wall=CardWall(traits=replace(TRAITS, decides=False)))

    receipt = await world.intake().propose(DRAFT, call())

    assert (receipt.stored, receipt.posted, receipt.awaits) == (False, False, ("responder",))
    (shown,) = (cards[-1] for cards in world.wall.cards.values())
    assert (shown.action, shown.product, shown.params) == (
        "rollback-deploy",
        "checkout",
        '{"version":"v41"}',
    )
    assert (world.store.rows, world.memory.audit_log, world.came_into) == ({}, [], [])
    assert world.watches.rows == {}


@pytest.mark.parametrize(
    ("draft", "channel", "said"),
    [
        (replace(DRAFT, action="delete-everything"), HERE, "What exists for checkout"),
        (replace(DRAFT, blast_radius="whole cluster"), HERE, "may touch at most one service"),
        (DRAFT, channel_of((), "incident-x"), "no role may confirm in this channel"),
    ],
)
async def test_without_deciders_the_same_arguments_are_refused(
    draft: ProposalDraft, channel: Channel, said: str
) -> None:
    world = World(wall=CardWall(traits=replace(TRAITS, decides=False)), channel=channel)

    with pytest.raises(InvalidArguments, match=said):
        await world.intake().propose(draft, call())

    assert world.wall.cards == {}


async def test_without_deciders_a_freeze_is_still_reported() -> None:
    world = World(wall=CardWall(traits=replace(TRAITS, decides=False)))
    world.freeze.words = "everything is frozen"

    with pytest.raises(InvalidArguments, match="everything is frozen"):
        await world.intake().propose(DRAFT, call())


async def test_a_card_is_raised_when_the_channels_name_is_unreadable() -> None:
    world = World(channel=channel_of((), UNKNOWN))

    receipt = await world.intake().propose(DRAFT, call())

    assert receipt.posted
    assert receipt.awaits == ()


async def test_an_existing_card_stays_when_its_channel_loses_its_roles() -> None:
    world = World()
    first = await world.intake().propose(DRAFT, call())
    world.channel = NOBODYS

    assert await world.intake().propose(DRAFT, call()) == first


async def test_nothing_is_proposed_for_a_product_of_another_channel() -> None:
    rule = ChannelRule("*", products=("web",), confirm=("responder",))
    world = World(channel=Channel("incident-web", rule))
    with pytest.raises(InvalidArguments, match="for web, so nothing may be proposed for checkout"):
        await world.intake().propose(DRAFT, call())
    assert world.store.rows == {}
