"""Long orders are looked after by the clock: progress on the card, one true end in the thread."""

from dataclasses import replace
from datetime import timedelta

import pytest

from adapters.control_plane.port import AnswerKind, ControlAnswer, ExecutorKind
from bot.actions.catalog import ActionCatalog, ActionRule, CatalogError
from bot.actions.display import ProposalDisplay
from bot.actions.effect import Deviation, EffectCheck, rollback_context
from bot.actions.propose import ProposalScope
from bot.actions.watch import WatchSweep
from bot.domain.audit import AuditKind
from bot.domain.chart import Chart, Line
from bot.domain.proposal import Proposal
from bot.domain.proposal import ProposalState as S
from bot.ports.proposals import WatchKind
from tests.fakes.control_plane import DONE, LOST, FakeControlPlane
from tests.fixtures_actions import PLACE, ROLLBACK, World, confirm, no_sleep
from tools.operation import ProposalDraft, ProposalReceipt

RUNNING = ControlAnswer(AnswerKind.RUNNING, "step 1 of 3", 200, {"run": 9})
FURTHER = ControlAnswer(AnswerKind.RUNNING, "step 2 of 3", 200, {"run": 9})
FAILED = ControlAnswer(AnswerKind.FAILED, "GitHub says failure", 200)
CHECKED = replace(ROLLBACK, verify_metric="p99", rollback="rollback-deploy")
BAD, WORSE, GOOD = (
    Deviation(True, 3.0, "4x baseline", "0.8 s"),
    Deviation(True, 6.0, "7x baseline", "1.4 s"),
    Deviation(False, 0.1, "within baseline", "0.2 s"),
)


def sweep(world: World, *measured: Deviation | None) -> WatchSweep:
    """Of a process whose metrics say these, one after the other."""
    catalog = ActionCatalog(world.rules)
    display = ProposalDisplay(world.cards, world.wall, sleep=no_sleep)
    readings = list(measured)

    async def measure(row: Proposal, metric: str, time_range: str) -> Deviation | None:
        assert (row.product, metric) == ("checkout", "p99")
        return readings.pop(0)

    async def propose(row: Proposal, draft: ProposalDraft) -> ProposalReceipt:
        context = rollback_context(row, world.channel, frozenset(), world.clock)
        return await world.intake().propose_at(draft, context, ProposalScope(PLACE, world.channel))

    effect = EffectCheck(catalog, measure, propose, display, world.audit, world.clock)
    return WatchSweep(
        world.watches,
        world.store,
        catalog,
        world.control,
        display,
        world.redactor,
        effect,
        on_state=world.came_into.append,
    )


def watched_kinds(world: World) -> set[WatchKind]:
    """What an action is looked after for; an open card's reminder is no action's."""
    return {kind for _, kind in world.watches.rows} - {WatchKind.REMINDER}


async def running(*then: ControlAnswer, rule: ActionRule = ROLLBACK) -> tuple[World, Proposal]:
    """An order that its executor took and is not done with."""
    control = FakeControlPlane(RUNNING, [RUNNING] * 3 + list(then))
    world = World(rules=(rule,), control=control)
    row = await world.proposed()
    await world.carry(row, confirm(row))
    return world, row


async def test_a_long_action_keeps_its_card_open_and_is_reported_once() -> None:
    world, row = await running()

    after = world.wall.shown(row.id)

    assert after.state is S.DISPATCHING
    assert "step 1 of 3" in after.outcome
    assert world.wall.words() == [
        "⏳ Roll back checkout to v41: running. The card shows its progress, and this thread its result."
    ]
    assert world.memory.kinds().count(AuditKind.DISPATCH_OUTCOME) == 0


async def test_progress_is_edited_into_the_card_and_the_end_posted_in_the_thread() -> None:
    world, row = await running(FURTHER, LOST, DONE)
    shown = []

    for _ in range(3):
        world.later(seconds=20)
        await sweep(world).run()
        shown.append(world.wall.shown(row.id))
    world.later(seconds=20)
    again = await sweep(world).run()

    assert "step 2 of 3" in shown[0].outcome
    assert shown[1] == shown[0]
    assert shown[2].state is S.SUCCEEDED
    assert world.wall.words()[1].startswith("✓ Roll back checkout to v41: succeeded.")
    assert (again, len(world.wall.words()), len(world.control.posts)) == (0, 2, 1)
    assert world.came_into[-1] is S.SUCCEEDED


async def test_only_one_replica_asks_when_it_is_due() -> None:
    world, _ = await running(DONE)

    early = await sweep(world).run()
    world.later(seconds=20)
    looked = [await sweep(world).run(), await sweep(world).run()]

    assert (early, looked) == (0, [1, 0])


@pytest.mark.parametrize(
    ("answers", "state"), [([FAILED], S.FAILED), ([LOST], S.UNKNOWN), ([FURTHER], S.UNKNOWN)]
)
async def test_its_time_is_limited_and_an_unknown_end_says_where_to_look(
    answers: list[ControlAnswer], state: S
) -> None:
    world, row = await running(*answers)
    world.later(hours=1)

    await sweep(world).run()

    ended = world.row(row.id)
    assert ended.state is state
    assert ("with idempotency_key=" in ended.outcome) == (state is S.UNKNOWN)
    assert watched_kinds(world) == set()


async def test_an_unreported_end_is_reported_by_the_next_check() -> None:
    world, row = await running()
    world.store.rows[row.id] = replace(world.row(row.id), state=S.SUCCEEDED, outcome="{}")
    world.later(seconds=20)

    await sweep(world).run()

    assert "succeeded." in world.wall.words()[1]
    assert watched_kinds(world) == set()


