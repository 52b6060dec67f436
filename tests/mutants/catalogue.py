"""Deliberately broken copies: the change of the product, and the tests that must fail.

Each takes away one thing that keeps work from being lost, doubled or done without leave. `before`
occurs in the file exactly once; a unit test holds that.
"""

from tests.mutants.alerts import ALERT_MUTANTS
from tests.mutants.guards import GUARD_MUTANTS
from tests.mutants.mcp import MCP_MUTANTS
from tests.mutants.mutant import Mutant
from tests.mutants.rights import RIGHTS_MUTANTS
from tests.mutants.streams import STREAM_MUTANTS

_CLICKS = "tests/scenario/test_durability_clicks.py::"
_DECIDING = "tests/scenario/test_durability_deciding.py::"
_DATABASE = "tests/scenario/test_durability_database_lost.py::"
_DISPATCH = "tests/scenario/test_durability_dispatch.py::"
_DUPLICATES = "tests/scenario/test_durability_duplicates.py::"
_ENGINE = "tests/unit/bot/engine/test_engine.py::"
_FLOW = "tests/scenario/test_proposal_flow.py::"
_KILL = "tests/scenario/test_durability_kill.py::"
_LEDGER = "tests/contract/test_store_ledger.py::"
_ORDER = "tests/unit/bot/engine/test_thread_queue.py::"
_RACES = "tests/contract/test_click_races.py::"
_SHUTDOWN = "tests/scenario/test_durability_shutdown.py::"
_STOP = "tests/scenario/test_durability_stop.py::"
_TICKETS = "tests/contract/test_store_tickets.py::"
_TAKE_OVER = "tests/unit/bot/engine/test_failover.py::"
_ZOMBIE = "tests/scenario/test_durability_zombie.py::"

