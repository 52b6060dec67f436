"""An edited proposal: checked like a model's, a new record, and never both of the two."""

import asyncio
from dataclasses import replace

import orjson
import pytest

from bot.actions.catalog import ActionCatalog, ActionRule
from bot.actions.revise import Revisions
from bot.domain.audit import AuditKind
from bot.domain.channel import Channel, ChannelRule
from bot.domain.ids import UserId
from bot.domain.proposal import LIFETIME, Proposal, ProposalState, digest
from bot.ports.proposals import Decision
from tests.fakes.card_wall import TRAITS
from tests.fakes.journal import Fuse
from tests.fakes.redactor import FakeRedactor
from tests.fixtures_actions import ROLLBACK, World, confirm
from tools.errors import InvalidArguments
from tools.operation import ProposalDraft

S = ProposalState
TYPED = replace(
    ROLLBACK,
    params_schema={
        "type": "object",
        "properties": {
            "version": {"type": "string"},
            "replicas": {"type": "integer", "maximum": 5},
            "force": {"type": "boolean"},
        },
        "required": ["version"],
    },
)
NESTED = replace(
    ROLLBACK, params_schema={"type": "object", "properties": {"labels": {"type": "object"}}}
)


def revisions(rule: ActionRule = TYPED) -> Revisions:
    return Revisions(ActionCatalog((rule,)), FakeRedactor(), TRAITS)


def edit(row: Proposal, params: str = '{"version":"v40"}', by: str = "U-editor") -> Decision:
    return Decision(S.SUPERSEDED, UserId(by), f"{row.id}:superseded:{by}:1", params=params)


def newer(world: World, row: Proposal) -> Proposal:
    (found,) = [each for each in world.store.rows.values() if each.supersedes == row.id]
    return found


async def test_the_form_contains_every_parameter_with_its_value() -> None:
    row = await World(rules=(TYPED,)).proposed()
    assert [(f.name, f.value, f.kind, f.optional) for f in revisions().form(row)] == [
        ("version", "v41", "string", False),
        ("replicas", "", "integer", True),
        ("force", "", "boolean", True),
    ]


async def test_answers_are_read_by_type_and_omitted_when_empty() -> None:
    row = await World(rules=(TYPED,)).proposed()
    read = revisions().read(row, {"version": "v40", "replicas": " 3 ", "force": "true"})
    assert orjson.loads(read) == {"version": "v40", "replicas": 3, "force": True}
    assert revisions().read(row, {"version": "v40", "force": ""}) == '{"version":"v40"}'


@pytest.mark.parametrize(
    ("answers", "words"),
    [
        ({"version": "v41"}, "nothing was changed"),
        ({}, "version"),
        ({"version": "v40", "replicas": "three"}, "replicas: must be a integer"),
        ({"version": "v40", "replicas": "6"}, "replicas"),
        ({"version": "v40", "replicas": "null"}, "replicas: must be a integer"),
        ({"version": "v40", "force": "1"}, "force"),
        ({"version": "SECRET-x"}, "holds a secret"),
        ({"version": "x" * 3_000}, "too long"),
    ],
)
async def test_the_form_refuses_what_a_model_may_not_propose(
    answers: dict[str, str], words: str
) -> None:
    row = await World(rules=(TYPED,)).proposed()
    with pytest.raises(InvalidArguments, match=words):
        revisions().read(row, answers)


async def test_parameters_without_an_input_type_are_edited_as_json() -> None:
    draft = ProposalDraft("rollback-deploy", "checkout", {"labels": {"a": 1}}, "r", "", True)
    row = await World(rules=(NESTED,)).proposed(draft)
    (field,) = revisions(NESTED).form(row)
    assert (field.kind, field.value) == ("json", '{"labels":{"a":1}}')
    assert revisions(NESTED).read(row, {"params": '{ "labels": {} }'}) == '{"labels":{}}'
    for bad in ("", "[]", "{", '{"other":1}'):
        with pytest.raises(InvalidArguments):
            revisions(NESTED).read(row, {"params": bad})


