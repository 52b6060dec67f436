"""Presses, clocks, repeats and crashes in any order: the invariants of one proposal's life."""

import asyncio

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from bot.actions.decide import expiry
from bot.domain.audit import AuditKind
from bot.domain.proposal import LEGAL, LIFETIME, ProposalState
from bot.ports.proposals import Decision
from tests.fakes.control_plane import DONE, LOST
from tests.fakes.journal import Crash, Fuse, MemoryJournal
from tests.fixtures_actions import NOW, World, confirm, reject

moments = st.none() | st.integers(min_value=0, max_value=60)
presses = st.integers(min_value=1, max_value=2)
people = st.sampled_from(["U-lead", "U-other"])


class ProposalLife(RuleBasedStateMachine):
    """Every decision is a workflow; one that crashed is left until it is recovered."""

    @initialize(answer=st.sampled_from([DONE, LOST]))
    def begin(self, answer: object) -> None:
        self.world = World()
        self.world.control.answer = answer  # type: ignore[assignment]
        self.row = asyncio.run(self.world.proposed())
        self.workflows: dict[str, tuple[Decision, MemoryJournal]] = {}
        self.crashed: set[str] = set()
        self.confirmed_at_most = NOW + LIFETIME

    @rule(by=people, press=presses, moment=moments)
    def press_confirm(self, by: str, press: int, moment: int | None) -> None:
        self._start(confirm(self.row, by, press), moment)

    @rule(by=people, press=presses, moment=moments)
    def press_reject(self, by: str, press: int, moment: int | None) -> None:
        self._start(reject(self.row, by, press), moment)

    @rule(moment=moments)
    def sweep(self, moment: int | None) -> None:
        self._start(expiry(self.row.id), moment)

    @rule(minutes=st.sampled_from([1, 9, 10]))
    def time_passes(self, minutes: int) -> None:
        self.world.later(minutes=minutes)

    @rule(moment=moments)
    def recover(self, moment: int | None) -> None:
        for key in sorted(self.crashed):
            self._carry(key, Fuse(moment))

    @invariant()
    def sent_at_most_once_and_only_with_a_decider_in_time(self) -> None:
        posts, row = self.world.control.posts, self.world.row(self.row.id)
        assert len(posts) <= 1
        assert not posts or row.decided_by in ("U-lead", "U-other")
        assert not posts or (row.decided_at is not None and row.decided_at < row.expires_at)
        assert all(post.confirmed_by == row.decided_by for post in posts)

    @invariant()
    def the_audit_log_has_one_decision_and_an_intent_before_each_post(self) -> None:
        kinds = self.world.memory.kinds()
        decisions = (
            AuditKind.PROPOSAL_CONFIRMED,
            AuditKind.PROPOSAL_REJECTED,
            AuditKind.PROPOSAL_EXPIRED,
        )
        assert sum(kinds.count(kind) for kind in decisions) <= 1
        assert kinds.count(AuditKind.DISPATCH_INTENT) >= len(self.world.control.posts)

    @invariant()
    def what_is_claimed_is_true(self) -> None:
        state = self.world.row(self.row.id).state
        assert state is not ProposalState.FAILED
        assert state is not ProposalState.SUCCEEDED or self.world.control.effects

    def teardown(self) -> None:
        for key in sorted(self.crashed):
            self._carry(key, Fuse())
        asyncio.run(self.world.quiet())
        row, shown = self.world.row(self.row.id), self.world.wall.shown(self.row.id)
        if self.workflows:
            assert shown.state is row.state
            assert row.state is ProposalState.PENDING or not LEGAL[row.state]

    def _start(self, decision: Decision, moment: int | None) -> None:
        if decision.key in self.workflows:
            return  # the engine: the same key is the same workflow
        self.workflows[decision.key] = (decision, MemoryJournal())
        self._carry(decision.key, Fuse(moment))

    def _carry(self, key: str, fuse: Fuse) -> None:
        decision, journal = self.workflows[key]
        self.crashed.discard(key)
        try:
            work = self.world.decide(fuse).run(self.row.id, decision, journal.resumed(fuse))
            asyncio.run(work)
        except Crash:
            self.crashed.add(key)


TestProposalLife = ProposalLife.TestCase
TestProposalLife.settings = settings(max_examples=60, stateful_step_count=15, deadline=None)
