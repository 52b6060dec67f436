"""Guards that allow too much: the change in each, and the tests that must fail."""

from tests.mutants.mutant import Mutant

_CLICKED = "tests/unit/bot/slack/listeners/test_proposal_clicks.py::"
_GUARDS = "tests/unit/bot/actions/test_guards.py::"
_KEPT = "tests/contract/test_store_proposals.py::"
_ONE_ORDER = "tests/contract/test_one_order.py::"
_QUIET = "tests/unit/bot/domain/test_freeze.py::"
_RELOAD = "tests/unit/bot/upkeep/test_reload.py::"
_REVISE = "tests/unit/bot/actions/test_revise.py::"
_SWITCH = "tests/contract/test_store_kill_switch.py::"
_TARGET = "tests/unit/bot/actions/test_target_guards.py::"
_VOTES = "tests/unit/bot/actions/test_votes.py::"

GUARD_MUTANTS = (
    # One order is one order.
    Mutant(
        "guard: an equal order that went out is not looked for as the order leaves",
        "bot/store/proposals.py",
        "if (same := await order_in_the_way(connection, row)) is not None:",
        "if (same := None) is not None:",
        (f"{_ONE_ORDER}test_two_equal_dispatches_that_passed_every_guard_run_one_after_the_other",),
    ),
    Mutant(
        "guard: equal orders take no turns",
        "bot/store/proposals.py",
        "            await lock_order(connection, row.digest)\n",
        "",
        (f"{_ONE_ORDER}test_two_equal_dispatches_that_passed_every_guard_run_one_after_the_other",),
    ),
    Mutant(
        "guard: an equal order counts only while it runs",
        "bot/store/duplicate_orders.py",
        "sa.func.coalesce(ended < raised, sa.false())",
        "ended.is_not(None)",
        (f"{_ONE_ORDER}test_an_equal_raised_before_that_end_is_refused_and_after_it_sent",),
    ),
    # Who decided.
    Mutant(
        "guard: four eyes are not looked for at the click",
        "bot/actions/judge.py",
        "if to is ProposalState.CONFIRMED and proposal.four_eyes and own:",
        "if False:",
        (f"{_CLICKED}test_four_eyes_refuses_the_asker_and_accepts_another",),
    ),
    Mutant(
        "guard: four eyes are not looked for before the dispatch",
        "bot/domain/proposal.py",
        "if row.four_eyes and row.asked_by.user in voters:",
        "if False:",
        (
            f"{_VOTES}test_four_eyes_ignores_the_askers_vote",
            f"{_GUARDS}test_four_eyes_declared_after_the_card_still_applies",
        ),
    ),
    Mutant(
        "guard: four eyes see the one who decided, not all who voted",
        "bot/domain/proposal.py",
        "if row.four_eyes and row.asked_by.user in voters:",
        "if row.four_eyes and row.asked_by.user == row.decided_by:",
        (f"{_VOTES}test_four_eyes_ignores_the_askers_vote",),
    ),
    Mutant(
        "guard: four eyes as the card said, not as declared since",
        "bot/actions/guards.py",
        "four_eyes = row.four_eyes or rule.four_eyes",
        "four_eyes = row.four_eyes",
        (f"{_GUARDS}test_four_eyes_declared_after_the_card_still_applies",),
    ),
    Mutant(
        "guard: whoever edits is not the asker of what they edited",
        "bot/actions/revise.py",
        "        asked_by=Person(row.place.team, UserId(decision.by)),\n",
        "",
        (f"{_REVISE}test_an_editor_under_four_eyes_counts_as_the_asker",),
    ),
    Mutant(
        "guard: approvals count presses, not people",
        "bot/domain/proposal.py",
        "if len(voters) < row.approvals:",
        "if len(row.votes) + 1 < row.approvals:",
        (f"{_VOTES}test_people_are_counted_and_not_presses",),
    ),
    Mutant(
        "guard: approvals as the card said, not as declared since",
        "bot/actions/guards.py",
        "approvals = max(row.approvals, rule.approvals)",
        "approvals = row.approvals",
        (f"{_VOTES}test_an_action_with_more_required_votes_since_the_card_is_not_run",),
    ),
    Mutant(
        "guard: a vote too few decides",
        "bot/store/proposals.py",
        "decides = len(votes) >= before.approvals",
        "decides = len(votes) >= before.approvals - 1",
        (f"{_KEPT}test_the_last_required_vote_decides_and_every_vote_is_audited",),
    ),
    Mutant(
        "guard: a person may vote twice",
        "bot/store/proposals.py",
        "if mine is not None:",
        "if False:",
        (f"{_KEPT}test_a_persons_repeated_presses_count_once",),
    ),
    # When.
    Mutant(
        "guard: the freeze is not asked at the click",
        "bot/actions/judge.py",
        "if stopped is not None:",
        "if False:",
        (f"{_CLICKED}test_a_freeze_refuses_confirm_and_lets_reject",),
    ),
    Mutant(
        "guard: the freeze is not asked before the dispatch",
        "bot/actions/guards.py",
        'return Judgement(await self._freeze.refusal(row.action, row.product) or "")',
        "return Judgement()",
        (f"{_GUARDS}test_a_freeze_after_the_confirmation_stops_the_dispatch",),
    ),
    Mutant(
        "guard: the freeze is not asked once more when the target was read",
        "bot/actions/guards.py",
        "            (self._freeze.name, self._freeze.judge),\n",
        "",
        (
            f"{_GUARDS}test_a_freeze_while_the_intent_is_written_stops_the_dispatch",
            f"{_TARGET}test_a_freeze_while_the_target_is_read_still_refuses",
        ),
    ),
    Mutant(
        "guard: quiet hours end at midnight",
        "bot/domain/freeze.py",
        "for back in (0, 1):",
        "for back in (0,):",
        (f"{_QUIET}test_quiet_hours_follow_the_wall_clock",),
    ),
    Mutant(
        "guard: quiet hours are read in UTC, whatever their zone",
        "bot/domain/freeze.py",
        "local = at.astimezone(self.zone).replace(tzinfo=None)",
        "local = at.replace(tzinfo=None)",
        (f"{_QUIET}test_quiet_hours_follow_the_wall_clock",),
    ),
    Mutant(
        "guard: a freeze window holds no longer than it begins",
        "bot/domain/freeze.py",
        "self.begins <= at < self.ends",
        "self.begins == at",
        (f"{_QUIET}test_a_window_applies_only_to_its_actions_and_products",),
    ),
    # How often.
    Mutant(
        "guard: the rate lets one too many through",
        "bot/actions/guards.py",
        "if count < limit.count + allowed_before:",
        "if count <= limit.count + allowed_before:",
        (f"{_GUARDS}test_the_rate_limit_is_per_action_and_product_and_recovers",),
    ),
    Mutant(
        "guard: the rate counts every product together",
        "bot/store/proposals.py",
        "                    proposals.c.product == product,\n                    proposals.c.dispatched_at",
        "                    proposals.c.dispatched_at",
        (f"{_KEPT}test_dispatches_are_counted_by_action_and_product",),
    ),
    # How much.
    Mutant(
        "guard: the blast radius is not counted again before the dispatch",
        "bot/actions/guards.py",
        "return await self._counted(subject)",
        "return PASSED",
        (
            f"{_TARGET}test_more_objects_than_declared_are_refused_at_proposal_and_at_dispatch",
            f"{_TARGET}test_a_target_that_changed_supersedes_the_proposal_with_both_facts",
        ),
    ),
    Mutant(
        "guard: the blast radius is not held against its limit",
        "bot/actions/guards.py",
        "if now.count > rule.max_objects:",
        "if False:",
        (f"{_TARGET}test_more_objects_than_declared_are_refused_at_proposal_and_at_dispatch",),
    ),
    Mutant(
        "guard: other objects than the card showed are as good, if they are as many",
        "bot/actions/guards.py",
        "        if new:\n",
        "        if False:\n",
        (f"{_TARGET}test_a_target_that_changed_supersedes_the_proposal_with_both_facts",),
    ),
    # On what.
    Mutant(
        "guard: the second dry run is not compared with the card's",
        "bot/actions/guards.py",
        "if now == subject.row.preview:",
        "if now is not None:",
        (f"{_TARGET}test_a_target_that_changed_supersedes_the_proposal_with_both_facts",),
    ),
    Mutant(
        "guard: drift is read and not compared",
        "bot/actions/guards.py",
        "if now == row.fingerprint:",
        "if now is not None:",
        (f"{_TARGET}test_a_target_that_changed_supersedes_the_proposal_with_both_facts",),
    ),
    Mutant(
        "guard: a target that cannot be read has not drifted",
        "bot/actions/guards.py",
        "            now = await self._target.fingerprint(subject.action, row)\n"
        "        except TargetUnread as error:\n"
        "            return Judgement(error.message)\n",
        "            now = await self._target.fingerprint(subject.action, row)\n"
        "        except TargetUnread:\n"
        "            return PASSED\n",
        (f"{_TARGET}test_an_unreadable_target_is_neither_proposed_nor_run",),
    ),
    # The rules.
    Mutant(
        "guard: an edited file is in force before its row is written",
        "bot/upkeep/reload.py",
        "        await self._record(told)\n        for each in prepared.values():\n"
        "            each.put_in_force()\n",
        "        for each in prepared.values():\n            each.put_in_force()\n"
        "        await self._record(told)\n",
        (f"{_RELOAD}test_without_its_audit_row_nothing_is_applied",),
    ),
    Mutant(
        "guard: a rule of reflexes.toml may do without approval",
        "bot/settings/reflexes.py",
        "if not required:",
        "if False:",
        (
            "tests/unit/bot/settings/test_reflexes.py::"
            "test_an_invalid_rule_is_refused_with_its_line",
        ),
    ),
)