async def test_an_edit_closes_the_old_card_and_proposes_in_the_editors_name() -> None:
    world = World()
    row = await world.proposed()
    world.later(minutes=9)
    await world.carry(row, edit(row))
    old, new = world.row(row.id), newer(world, row)
    assert (old.state, old.decided_by) == (S.SUPERSEDED, "U-editor")
    assert (new.state, new.asked_by.user, new.params) == (
        S.PENDING,
        "U-editor",
        '{"version":"v40"}',
    )
    assert new.digest == digest(new.action, new.product, new.params) != old.digest
    assert new.expires_at == world.clock.now() + LIFETIME
    assert world.wall.shown(row.id).state is S.SUPERSEDED
    assert world.wall.shown(new.id).supersedes == row.id
    assert new.card_ts not in (None, old.card_ts)
    assert world.memory.kinds() == [
        AuditKind.PROPOSAL_CREATED,
        AuditKind.PROPOSAL_SUPERSEDED,
        AuditKind.PROPOSAL_CREATED,
    ]


async def test_the_edited_arguments_are_the_ones_confirmed() -> None:
    world = World()
    row = await world.proposed()
    await world.carry(row, edit(row))
    await world.carry(row, confirm(row))
    new = newer(world, row)
    await world.carry(new, confirm(new))
    (order,) = world.control.posts
    assert (order.idempotency_key, order.params) == (new.id, {"version": "v40"})
    assert "Use the newer card" in world.wall.whispers[0][1]


async def test_votes_are_not_carried_over() -> None:
    world = World(rules=(replace(ROLLBACK, approvals=2),))
    row = await world.proposed()
    await world.carry(row, confirm(row, "U-a"))
    await world.carry(row, edit(row))
    new = newer(world, row)
    assert (new.votes, new.approvals) == ((), 2)
    await world.carry(new, confirm(new, "U-b"))
    assert world.control.posts == []


async def test_an_editor_under_four_eyes_counts_as_the_asker() -> None:
    world = World(rules=(replace(ROLLBACK, four_eyes=True),))
    row = await world.proposed()
    await world.carry(row, edit(row))
    new = newer(world, row)
    await world.carry(new, confirm(new, "U-editor"))
    assert world.control.posts == []
    assert world.row(new.id).state is S.FAILED


async def test_an_edit_and_a_confirmation_at_once_have_one_winner() -> None:
    world = World()
    row = await world.proposed()
    async with asyncio.TaskGroup() as group:
        group.create_task(world.carry(row, edit(row)))
        group.create_task(world.carry(row, confirm(row)))
        group.create_task(world.carry(row, edit(row, '{"version":"v39"}', "U-other")))
    after = [each for each in world.store.rows.values() if each.supersedes == row.id]
    assert len(after) == (world.row(row.id).state is S.SUPERSEDED)
    assert len(world.control.posts) == (world.row(row.id).state is S.SUCCEEDED)


async def test_a_late_edit_changes_nothing() -> None:
    world = World()
    row = await world.proposed()
    world.later(minutes=10)
    await world.carry(row, edit(row))
    assert list(world.store.rows) == [row.id]
    assert world.row(row.id).state is S.EXPIRED
    assert "expired" in world.wall.whispers[0][1]


@pytest.mark.parametrize("tick", range(0, 24, 2))
async def test_a_crash_at_any_point_of_an_edit_leaves_one_successor(tick: int) -> None:
    world = World()
    row = await world.proposed()
    await world.carry(row, edit(row), Fuse(tick))
    await world.quiet()
    new = newer(world, row)
    assert world.row(row.id).state is S.SUPERSEDED
    assert world.wall.shown(new.id).state is S.PENDING
    assert world.memory.kinds().count(AuditKind.PROPOSAL_CREATED) == 2


NOW_ELSEWHERE = [
    Channel("incident-checkout", ChannelRule("*", products=("web",), confirm=("responder",))),
    Channel("renamed", ChannelRule("*", confirm=("responder",))),
    Channel("", ChannelRule("", confirm=())),
]


@pytest.mark.parametrize("channel", NOW_ELSEWHERE, ids=lambda each: each.name or "unknown")
async def test_an_edit_is_authorised_by_the_channels_current_rules(channel: Channel) -> None:
    world = World()
    row = await world.proposed()
    world.channel = channel

    await world.carry(row, edit(row))

    assert world.row(row.id).state is S.PENDING
    assert len(world.store.rows) == 1


async def test_an_edited_card_names_the_current_roles() -> None:
    world = World()
    row = await world.proposed()
    world.channel = Channel("incident-checkout", ChannelRule("*", confirm=("lead",)))

    await world.carry(row, edit(row))

    (new,) = [each for each in world.store.rows.values() if each.id != row.id]
    assert new.confirm_roles == ("lead",)
