"""Votes, edits, freezes, rejections, clocks and crashes in any order: what always holds."""

import asyncio
from dataclasses import replace

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from bot.actions.expire import expiry
from bot.domain.audit import AuditKind
from bot.domain.ids import ProposalId, UserId
from bot.domain.proposal import Proposal, ProposalState, unapproved
from bot.ports import Decision
from tests.fakes.journal import Crash, Fuse, MemoryJournal
from tests.fixtures_actions import ROLLBACK, World, confirm, reject

moments = st.none() | st.integers(min_value=0, max_value=60)
people = st.sampled_from(["U-asker", "U-a", "U-b", "U-c"])


class DecidingLife(RuleBasedStateMachine):
    """Two approvals, four eyes; one that crashed is left until it is recovered."""

    @initialize()
    def begin(self) -> None:
        self.world = World(rules=(replace(ROLLBACK, approvals=2, four_eyes=True),))
        asyncio.run(self.world.proposed())
        self.workflows: dict[str, tuple[Proposal, Decision, MemoryJournal]] = {}
        self.crashed: set[str] = set()
        self.sent_frozen = 0

    @rule(which=st.integers(0, 3), by=people, press=st.integers(1, 2), moment=moments)
    def press_confirm(self, which: int, by: str, press: int, moment: int | None) -> None:
        self._start(self._row(which), lambda row: confirm(row, by, press), moment)

    @rule(which=st.integers(0, 3), by=people, moment=moments)
    def press_reject(self, which: int, by: str, moment: int | None) -> None:
        self._start(self._row(which), lambda row: reject(row, by), moment)

    @rule(which=st.integers(0, 3), by=people, version=st.sampled_from("12"), moment=moments)
    def edit(self, which: int, by: str, version: str, moment: int | None) -> None:
        params = f'{{"version":"v{version}"}}'

        def edited(row: Proposal) -> Decision:
            key = f"{row.id}:superseded:{by}:1"
            return Decision(ProposalState.SUPERSEDED, UserId(by), key, "", params)

        self._start(self._row(which), edited, moment)

    @rule(moment=moments)
    def sweep(self, moment: int | None) -> None:
        for row in list(self.world.store.rows.values()):
            self._start(row, lambda row: expiry(row.id), moment)

    @rule(minutes=st.sampled_from([1, 9]))
    def time_passes(self, minutes: int) -> None:
        self.world.later(minutes=minutes)

    @rule(words=st.sampled_from(["", "every action is frozen"]))
    def freeze_or_lift(self, words: str) -> None:
        self.world.freeze.words = words

    @rule(moment=moments)
    def recover(self, moment: int | None) -> None:
        for key in sorted(self.crashed):
            self._carry(key, Fuse(moment))

    @invariant()
    def each_is_sent_at_most_once_and_only_with_two_other_people(self) -> None:
        keys = [post.idempotency_key for post in self.world.control.posts]
        assert len(keys) == len(set(keys))
        for key in keys:
            row = self.world.row(key)
            assert unapproved(row) is None
            assert len({vote.by for vote in row.votes} - {row.asked_by.user}) >= 2

    @invariant()
    def nothing_is_sent_while_frozen(self) -> None:
        assert self.sent_frozen == 0

    @invariant()
    def a_person_has_one_vote(self) -> None:
        for row in self.world.store.rows.values():
            assert len({vote.by for vote in row.votes}) == len(row.votes) <= row.approvals

    @invariant()
    def what_was_replaced_has_one_successor_and_is_never_sent(self) -> None:
        rows = list(self.world.store.rows.values())
        replaced = [row.supersedes for row in rows if row.supersedes]
        assert len(replaced) == len(set(replaced))
        sent = {post.idempotency_key for post in self.world.control.posts}
        assert not sent & set(replaced)
        assert all(
            self.world.row(ProposalId(each)).state is ProposalState.SUPERSEDED for each in replaced
        )

    @invariant()
    def every_vote_and_order_is_on_the_trail(self) -> None:
        kinds = self.world.memory.kinds()
        votes = sum(len(row.votes) for row in self.world.store.rows.values())
        assert kinds.count(AuditKind.PROPOSAL_VOTED) == votes
        assert kinds.count(AuditKind.DISPATCH_INTENT) >= len(self.world.control.posts)
        assert kinds.count(AuditKind.PROPOSAL_CREATED) == len(self.world.store.rows)

    def _row(self, which: int) -> Proposal:
        rows = list(self.world.store.rows.values())
        return rows[which % len(rows)]

    def _start(self, row: Proposal, made: object, moment: int | None) -> None:
        decision = made(row)  # type: ignore[operator]
        if decision.key in self.workflows:
            return  # the engine: the same key is the same workflow
        self.workflows[decision.key] = (row, decision, MemoryJournal())
        self._carry(decision.key, Fuse(moment))

    def _carry(self, key: str, fuse: Fuse) -> None:
        row, decision, journal = self.workflows[key]
        self.crashed.discard(key)
        before = len(self.world.control.posts)
        try:
            asyncio.run(self.world.decide(fuse).run(row.id, decision, journal.resumed(fuse)))
        except Crash:
            self.crashed.add(key)
        if self.world.freeze.words:
            self.sent_frozen += len(self.world.control.posts) - before


TestDecidingLife = DecidingLife.TestCase
TestDecidingLife.settings = settings(max_examples=40, stateful_step_count=20, deadline=None)
