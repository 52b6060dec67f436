"""The promises of Cards, in memory, on SQLite and on PostgreSQL: one painter, and every false card
is found.
"""

import asyncio
from dataclasses import replace

import pytest

from bot.domain.ids import ChannelId, MessageTs, ProposalId
from bot.domain.proposal import ProposalState
from bot.ports.proposals import CardClaim
from tests.contract.test_store_proposals import (
    CREATED,
    ID,
    INTENT,
    OUTCOME,
    a_proposal,
    audit_of,
    decision,
)
from tests.fixtures_stores import Stores, stores

__all__ = ["stores"]

S = ProposalState
TS = MessageTs("1700000000.000300")


async def claimed(stores: Stores, for_s: float = 60.0) -> CardClaim:
    claim = await stores.cards.claim(ID, for_s)
    assert claim is not None
    return claim


async def shown(stores: Stores, **changes: object) -> None:
    await stores.proposals.create(a_proposal(**changes), CREATED)
    await stores.cards.showed(await claimed(stores), TS)


async def reject(stores: Stores) -> None:
    await stores.proposals.decide(ID, decision(S.REJECTED), audit_of(S.REJECTED))


async def confirm(stores: Stores) -> None:
    await stores.proposals.decide(ID, decision(S.CONFIRMED), audit_of(S.CONFIRMED))


async def dispatch(stores: Stores) -> None:
    await stores.proposals.begin_dispatch(ID, INTENT)


async def succeed(stores: Stores) -> None:
    await stores.proposals.advance(ID, S.DISPATCHING, S.SUCCEEDED, "{}", OUTCOME)


async def test_a_new_proposal_has_a_card_to_paint_and_then_remembers_its_message(
    stores: Stores,
) -> None:
    await stores.proposals.create(a_proposal(), CREATED)
    assert await stores.cards.due(10) == [ID]

    claim = await claimed(stores)
    assert claim.proposal == a_proposal()
    await stores.cards.showed(claim, TS)

    assert await stores.cards.due(10) == []
    assert await stores.cards.claim(ID, 60) is None
    assert await stores.proposals.get(ID) == a_proposal(card_ts=TS)


async def test_every_change_of_the_row_makes_its_card_outdated(stores: Stores) -> None:
    await shown(stores)
    for change in (confirm, dispatch, succeed):
        await change(stores)

        assert await stores.cards.due(10) == [ID], change.__name__
        await stores.cards.showed(await claimed(stores), TS)
        assert await stores.cards.due(10) == [], change.__name__


async def test_a_vote_and_an_edit_make_the_card_outdated(stores: Stores) -> None:
    await shown(stores, approvals=2)
    await confirm(stores)
    await stores.cards.showed(await claimed(stores), TS)

    successor = replace(a_proposal(), id=ProposalId("prop-2"), supersedes=ID)
    await stores.proposals.supersede(
        ID, decision(S.SUPERSEDED), audit_of(S.SUPERSEDED), successor, CREATED
    )

    assert sorted(await stores.cards.due(10)) == [ID, "prop-2"]


async def test_one_of_many_painters_gets_the_claim(stores: Stores) -> None:
    await shown(stores)
    await reject(stores)

    claims = await asyncio.gather(*(stores.cards.claim(ID, 60) for _ in range(8)))

    assert len([claim for claim in claims if claim]) == 1
    assert await stores.cards.due(10) == []


async def test_a_claim_of_a_dead_process_lapses(stores: Stores) -> None:
    await shown(stores)
    await reject(stores)
    await claimed(stores)

    await stores.cards.lapse()

    assert await stores.cards.due(10) == [ID]


async def test_a_change_during_painting_is_painted_too(stores: Stores) -> None:
    await shown(stores)
    await confirm(stores)
    claim = await claimed(stores)
    await dispatch(stores)

    await stores.cards.showed(claim, TS)

    assert (await claimed(stores)).proposal.state is S.DISPATCHING


async def test_a_painter_that_was_overtaken_has_the_card_painted_again(
    stores: Stores,
) -> None:
    await shown(stores)
    await confirm(stores)
    frozen = await claimed(stores)
    await dispatch(stores)
    await stores.cards.lapse()
    await stores.cards.showed(await claimed(stores), TS)

    await stores.cards.showed(frozen, TS)

    assert (await claimed(stores)).proposal.state is S.DISPATCHING


@pytest.mark.parametrize(("again_s", "found"), [(0.0, [ID]), (60.0, [])])
async def test_a_card_that_could_not_be_painted_waits_for_its_next_attempt(
    stores: Stores, again_s: float, found: list[ProposalId]
) -> None:
    await shown(stores)
    await reject(stores)

    await stores.cards.failed(await claimed(stores), again_s)

    assert await stores.cards.due(10) == found


async def test_a_press_on_an_outdated_card_ends_its_wait(stores: Stores) -> None:
    await shown(stores)
    await reject(stores)
    for _ in range(2):
        await stores.cards.failed(await claimed(stores), 0.0)
    await stores.cards.failed(await claimed(stores), 600.0)

    await stores.cards.pressed(ID, TS)

    assert await stores.cards.due(10) == [ID]


async def test_a_press_reports_a_cards_message_and_never_changes_it(
    stores: Stores,
) -> None:
    await stores.proposals.create(a_proposal(), CREATED)

    await stores.cards.pressed(ID, TS)
    await stores.cards.pressed(ID, MessageTs("1700000009.000900"))

    assert await stores.proposals.get(ID) == a_proposal(card_ts=TS)


async def test_a_channel_within_reach_again_frees_only_its_own_cards(
    stores: Stores,
) -> None:
    await shown(stores)
    await reject(stores)
    claim = await claimed(stores)
    await stores.cards.failed(claim, 600)
    here = a_proposal().place

    other = await stores.cards.in_reach(here.team, ChannelId("C0OTHER"), 10)
    assert (other, await stores.cards.due(10)) == ([], [])

    assert await stores.cards.in_reach(here.team, here.channel, 10) == [ID]
    assert (await claimed(stores)).tries > 1


async def test_a_card_being_painted_when_its_channel_returns_is_painted_again(
    stores: Stores,
) -> None:
    await shown(stores)
    await reject(stores)
    before = await claimed(stores)
    here = a_proposal().place

    await stores.cards.in_reach(here.team, here.channel, 10)
    await stores.cards.failed(before, 600)

    assert await stores.cards.due(10) == [ID]


async def test_a_correct_card_in_a_channel_within_reach_again_is_unchanged(stores: Stores) -> None:
    await shown(stores)
    here = a_proposal().place
    assert await stores.cards.in_reach(here.team, here.channel, 10) == []
    assert await stores.cards.claim(ID, 60) is None