async def test_an_undeclared_action_ends_unknown() -> None:
    world, row = await running()
    world.rules = ()
    world.later(seconds=20)

    await sweep(world).run()

    assert world.row(row.id).state is S.UNKNOWN


async def checked(*measured: Deviation | None, rule: ActionRule = CHECKED) -> tuple[World, str]:
    """The thread's last line after an action that succeeded was checked."""
    world = World(rules=(rule,))
    row = await world.proposed()
    await world.carry(row, confirm(row))
    world.later(minutes=10)
    await sweep(world, *measured).run()
    return world, world.wall.words()[-1]


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        (BAD, GOOD, "✓ It helped: p99 of checkout is back to 0.2 s,"),
        (WORSE, BAD, "✓ It helped: p99 of checkout is at 0.8 s,"),
        (BAD, BAD, "It changed nothing: p99 of checkout is at 0.8 s,"),
        (GOOD, GOOD, "It changed nothing: p99 of checkout is at 0.2 s,"),
    ],
)
async def test_a_check_after_success_reports_its_effect(
    before: Deviation, after: Deviation, words: str
) -> None:
    world, said = await checked(before, after)

    assert words in said
    assert said.endswith(
        f"{after.words}, 10 minutes after rollback-deploy. Before: {before.figure}, {before.words}."
    )
    assert len(world.store.rows) == 1
    assert watched_kinds(world) == set()
    assert world.memory.kinds().count(AuditKind.DISPATCH_EFFECT) == 1


@pytest.mark.parametrize("before", [BAD, GOOD])
async def test_a_rollback_of_a_harmful_action_is_proposed_and_not_run(before: Deviation) -> None:
    world, said = await checked(before, WORSE)

    first, rollback = world.store.rows.values()
    assert "⚠ It got worse" in said
    assert rollback.state is S.PENDING
    assert rollback.confirm_roles == first.confirm_roles
    assert "without a model" in rollback.rationale
    assert len(world.control.posts) == 1


async def test_the_effect_is_charted_before_and_after_the_confirmation() -> None:
    world = World(rules=(CHECKED,))
    row = await world.proposed()
    await world.carry(row, confirm(row))
    decided = world.row(row.id).decided_at
    assert decided is not None
    minute = timedelta(minutes=1)
    before = Line("checkout", ((decided - 2 * minute, 1.8), (decided - minute, 1.7)))
    after = Line("checkout", ((decided + 2 * minute, 0.3), (decided + 3 * minute, 0.2)))
    bad, good = (
        replace(found, chart=Chart(0, "checkout", "p99", "seconds", (line,), usual=0.2))
        for found, line in ((BAD, before), (GOOD, after))
    )

    world.later(minutes=10)
    await sweep(world, bad, good).run()

    (chart,) = world.wall.charts[f"{row.id}:effect"]
    assert chart.lines[0].points == before.points + after.points
    assert (chart.usual, chart.since, chart.event) == (0.2, decided, "confirmed")


async def test_a_harmful_action_without_a_rollback_is_only_reported() -> None:
    world, said = await checked(BAD, WORSE, rule=replace(CHECKED, rollback=""))

    assert "⚠ It got worse" in said
    assert len(world.store.rows) == 1


async def test_an_unreadable_metric_is_tried_again_and_then_reported() -> None:
    world, said = await checked(None, GOOD)
    assert "succeeded." in said

    world.later(minutes=10)
    await sweep(world, None, None).run()

    told = "It is unknown whether it helped: no data of p99 of checkout, "
    assert world.wall.words()[-1].startswith(told)
    assert watched_kinds(world) == set()


async def test_a_failure_is_not_checked() -> None:
    world = World(rules=(CHECKED,), control=FakeControlPlane(FAILED))
    row = await world.proposed()

    await world.carry(row, confirm(row))

    assert watched_kinds(world) == set()


@pytest.mark.parametrize(
    "rule",
    [
        replace(CHECKED, rollback="nothing-declared"),
        replace(CHECKED, verify_metric=""),
        replace(CHECKED, reversible=False),
        replace(CHECKED, rollback_params={"version": 7}),
    ],
)
def test_an_unproposable_rollback_is_refused_at_start(rule: ActionRule) -> None:
    with pytest.raises(CatalogError, match="rollback"):
        ActionCatalog([rule])


async def test_a_dry_run_needs_no_later_check() -> None:
    endpoint = replace(ROLLBACK.endpoint, kind=ExecutorKind.REHEARSAL, status_url="")
    world = World(rules=(replace(ROLLBACK, endpoint=endpoint),))
    row = await world.proposed()

    await world.carry(row, confirm(row))

    assert watched_kinds(world) == set()


async def test_an_open_card_gets_one_reminder_two_minutes_before_its_expiry() -> None:
    world = World()
    row = await world.proposed()
    said = []

    for minutes in (7, 1.1, 0.5, 0.5):
        world.later(seconds=minutes * 60)
        await sweep(world).run()
        said.append(len(world.wall.words()))

    assert said == [0, 1, 1, 1]
    assert world.wall.words() == [
        "⌛ Roll back checkout to v41? The card above expires at "
        f"{row.expires_at:%H:%M} UTC and is not decided yet."
    ]
    assert world.watches.rows == {}


async def test_a_decided_card_gets_no_reminder() -> None:
    world = World()
    row = await world.proposed()
    await world.carry(row, confirm(row))
    before = world.wall.words()

    world.later(minutes=9)
    await sweep(world).run()

    assert world.wall.words() == before
    assert world.watches.rows == {}


async def test_a_replica_that_returns_after_the_expiry_reminds_no_one() -> None:
    world = World()
    await world.proposed()

    world.later(minutes=11)
    await sweep(world).run()

    assert world.wall.words() == []