MUTANTS = (
    # Decisions.
    Mutant(
        "the decision does not compare the state before it sets it",
        "bot/store/proposals.py",
        "            proposals.c.state == ProposalState.PENDING.value,\n            _BY_TIME",
        "            _BY_TIME",
        (
            f"{_CLICKS}test_two_approvers_who_confirm_at_once_dispatch_once",
            f"{_CLICKS}test_a_rejection_before_a_confirmation_wins",
            f"{_DECIDING}test_a_confirmation_before_an_edit_runs_the_shown_arguments",
            f"{_RACES}test_twenty_presses_at_once_have_at_most_one_effect[sqlite]",
        ),
    ),
    Mutant(
        "a person's second confirmation counts like another's",
        "bot/store/proposals.py",
        "    if mine is not None:\n",
        "    if mine is not None and mine.key == decision.key:\n",
        (f"{_DECIDING}test_one_approver_on_both_replicas_is_one_vote",),
    ),
    Mutant(
        "the freeze is looked at when the button is pressed, not before the order leaves",
        "bot/actions/guards.py",
        'return Judgement(await self._freeze.refusal(row.action, row.product) or "")',
        "return PASSED",
        (f"{_DECIDING}test_a_freeze_on_one_replica_stops_a_confirmation_on_the_other",),
    ),
    Mutant(
        "the roles that the action names itself are not asked for",
        "bot/actions/judge.py",
        "(person, confirm, also)",
        "(person, confirm)",
        (
            "tests/scenario/test_on_call.py::"
            "test_a_responder_on_call_confirms_and_one_of_the_two_is_not_enough",
        ),
    ),
    Mutant(
        "a rota that cannot be read lets everybody in",
        "bot/slack/roles/directory.py",
        "            return NO_ROTA\n",
        "            return None\n",
        ("tests/scenario/test_on_call.py::test_an_unreadable_rota_refuses_until_it_is_readable",),
    ),
    Mutant(
        "the time is not looked at again when the decision is made",
        "bot/store/proposals.py",
        "ProposalState.CONFIRMED: proposals.c.expires_at > now()",
        "ProposalState.CONFIRMED: sa.true()",
        (f"{_CLICKS}test_a_confirmation_that_expires_while_it_waits_does_nothing",),
    ),
    Mutant(
        "the time is that of the transaction's begin",
        "bot/store/dialect.py",
        "EXTRACT(EPOCH FROM clock_timestamp())",
        "EXTRACT(EPOCH FROM now())",
        (f"{_CLICKS}test_a_confirmation_that_expires_while_it_waits_does_nothing",),
    ),
    Mutant(
        "the role is not looked up at the click",
        "bot/actions/judge.py",
        "            if lacking is not None:",
        "            if False:",
        (f"{_FLOW}test_people_without_the_role_are_refused_privately_and_the_card_stays",),
    ),
    Mutant(
        "a click has a new key each time it is delivered",
        "bot/slack/listeners/proposal_clicks.py",
        'f"{judged.id}:{to}:{user}:{click.action_ts}"',
        'f"{judged.id}:{to}:{user}:{id(click)}"',
        (f"{_CLICKS}test_a_click_that_two_replicas_get_at_once_is_one_decision",),
    ),
    Mutant(
        "whoever told of an answer before goes on telling",
        "bot/store/chats.py",
        "if mine != writer:",
        "if False:",
        (
            "tests/contract/test_chat_log.py::"
            "test_a_dead_replicas_answer_is_continued_by_its_successor",
        ),
    ),
    # Dispatch.
    Mutant(
        "an order is sent without the permit",
        "bot/actions/dispatch.py",
        "if not permit.take():",
        "if permit.take() is None:",
        (f"{_DISPATCH}test_a_dispatch_survives_a_kill[sent,-never-arrives]",),
    ),
    Mutant(
        "the intent does not compare the state before it sets it",
        "bot/store/proposals.py",
        ".where(proposals.c.id == proposal_id, proposals.c.state == before.value)",
        ".where(proposals.c.id == proposal_id)",
        ("tests/contract/test_store_proposals.py::test_advancing_twice_succeeds_once",),
    ),
    Mutant(
        "the order is sent before the intent is on record",
        "bot/actions/dispatch.py",
        '        refused = await journal.step("intent", intend)\n'
        "        if isinstance(refused, list):\n"
        "            outcome = refusal(str(refused[0]), str(refused[1]), outdated=True in refused[2:])\n"
        "        else:\n"
        "            answer = await self._settled(confirmed, permit, journal)\n",
        "        permit.issue()\n"
        "        answer = await self._settled(confirmed, permit, journal)\n"
        '        refused = await journal.step("intent", intend)\n'
        "        if isinstance(refused, list):\n"
        "            outcome = refusal(str(refused[0]), str(refused[1]), outdated=True in refused[2:])\n"
        "        else:\n",
        (f"{_DISPATCH}test_a_dispatch_survives_a_kill[sent,-never-arrives]",),
    ),
    Mutant(
        "every attempt has an idempotency key of its own",
        "bot/actions/orders.py",
        "idempotency_key=row.id,",
        'idempotency_key=f"{row.id}:{id(row)}",',
        (f"{_DISPATCH}test_a_dispatch_survives_a_kill[answer-on-its-way]",),
    ),
    # Turns.
    Mutant(
        "a message is known by its event, not by itself",
        "bot/slack/listeners/message_intake.py",
        "Ask(place=heard.place, ts=heard.ts, ",
        "Ask(place=heard.place, ts=MessageTs(heard.event_id), ",
        (f"{_DUPLICATES}test_an_event_delivered_to_two_replicas_starts_one_turn",),
    ),
    Mutant(
        "steps are not recorded",
        "bot/engine/journal.py",
        "        if not await self._steps.keep(self._turn, self._owner, self._waiting, self._rows):\n",
        "        if not self._waiting:\n",
        (f"{_KILL}test_a_killed_process_continues_after_its_restart[tools-read]",),
    ),
    Mutant(
        "a round is recorded with its tools",
        "bot/engine/journal.py",
        "            if not may_wait:\n",
        '            if not may_wait and not name.startswith("round"):\n',
        (f"{_KILL}test_a_killed_process_continues_after_its_restart[between-tools]",),
    ),
    Mutant(
        "whoever was given up records its steps",
        "bot/store/turn_steps.py",
        'mine = (tickets.c.id == sa.bindparam("turn"), tickets.c.owner == sa.bindparam("owner"))',
        'mine = (tickets.c.id == sa.bindparam("turn"), sa.bindparam("owner") != "")',
        (
            "tests/contract/test_store_turn_steps.py::"
            "test_a_replaced_owner_records_nothing[postgresql]",
        ),
    ),
    Mutant(
        "a turn that had left its thread is answered again",
        "bot/engine/journal.py",
        "        if past.is_over:\n            return None\n",
        "",
        (f"{_ENGINE}test_a_turn_that_left_its_thread_during_a_crash_is_over[sqlite]",),
    ),
    Mutant(
        "rows wait for a step that is over",
        "bot/store/step_rows.py",
        "        rows.takes = False  # a task that outlives its step still sees it\n",
        "",
        (
            "tests/contract/test_store_turn_steps.py::"
            "test_a_task_that_outlives_its_step_writes_at_once[sqlite]",
        ),
    ),
    Mutant(
        "turns of the release before are nobody's",
        "bot/engine/lease.py",
        "self._known = {version, *earlier.versions}",
        "self._known = {version}",
        (f"{_ENGINE}test_turns_of_earlier_releases_are_continued[postgresql-kortex-2-dead]",),
    ),
    Mutant(
        "a turn of the release before remembers as this one does",
        "bot/chat/turn_request.py",
        "history_tokens=int(str(kept[10])) if len(kept) > 10 else 0,",
        "history_tokens=int(str(kept[10])) if len(kept) > 10 else 24_000,",
        (
            "tests/unit/bot/chat/test_history.py::"
            "test_a_turn_continues_with_the_history_of_the_release_that_began_it[10-0-4]",
        ),
    ),
    Mutant(
        "the newest results are folded too",
        "bot/chat/history.py",
        "while count < at and held > least:",
        "while count <= at and held > least:",
        (
            "tests/unit/bot/chat/test_earlier_results.py::"
            "test_the_newest_result_is_included_at_any_size",
        ),
    ),
    Mutant(
        "what cannot be called again is folded",
        "bot/chat/history.py",
        "is_kept = result is None or result.name in _CANNOT_BE_CALLED_AGAIN",
        "is_kept = result is None",
        (
            "tests/unit/bot/chat/test_earlier_results.py::test_a_result_that_cannot_be_read_again_stays"
            "[core__propose_action]",
        ),
    ),
    Mutant(
        "five starts are all that a turn gets",
        "bot/engine/engine.py",
        'name="turn", max_recovery_attempts=None',
        'name="turn", max_recovery_attempts=5',
        (
            f"{_ENGINE}"
            "test_six_kills_at_six_boundaries_lose_neither_the_turn_nor_its_successors[sqlite]",
        ),
    ),
    Mutant(
        "deaths are counted though the turn gets on",
        "bot/store/tickets.py",
        "        stuck = tickets.c.steps == steps\n",
        "        stuck = tickets.c.steps.is_not(None)\n",
        (
            f"{_TICKETS}test_deaths_are_counted_while_no_step_is_finished[sqlite]",
            f"{_ENGINE}"
            "test_six_kills_at_six_boundaries_lose_neither_the_turn_nor_its_successors[sqlite]",
        ),
    ),
    Mutant(
        "a turn that ends its process is tried for ever",
        "bot/engine/journal.py",
        ">= DEATHS_ALONE",
        "< 0",
        (f"{_ENGINE}test_a_step_that_killed_its_process_four_times_is_abandoned_by_name[sqlite]",),
    ),
    Mutant(
        "a crash counts for every turn in flight",
        "bot/engine/journal.py",
        "gives_up = deaths.alone >= DEATHS_ALONE",
        "gives_up = deaths.counted >= DEATHS_ALONE",
        (f"{_TICKETS}test_crashes_together_with_other_turns_never_abandon_a_turn[sqlite]",),
    ),
    Mutant(
        "suspects begin side by side",
        "bot/engine/queue.py",
        "            await self._turns.acquire()\n            held = True\n",
        "            held = False\n",
        ("tests/unit/bot/engine/test_trials.py::test_suspects_start_one_after_the_other",),
    ),
    Mutant(
        "a turn that waited for its trial counts the death of the process",
        "bot/store/tickets.py",
        "        trial = sa.case((deaths > 0, _WAITS), else_=_BESIDE)\n",
        "        trial = sa.literal(_BESIDE)\n",
        (f"{_TICKETS}test_a_turn_that_waited_for_its_trial_did_not_cause_the_death[sqlite]",),
    ),
    Mutant(
        "a failed turn says that nothing was changed, whatever was",
        "bot/chat/delivery.py",
        "await stream.finish(await self.with_changes(ask, final), on_part)",
        "await stream.finish(final, on_part)",
        (
            "tests/unit/bot/chat/test_changes.py::"
            "test_a_turn_that_fails_after_its_proposal_ran_says_so",
        ),
    ),
    Mutant(
        "an answer that cannot be shown whole loses its text",
        "bot/chat/turn_result.py",
        "return replace(final, outcomes=(), evidence=(), claims=(), notices=notices)",
        'return replace(final, text="", outcomes=(), evidence=(), claims=(), notices=notices)',
        ("tests/scenario/test_replayed_turn.py::test_an_answer_too_long_to_show_keeps_its_text",),
    ),
    Mutant(
        "a restart in good order counts as a death",
        "bot/engine/engine.py",
        "                await self._tickets.hand_over(self.executor_id)\n            await self._sign_off",
        "                pass\n            await self._sign_off",
        (f"{_ENGINE}test_a_handed_over_turn_is_not_abandoned",),
    ),
    Mutant(
        "a process leaves before what has ended is on record",
        "bot/engine/engine.py",
        "        await self._running.recorded(HAND_OVER_S)\n",
        "",
        (f"{_ENGINE}test_ended_turns_are_recorded_before_their_process_leaves",),
    ),
    Mutant(
        "turns of another version are waited for",
        "bot/engine/stranded.py",
        "            await DBOS.cancel_workflows_async(lost)",
        "            pass",
        (f"{_ENGINE}test_turns_of_an_unknown_version_are_ended_with_a_message[sqlite-up]",),
    ),
    Mutant(
        "turns of another version are ended though a process knows them",
        "bot/engine/stranded.py",
        "            alive = await self._replicas.versions(self._lease_s)",
        "            pass",
        (
            f"{_ENGINE}"
            "test_turns_of_another_version_are_left_to_a_process_of_that_version[the-same-postgresql]",
        ),
    ),
    Mutant(
        "a dead replica is forgotten with the turns that others could carry on",
        "bot/engine/lease.py",
        "known = [each.workflow_id for each in pending if each.app_version in self._known]",
        "pending = [each for each in pending if each.app_version in self._known]\n"
        "        known = [each.workflow_id for each in pending]",
        (
            f"{_ENGINE}"
            "test_turns_of_another_version_are_left_to_a_process_of_that_version[the-same-postgresql]",
        ),
    ),
    Mutant(
        "a stranded turn loses its place without a word",
        "bot/engine/stranded.py",
        "            if each.is_open or not each.is_told:",
        "            if each.is_told:",
        (f"{_ENGINE}test_turns_of_an_unknown_version_are_ended_with_a_message[sqlite-up]",),
    ),
    Mutant(
        "a replay is told as it was the first time",
        "bot/chat/round_record.py",
        "        self._runs = False\n",
        "        self._runs = True\n",
        (
            "tests/scenario/test_replayed_turn.py::"
            "test_a_finished_answer_is_not_touched_by_a_replay",
            "tests/scenario/test_replayed_turn.py::test_a_turn_killed_six_times_ends_normally",
        ),
    ),
    Mutant(
        "who leaves lets nobody in",
        "bot/engine/queue.py",
        "key=lambda each: (each.ask.ts, each.ask.turn_id)).woken.set()",
        "key=lambda each: (each.ask.ts, each.ask.turn_id)).woken.clear()",
        (f"{_ORDER}test_a_leaving_turn_wakes_only_the_next_one[sqlite]",),
    ),
    Mutant(
        "nobody hears of a turn that ended on another replica",
        "bot/engine/queue.py",
        "blocked = await self._tickets.blocked(self._owner)",
        "blocked = set(self._waiting)",
        (f"{_ORDER}test_a_turn_that_leaves_on_another_replica_is_noticed[sqlite]",),
    ),
    Mutant(
        "a resumed turn does not look for the message it has posted",
        "bot/engine/queue.py",
        "        if ask.turn_id not in self._first_attempts:\n            return False\n",
        "",
        (f"{_KILL}test_a_killed_process_continues_after_its_restart[placeholder-posted]",),
    ),
    Mutant(
        "a round is written down once per attempt",
        "bot/store/ledger.py",
        '_row(entry) | {"held_at": held_at}',
        '_row(entry) | {"held_at": held_at, "turn_id": __import__("uuid").uuid4().hex}',
        (f"{_LEDGER}test_a_round_counts_once",),
    ),
    Mutant(
        "rounds are let in without looking at what others hold at the same time",
        "bot/store/ledger.py",
        "            await lock_budget(connection)\n",
        "",
        (
            "tests/contract/test_budget_races.py::test_two_hundred_turns_on_two_replicas_never_overspend",
        ),
    ),
    Mutant(
        "turns of a thread do not wait for each other",
        "bot/store/tickets.py",
        "                    return Attempt(placed == _RUNNING, is_first)",
        "                    return Attempt(True, is_first)",
        (f"{_DUPLICATES}test_turns_of_a_thread_over_two_replicas_run_one_after_the_other",),
    ),
    Mutant(
        "a message is acknowledged without a place in its thread",
        "bot/engine/engine.py",
        "                await self._thread_queue.has_place(turn, placed)\n",
        "                pass\n",
        (f"{_ENGINE}test_a_message_is_acknowledged_once_no_later_one_can_overtake_it",),
    ),
    Mutant(
        "a message is acknowledged before it is durable",
        "bot/engine/workflows.py",
        "await asyncio.shield(self._join(name, begin, background))",
        "self._join(name, begin, background) and None",
        (
            "tests/unit/bot/engine/test_starts.py::test_every_caller_of_a_failed_start_gets_the_failure",
        ),
    ),
    Mutant(
        "what an earlier release accepted and did not start is forgotten",
        "bot/engine/engine.py",
        "            await self.start_turn(ask)\n",
        "            pass\n",
        (
            f"{_ENGINE}test_a_turn_accepted_by_an_earlier_release_starts_after_six_kills",
            f"{_ENGINE}test_a_turn_left_by_an_earlier_release_starts_at_the_second_check",
        ),
    ),
    Mutant(
        "messages of a thread are looked up side by side",
        "bot/slack/listeners/message_intake.py",
        "async with self._threads.hold(heard.place.key):",
        "async with self._threads.hold(heard.ts):",
        (
            "tests/unit/bot/slack/listeners/test_message_intake.py::"
            "test_a_message_does_not_overtake_one_of_its_thread_in_a_lookup",
        ),
    ),
    Mutant(
        "a place in line is taken away in the midst of the start",
        "bot/store/accepted.py",
        "if gone := found & set(before):",
        "if gone := found:",
        (f"{_TICKETS}test_a_place_without_a_workflow_is_dropped_at_the_second_check",),
    ),
    Mutant(
        "who lost the workflow may still take the thread's slot",
        "bot/store/tickets.py",
        "is None:\n                raise Superseded(ticket)",
        "is None:\n                pass",
        (f"{_TICKETS}test_a_zombie_that_waits_does_not_take_the_slot",),
    ),
    Mutant(
        "who lost the workflow may still free its successor's slot",
        "bot/store/tickets.py",
        "tickets.delete().where(*mine, ~handed_over)",
        "tickets.delete().where(mine[0])",
        (f"{_TICKETS}test_a_zombie_does_not_release_its_successors_slot",),
    ),
    # Replicas.
    Mutant(
        "nobody notices a lease that has run out",
        "bot/store/replicas.py",
        '.where(replicas.c.beat < ago("lease_us"))',
        ".where(sa.false())",
        (f"{_KILL}test_a_killed_replica_is_taken_over[first-tool-postgresql]",),
    ),
    Mutant(
        "a late beat is taken for a death",
        "bot/store/replicas.py",
        "    return bool(await connection.scalar(free))",
        "    return True",
        (f"{_TAKE_OVER}test_a_late_heartbeat_of_a_live_process_moves_nothing",),
    ),
    Mutant(
        "all that a dead replica left goes to one survivor at once",
        "bot/engine/lease.py",
        "await self._hand_on(dead, left.known[:AT_ONCE], len(left.known))",
        "await self._hand_on(dead, left.known, len(left.known))",
        (f"{_TAKE_OVER}test_the_work_of_a_dead_replica_is_taken_over_in_small_batches",),
    ),
    Mutant(
        "a replica that woke up loses the rest of its work",
        "bot/store/replicas.py",
        "return await _rewritten(connection, replica, replicas.c.beat == claimed)",
        "return await _rewritten(connection, replica, sa.true())",
        (f"{_TAKE_OVER}test_a_replica_that_wakes_up_keeps_its_remaining_work",),
    ),
    Mutant(
        "a replica that stood still goes on as if nothing had been",
        "bot/engine/lease.py",
        "if stood_still and now - self._beaten_at > self._kept_s:",
        "if stood_still and now < self._beaten_at:",
        (f"{_ZOMBIE}test_a_frozen_replica_does_not_touch_the_answer_of_its_successor",),
    ),
    Mutant(
        "a frozen replica keeps the locks of the transaction it was in",
        "bot/engine/lease.py",
        "if not before and (ended :=",
        "if before and (ended :=",
        (f"{_ZOMBIE}test_an_unfinished_intent_of_a_frozen_replica_belongs_to_its_successor",),
    ),
    Mutant(
        "a replica that stops takes what it could not finish with it",
        "bot/engine/engine.py",
        "await self._replicas.give_up(self.executor_id)",
        "await self._replicas.forget(self.executor_id)",
        (f"{_SHUTDOWN}test_a_round_longer_than_the_grace_period_is_handed_over[postgresql]",),
    ),
    Mutant(
        "a stop is not looked for where the turn runs",
        "bot/engine/stops.py",
        "await self._tickets.stops_for(self._owner)",
        "dict[str, str]()",
        (f"{_STOP}test_a_stop_reaches_the_replica_that_runs_the_turn",),
    ),
    Mutant(
        "a lost connection is an error at once",
        "bot/store/database.py",
        "            except ConnectionLost:\n                await asyncio.sleep(wait_s)\n",
        "            except ConnectionLost:\n                raise\n",
        (f"{_DATABASE}test_a_turn_survives_lost_connections",),
    ),
    Mutant(
        "an order leaves before the mark that tells copies from the database",
        "bot/app/stores.py",
        "StoredProposals(database, guard.mark)",
        "StoredProposals(database)",
        ("tests/scenario/test_restored.py::test_a_dispatch_is_recorded_before_it_is_sent",),
    ),
    Mutant(
        "a cancelled caller takes its commit back",
        "bot/store/database.py",
        "        await asyncio.shield(commit)\n",
        "        await commit\n",
        (
            "tests/unit/bot/store/test_postgresql.py::"
            "test_a_commit_in_progress_completes_when_its_caller_is_cancelled",
        ),
    ),
    Mutant(
        "a cancelled statement keeps SQLite's lock",
        "bot/store/engines.py",
        "        await driver.rollback()\n",
        "        pass\n",
        ("tests/unit/bot/store/test_database.py::test_a_slow_statement_delays_no_one",),
    ),
    *GUARD_MUTANTS,
    *STREAM_MUTANTS,
    *ALERT_MUTANTS,
    *RIGHTS_MUTANTS,
    *MCP_MUTANTS,
    # Tool calls.
    Mutant(
        "the same call may be made for ever",
        "tools/call_limits.py",
        "if spent.same_calls >= self.same_calls:",
        "if spent.same_calls < 0:",
        (
            "tests/unit/tools/test_call_limits.py::test_a_call_over_the_limit_is_an_error_that_says_so",
        ),
    ),
    Mutant(
        "a cached result is anybody's",
        "tools/recent_calls.py",
        "context.actor,",
        "",
        ("tests/unit/tools/test_cache.py::test_a_cached_answer_is_for_its_own_asker_only",),
    ),
    Mutant(
        "the runner believes that the catalog has hidden what is not allowed",
        "tools/admission.py",
        "if entry is None or not self.policy.allows(entry.contract, context):",
        "if entry is None:",
        ("tests/unit/bot/app/test_tool_rules.py::test_the_runner_enforces_what_the_catalog_hides",),
    ),
)
