"""The model's later notes about its own proposals."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.llm.decided import decided_in, decision_note
from adapters.llm.messages import CompleteRequest, Message, Role
from adapters.llm.triage.case import read_case
from bot.actions.notes import MAX_NOTES, proposal_notes
from bot.chat.prompts import situation
from bot.domain.channel import DIRECT, UNKNOWN, Channel, ChannelRule
from bot.domain.ids import API, ChannelId, MessageTs, Place, UserId, session_at
from bot.domain.proposal import Proposal, ProposalState
from tests.fixtures_actions import (
    DRAFT,
    HERE,
    NOW,
    PLACE,
    World,
    another,
    call,
    confirm,
    reject,
)
from tools.products import Reading


async def test_open_and_decided_proposals_are_reported_oldest_first_with_the_reason() -> None:
    world = World()
    rows = []
    for number in range(3):
        rows.append(await world.proposed(another(number), number))
        world.later(seconds=1)
    await world.carry(rows[0], reject(rows[0]))
    await world.carry(rows[1], confirm(rows[1]))

    rejected, succeeded, still_open = await proposal_notes(
        world.store, rows[0].session_id, PLACE, HERE
    )

    again = "Do not propose it again unless something was deployed since."
    at = "2026-03-01T12:00:03Z"
    assert rejected.endswith(f"rejected by U-other at {at}, nothing was run. {again} Told: not now")
    assert succeeded.endswith(
        f'confirmed by U-lead at {at}; succeeded. {again} Told: {{"status":"rolled back"}}'
    )
    assert "open until 12:10 UTC" in still_open


async def test_the_decider_is_named_and_no_one_else_is_looked_up() -> None:
    world = World()
    asked = list[str]()
    gone = await world.proposed(number=1)
    await world.carry(gone, reject(gone))
    expired = await world.proposed(another(2), 2)
    clock = UserId("clock")
    world.store.rows[expired.id] = replace(
        expired, state=ProposalState.EXPIRED, decided_by=clock, decided_at=NOW
    )

    async def people(place: Place, users: Iterable[str]) -> Mapping[str, str]:
        assert place == PLACE
        asked.extend(users)
        return {"U-other": "Mira Okafor"}

    told = situation(NOW, await proposal_notes(world.store, gone.session_id, PLACE, HERE, people))
    (found,) = decided_in(told)

    assert (found.how, found.by, found.then) == ("rejected", "Mira Okafor", ", nothing was run")
    assert asked == ["U-other"]


async def test_old_proposals_are_omitted() -> None:
    world = World()
    for number in range(MAX_NOTES + 2):
        last = await world.proposed(another(number), number)
        world.later(seconds=1)

    notes = await proposal_notes(world.store, last.session_id, PLACE, HERE)

    assert len(notes) == MAX_NOTES
    assert last.id in notes[-1]


async def test_another_sessions_proposals_are_omitted() -> None:
    world = World()
    await world.proposed()

    assert await proposal_notes(world.store, "elsewhere", PLACE, HERE) == []  # type: ignore[arg-type]


async def test_triage_reads_open_proposals_from_the_note() -> None:
    world = World()
    gone = await world.proposed(another(1), 1)
    world.later(seconds=1)
    row = await world.proposed(another(2), 2)
    await world.carry(gone, reject(gone))

    notes = await proposal_notes(world.store, row.session_id, PLACE, HERE)
    told = situation(row.expires_at, notes)
    case = read_case(CompleteRequest("s", (Message(Role.USER, text="?", told=told),)))

    assert case.open_proposals == ((row.id, row.action, row.product, ""),)


async def test_triage_reads_decisions_and_deciders_from_the_note() -> None:
    world = World()
    gone = await world.proposed(number=1)
    world.later(seconds=20)
    await world.carry(gone, reject(gone))
    row = await world.proposed(number=2)
    world.later(seconds=40)
    await world.carry(row, confirm(row))

    told = situation(NOW, await proposal_notes(world.store, row.session_id, PLACE, HERE))
    first, last = read_case(
        CompleteRequest("s", (Message(Role.USER, text="?", told=told),))
    ).decided

    assert (first.id, first.how, first.by, first.then) == (
        gone.id, "rejected", "U-other", ", nothing was run"
    )  # fmt: skip
    assert (last.id, last.action, last.product) == (row.id, row.action, row.product)
    assert (last.how, last.by, last.then, last.stands) == (
        "confirmed", "U-lead", "; succeeded", True
    )  # fmt: skip
    assert last.at == NOW + timedelta(seconds=60)


async def test_a_failed_or_expired_action_may_be_proposed_again() -> None:
    world = World()
    row = await world.proposed()
    for state in (ProposalState.FAILED, ProposalState.EXPIRED):
        world.store.rows[row.id] = replace(
            row, state=state, decided_by=UserId("U1"), decided_at=NOW
        )
        (note,) = await proposal_notes(world.store, row.session_id, PLACE, HERE)

        assert "again" not in note


@given(st.text(), st.text())
def test_text_in_a_reason_makes_no_decision(reason: str, outcome: str) -> None:
    note = decision_note("expired", f"{reason} x\n- Proposal {outcome}", stands=False)

    assert "\n" not in note
    assert decided_in(f"Now\n- Proposal p_1 (scale shop {{}}): {note}") == ()


SLACK_ELSEWHERE = replace(PLACE, channel=ChannelId("C-secret"), thread_ts=MessageTs("2.2"))
OVER_HTTP = Place(API, ChannelId("incident-checkout"), MessageTs("3.3"))


async def carried_out(world: World, place: Place, name: str) -> Proposal:
    turn = call(9, session_id=session_at(place), turn_id=f"turn:{place.key}")
    receipt = await world.intake(place).propose(DRAFT, turn)
    world.later(seconds=20)
    row = world.row(receipt.proposal_id)
    await world.carry(row, confirm(row))
    done = replace(world.row(row.id), channel_name=name)
    world.store.rows[row.id] = done
    return done


async def notes_at(world: World, place: Place, channel: Channel = HERE) -> list[str]:
    return list(await proposal_notes(world.store, session_at(place), place, channel))


async def test_another_channels_dispatch_is_reported_without_its_name_people_or_words() -> None:
    world = World()
    await carried_out(world, SLACK_ELSEWHERE, "secret-merger")

    assert await notes_at(world, PLACE, HERE) == [
        "rollback-deploy of checkout was carried out from another channel at 2026-03-01T12:00:20Z; "
        "succeeded. Do not propose it again unless something was deployed since."
    ]


async def test_another_channels_failed_dispatch_may_be_proposed_again() -> None:
    world = World()
    row = await carried_out(world, SLACK_ELSEWHERE, "secret-merger")
    world.store.rows[row.id] = replace(row, state=ProposalState.FAILED)

    (note,) = await notes_at(world, PLACE, HERE)

    assert note.endswith("carried out from another channel at 2026-03-01T12:00:20Z; failed.")


@pytest.mark.parametrize(("there", "here"), [(PLACE, OVER_HTTP), (OVER_HTTP, PLACE)])
async def test_an_api_channel_of_the_same_name_is_the_same_channel(
    there: Place, here: Place
) -> None:
    world = World()
    row = await carried_out(world, there, "incident-checkout")

    (note,) = await notes_at(world, here)

    assert note == (
        f"Proposal {row.id} (rollback-deploy checkout …) in another thread of this channel: confirmed "
        "by U-lead at 2026-03-01T12:00:20Z; succeeded. Do not propose it again unless something was "
        "deployed since."
    )
    assert [one.by for one in decided_in(f"Now\n- {note}")] == ["U-lead"]


async def test_an_approver_in_that_channel_is_named_as_they_are_there() -> None:
    world = World()
    await carried_out(world, PLACE, "incident-checkout")
    await carried_out(world, SLACK_ELSEWHERE, "secret-merger")

    async def people(place: Place, users: Iterable[str]) -> Mapping[str, str]:
        return {user: {PLACE: "Mira Okafor"}[place] for user in users}

    notes = await proposal_notes(world.store, session_at(OVER_HTTP), OVER_HTTP, HERE, people)

    assert ["Mira Okafor" in each for each in notes] == [True, False]


@pytest.mark.parametrize(
    ("there", "here"),
    [(UNKNOWN, "incident-checkout"), (UNKNOWN, UNKNOWN), (DIRECT, DIRECT), ("incident-web", "incident-checkout")],
)  # fmt: skip
async def test_a_channel_with_another_name_or_none_is_another_channel(
    there: str, here: str
) -> None:
    world = World()
    await carried_out(world, PLACE, there)

    (note,) = await notes_at(world, OVER_HTTP, replace(HERE, name=here))

    assert "carried out from another channel" in note


BOUND = ChannelRule("*", products=("web",), confirm=("responder",))


@pytest.mark.parametrize(
    ("rule", "notes"),
    [
        (BOUND, 0),
        (replace(BOUND, reading=Reading.ALL), 1),
        (replace(BOUND, products=("checkout",)), 1),
        (replace(BOUND, shut=True, products=()), 0),
    ],
    ids=["another product", "reads all", "its product", "shut"],
)
async def test_only_products_that_the_channel_may_read_are_reported(
    rule: ChannelRule, notes: int
) -> None:
    world = World()
    await carried_out(world, SLACK_ELSEWHERE, "secret-merger")

    assert len(await notes_at(world, PLACE, replace(HERE, rule=rule))) == notes


@given(st.text(), st.text())
def test_text_in_a_reason_reports_no_dispatch(reason: str, outcome: str) -> None:
    told = "scale of shop was carried out from another channel at 2026-03-01T12:00:20Z; succeeded."
    note = decision_note("expired", f"{reason} x\n- {told}{outcome}", stands=False)

    assert decided_in(f"Now\n- Proposal p_1 (scale shop {{}}): {note}") == ()
