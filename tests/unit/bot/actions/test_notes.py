"""What the model is told later about its own proposals."""

from adapters.llm.messages import CompleteRequest, Message, Role
from adapters.llm.triage.case import read_case
from bot.actions.propose import MAX_NOTES, proposal_notes
from bot.chat.prompts import situation
from tests.fixtures_actions import World, confirm, reject


async def test_open_confirmed_and_rejected_are_told_oldest_first_with_the_reason() -> None:
    world = World()
    rows = []
    for number in range(3):
        rows.append(await world.proposed(number=number))
        world.later(seconds=1)
    await world.carry(rows[0], reject(rows[0]))
    await world.carry(rows[1], confirm(rows[1]))

    rejected, succeeded, still_open = await proposal_notes(world.store, rows[0].session_id)

    assert rejected.endswith("rejected by U-other, nothing was run: not now")
    assert 'succeeded: {"status":"rolled back"}' in succeeded
    assert "open until 12:10 UTC" in still_open


async def test_old_ones_are_left_out() -> None:
    world = World()
    for number in range(MAX_NOTES + 2):
        last = await world.proposed(number=number)
        world.later(seconds=1)

    notes = await proposal_notes(world.store, last.session_id)

    assert len(notes) == MAX_NOTES
    assert last.id in notes[-1]


async def test_another_sessions_proposals_are_not_told() -> None:
    world = World()
    await world.proposed()

    assert await proposal_notes(world.store, "elsewhere") == []  # type: ignore[arg-type]


async def test_triage_reads_what_is_still_open_from_the_note() -> None:
    world = World()
    gone = await world.proposed(number=1)
    world.later(seconds=1)
    row = await world.proposed(number=2)
    await world.carry(gone, reject(gone))

    notes = await proposal_notes(world.store, row.session_id)
    told = situation(row.expires_at, notes)
    case = read_case(CompleteRequest("s", (Message(Role.USER, text="?", told=told),)))

    assert case.open_proposals == ((row.id, row.action, row.product),)
