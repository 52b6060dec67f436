"""Several confirmations: each counts once, the last one wanted runs it, the card shows who and when."""

from dataclasses import replace

import pytest

from bot.domain.audit import AuditKind
from bot.domain.ids import UserId
from bot.domain.proposal import (
    IllegalTransition,
    Proposal,
    ProposalState,
    Vote,
    confirmed_from_row,
    unapproved,
)
from bot.slack.views.cards import card
from tests.fakes.journal import Fuse
from tests.fixtures_actions import NOW, ROLLBACK, World, confirm, reject

S = ProposalState
TWO = replace(ROLLBACK, approvals=2)


def world() -> World:
    return World(rules=(TWO,))


def voted(row: Proposal, *people: str) -> Proposal:
    votes = tuple(Vote(UserId(by), NOW, f"k-{by}") for by in people)
    return replace(row, votes=votes, decided_by=UserId(people[-1]), state=S.CONFIRMED)


async def test_the_first_of_two_changes_the_card_and_nothing_else() -> None:
    here = world()
    row = await here.proposed()
    await here.carry(row, confirm(row, "U-a"))
    shown = here.wall.shown(row.id)
    assert (here.row(row.id).state, here.control.posts, here.wall.whispers) == (S.PENDING, [], [])
    assert [vote.by for vote in shown.votes] == ["U-a"]
    assert "*Confirmations*  1 of 2" in str(card(shown, "responder", NOW).blocks)


async def test_the_second_person_runs_it() -> None:
    here = world()
    row = await here.proposed()
    await here.carry(row, confirm(row, "U-a"))
    await here.carry(row, confirm(row, "U-b"))
    assert here.row(row.id).state is S.SUCCEEDED
    assert len(here.control.posts) == 1
    text = str(card(here.wall.shown(row.id), "responder", NOW).blocks)
    assert "Confirmed by U-a at" in text
    assert "U-b at" in text


async def test_a_repeated_press_says_that_another_person_is_required() -> None:
    here = world()
    row = await here.proposed()
    await here.carry(row, confirm(row, "U-a"))
    await here.carry(row, confirm(row, "U-a", press=2))
    ((user, text),) = here.wall.whispers
    assert user == "U-a"
    assert "already confirmed it (1 of 2)" in text
    assert here.memory.audit_log[-1].kind is AuditKind.CLICK_REFUSED
    assert here.control.posts == []


async def test_votes_end_with_a_rejection() -> None:
    here = world()
    row = await here.proposed()
    await here.carry(row, confirm(row, "U-a"))
    await here.carry(row, reject(row))
    await here.carry(row, confirm(row, "U-b"))
    assert here.row(row.id).state is S.REJECTED
    assert here.control.posts == []


@pytest.mark.parametrize("tick", range(0, 40, 3))
async def test_a_crash_at_any_point_of_a_vote_counts_it_once(tick: int) -> None:
    here = world()
    row = await here.proposed()
    await here.carry(row, confirm(row, "U-a"), Fuse(tick))
    await here.carry(row, confirm(row, "U-b"), Fuse(tick))
    assert here.row(row.id).state in (S.SUCCEEDED, S.UNKNOWN)
    assert [vote.by for vote in here.row(row.id).votes] == ["U-a", "U-b"]
    assert len(here.control.posts) <= 1


async def test_an_action_with_more_required_votes_since_the_card_is_not_run() -> None:
    here = World()
    row = await here.proposed()
    here.rules = (TWO,)
    await here.carry(row, confirm(row))
    assert here.control.posts == []
    assert "1 of 2 people" in here.row(row.id).outcome


async def test_people_are_counted_and_not_presses() -> None:
    row = replace(await world().proposed(), approvals=2)
    assert unapproved(voted(row, "U-a", "U-b")) is None
    assert unapproved(voted(row, "U-a", "U-a")) == "1 of 2 people have confirmed it"
    with pytest.raises(IllegalTransition, match="too few"):
        confirmed_from_row(voted(row, "U-a", "U-a"))


@pytest.mark.parametrize("voters", [("U-asker", "U-b"), ("U-b", "U-asker")])
async def test_four_eyes_ignores_the_askers_vote(voters: tuple[str, str]) -> None:
    row = replace(await world().proposed(), approvals=2, four_eyes=True)
    assert unapproved(voted(row, *voters)) == "someone other than the asker must confirm it"
