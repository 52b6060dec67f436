"""A target that is read for the card and read again: larger, other or silent means not run."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from pydantic import JsonValue

from adapters.control_plane.port import Endpoint, Objects, ProbeFailed, Reads
from bot.actions.catalog import ActionRule
from bot.domain.audit import AuditKind
from bot.domain.proposal import Proposal
from bot.domain.proposal import ProposalState as S
from tests.fakes.redactor import MASK
from tests.fixtures_actions import DRAFT, ROLLBACK, World, call, confirm
from tools.errors import CapabilityUnavailable, InvalidArguments

READ = Endpoint(
    "https://control.example/products/{product}/rollback",
    reads=Reads(
        count_url="https://control.example/count",
        fingerprint_url="https://control.example/info",
    ),
)
READ_RULE = replace(ROLLBACK, endpoint=READ, max_objects=3, dry_run=True)
FINGERPRINT_RULE = replace(
    ROLLBACK, endpoint=replace(READ, reads=replace(READ.reads, count_url=""))
)
HOSTS = replace(ROLLBACK, params_schema={}, max_objects=2, count_param="hosts")


def world_of(rule: ActionRule = READ_RULE) -> World:
    return World(rules=(rule,))


async def carried(world: World, row: Proposal) -> Proposal:
    await world.carry(row, confirm(row))
    return world.row(row.id)


def facts_of(world: World, guard: str) -> object:
    (event,) = [
        e
        for e in world.memory.audit_log
        if e.kind is AuditKind.GUARD_VERDICT and e.body["guard"] == guard
    ]
    return event.body["facts"]


async def test_the_card_shows_the_target_and_an_unchanged_target_is_run() -> None:
    world = world_of()

    row = await world.proposed()
    shown = world.wall.shown(row.id)
    after = await carried(world, row)

    assert (shown.preview, shown.objects, shown.object_names, shown.fingerprint) == (
        '"v42 → v41"',
        2,
        ("web-1", "web-2"),
        '{"config_hash":"a1"}',
    )
    assert after.state is S.SUCCEEDED
    assert [order.dry_run for order in world.probe.rehearsed] == [True, True]
    assert [order.dry_run for order in world.control.posts] == [False]
    assert facts_of(world, "blast_radius") == {"objects": 2, "limit": 3}
    assert facts_of(world, "drift") == {"fingerprint": {"config_hash": "a1"}}


def _grown(world: World) -> None:
    world.probe.objects = Objects(3, ("web-1", "web-2", "web-3"))


def _exchanged(world: World) -> None:
    world.probe.objects = Objects(2, ("web-1", "db-1"))


def _another_plan(world: World) -> None:
    world.probe.preview = "v42 → v40"


def _drifted(world: World) -> None:
    world.probe.facts = {"config_hash": "b2"}


@pytest.mark.parametrize(
    ("change", "guard", "said"),
    [
        (_grown, "blast_radius", "the card showed 2 objects, now there are 3"),
        (_exchanged, "blast_radius", "the card did not show db-1"),
        (
            _another_plan,
            "dry_run",
            'the card showed: it was \\"v42 → v41\\", is \\"v42 → v40\\"',
        ),
        (_drifted, "drift", "config_hash was a1, is b2"),
    ],
)
async def test_a_target_that_changed_supersedes_the_proposal_with_both_facts(
    change: Callable[[World], None], guard: str, said: str
) -> None:
    world = world_of()
    row = await world.proposed()
    change(world)

    after = await carried(world, row)

    assert after.state is S.SUPERSEDED
    assert said in after.outcome
    assert f'"guard":"{guard}"' in after.outcome
    assert world.control.posts == []
    assert "differs from the card" in world.wall.words()[0]
    assert world.wall.shown(row.id).state is S.SUPERSEDED


async def test_more_objects_than_declared_are_refused_at_proposal_and_at_dispatch() -> None:
    world = world_of()
    row = await world.proposed()
    world.probe.objects = Objects(4)

    with pytest.raises(InvalidArguments, match="would touch 4 objects; the limit is 3"):
        await world.intake().propose(DRAFT, call(2))
    after = await carried(world, row)

    assert after.state is S.FAILED
    assert "it would touch 4 objects; the limit is 3" in after.outcome
    assert world.control.posts == []


@pytest.mark.parametrize("rule", [READ_RULE, replace(READ_RULE, dry_run=False), FINGERPRINT_RULE])
async def test_an_unreadable_target_is_neither_proposed_nor_run(rule: ActionRule) -> None:
    world = world_of(rule)
    row = await world.proposed()
    world.probe.failure = ProbeFailed("did not answer in time")

    with pytest.raises(CapabilityUnavailable, match=r"nothing was proposed: .*in time"):
        await world.intake().propose(DRAFT, call(2))
    after = await carried(world, row)

    assert (after.state, world.control.posts) == (S.FAILED, [])
    assert "did not answer in time" in after.outcome
    assert len(world.store.rows) == 1


async def test_a_refused_dry_run_is_a_correctable_error_without_secrets() -> None:
    world = world_of()
    world.probe.failure = ProbeFailed(
        "answered 422", refused=True, body={"why": "no such version, SECRET-abc"}
    )

    with pytest.raises(InvalidArguments) as caught:
        await world.intake().propose(DRAFT, call())

    assert "no such version" in caught.value.message
    assert MASK in caught.value.message
    assert "SECRET" not in caught.value.message


@pytest.mark.parametrize("preview", [None, "x" * 2_600])
async def test_a_preview_too_long_to_show_makes_no_card(preview: str | None) -> None:
    world = world_of()
    world.probe.preview = preview

    with pytest.raises((InvalidArguments, CapabilityUnavailable)):
        await world.intake().propose(DRAFT, call())

    assert world.store.rows == {}


async def test_a_preview_is_redacted_before_it_is_stored() -> None:
    world = world_of()
    world.probe.preview = {"env": "TOKEN=SECRET-abc"}

    row = await world.proposed()

    assert row.preview == f'{{"env":"TOKEN={MASK}"}}'


async def test_a_dry_run_declared_after_the_card_supersedes_it() -> None:
    world = world_of(ROLLBACK)
    row = await world.proposed()
    world.rules = (replace(ROLLBACK, dry_run=True),)

    assert (await carried(world, row)).state is S.SUPERSEDED


@pytest.mark.parametrize(
    ("hosts", "words"),
    [
        (["a", "b", "c"], "would touch 3 objects"),
        ([], "params of rollback-deploy: hosts is empty"),
        ("", "hosts is empty"),
        (" ", "hosts is empty"),
        (["web-*"], "hosts holds a wildcard"),
        (["web-1\nweb-2"], "hosts holds a wildcard or a control character"),
        ({"env": "*"}, "hosts.env holds a wildcard"),
        ({"*": "x"}, "a key of hosts holds a wildcard"),
        (True, "names no objects to count"),
    ],
)
async def test_selectors_are_counted_and_empty_or_wildcard_ones_refused(
    hosts: JsonValue, words: str
) -> None:
    world = world_of(replace(HOSTS, params_schema={"additionalProperties": True}))

    with pytest.raises(InvalidArguments, match=words):
        await world.intake().propose(replace(DRAFT, params={"hosts": hosts}), call())

    assert world.wall.cards == {}


async def test_free_text_is_unrestricted_and_a_list_is_counted_without_repeats() -> None:
    rule = replace(HOSTS, params_schema={"additionalProperties": True}, free_text=("why",))
    world = world_of(rule)

    draft = replace(DRAFT, params={"hosts": ["a", "b", "a"], "why": "*all* of it\n"})
    row = await world.proposed(draft)

    assert row.objects == 2
    assert (await carried(world, row)).state is S.SUCCEEDED


async def test_an_empty_selector_in_a_stored_row_is_refused_again_at_dispatch() -> None:
    world = world_of(replace(ROLLBACK, free_text=("version",)))
    row = await world.proposed(replace(DRAFT, params={"version": ""}))
    world.rules = (ROLLBACK,)

    after = await carried(world, row)

    assert (after.state, world.control.posts) == (S.FAILED, [])
    assert "version is empty" in after.outcome


async def test_a_freeze_between_card_and_dispatch_refuses() -> None:
    world = World()
    row = await world.proposed()
    world.freeze.words = "frozen by U-boss until 18:00 UTC"

    after = await carried(world, row)

    assert (after.state, world.control.posts) == (S.FAILED, [])
    assert '"guard":"freeze"' in after.outcome
    assert "frozen by U-boss" in after.outcome


async def test_a_freeze_while_the_target_is_read_still_refuses() -> None:
    world = world_of()
    row = await world.proposed()
    read = world.probe.fingerprint

    async def slowly(order: object) -> object:
        world.freeze.words = "frozen meanwhile"
        return await read(order)  # type: ignore[arg-type]

    world.probe.fingerprint = slowly  # type: ignore[method-assign,assignment]

    after = await carried(world, row)

    assert (after.state, world.control.posts) == (S.FAILED, [])
    assert "frozen meanwhile" in after.outcome


async def test_a_parameter_named_like_the_dry_run_flag_does_not_set_it() -> None:
    schema: dict[str, JsonValue] = {
        "type": "object",
        "properties": {"dry_run": {"type": "boolean"}},
    }
    world = world_of(replace(READ_RULE, params_schema=schema))
    row = await world.proposed(replace(DRAFT, params={"dry_run": True}))

    await carried(world, row)

    assert [order.dry_run for order in world.probe.rehearsed] == [True, True]
    assert [(order.dry_run, order.params) for order in world.control.posts] == [
        (False, {"dry_run": True})
    ]
