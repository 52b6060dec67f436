"""Votes, edits, freezes, rejections, clocks and crashes in any order: what always holds.

In memory, and in fewer examples over a SQLite file, where the database's clock judges.
"""

import asyncio
import tempfile
from collections.abc import Coroutine, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import TypeVar

import sqlalchemy as sa
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from sqlalchemy.ext.asyncio import AsyncConnection

from bot.actions.decide import expiry
from bot.domain.audit import AuditKind
from bot.domain.ids import ProposalId, UserId
from bot.domain.proposal import Proposal, ProposalState, unapproved
from bot.ports.proposals import Decision
from bot.store import tables
from bot.store.audit import StoredAudit
from bot.store.database import Database
from bot.store.proposal_rows import proposal_of
from bot.store.proposals import StoredProposals
from tests.fakes.journal import Crash, Fuse, MemoryJournal
from tests.fixtures_actions import DRAFT, ROLLBACK, World, call, confirm, reject
from tests.fixtures_database import place_sqlite
from tests.fixtures_stores import LapsingStoredCards

T = TypeVar("T")

moments = st.none() | st.integers(min_value=0, max_value=60)
people = st.sampled_from(["U-asker", "U-a", "U-b", "U-c"])


class DecidingLife(RuleBasedStateMachine):
    """Two approvals, four eyes; one that crashed is left until it is recovered."""

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()

    def teardown(self) -> None:
        if hasattr(self, "world"):
            self._every_card_equals_its_row()
        self.runner.close()

    def _every_card_equals_its_row(self) -> None:
        self._run(self.world.quiet())
        for row in self._rows():
            shown = self.world.wall.shown(row.id)
            assert (shown.state, shown.votes, shown.outcome) == (row.state, row.votes, row.outcome)

    @initialize()
    def begin(self) -> None:
        self.world = World(rules=(replace(ROLLBACK, approvals=2, four_eyes=True),))
        self._open()
        self._run(self.world.intake(max_open=50).propose(DRAFT, call()))
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
            return Decision(ProposalState.SUPERSEDED, UserId(by), key, params=params)

        self._start(self._row(which), edited, moment)

    @rule(moment=moments)
    def sweep(self, moment: int | None) -> None:
        for row in self._rows():
            self._start(row, lambda row: expiry(row.id), moment)

    @rule(minutes=st.sampled_from([1, 11]))
    def time_passes(self, minutes: int) -> None:
        self._later(minutes)

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
        rows = {row.id: row for row in self._rows()}
        for key in keys:
            row = rows[ProposalId(key)]
            assert unapproved(row) is None
            assert len({vote.by for vote in row.votes} - {row.asked_by.user}) >= 2

    @invariant()
    def nothing_is_sent_while_frozen(self) -> None:
        assert self.sent_frozen == 0

    @invariant()
    def a_person_has_one_vote(self) -> None:
        for row in self._rows():
            assert len({vote.by for vote in row.votes}) == len(row.votes) <= row.approvals

    @invariant()
    def what_was_replaced_has_one_successor_and_is_never_sent(self) -> None:
        rows = self._rows()
        replaced = [row.supersedes for row in rows if row.supersedes]
        assert len(replaced) == len(set(replaced))
        sent = {post.idempotency_key for post in self.world.control.posts}
        assert not sent & set(replaced)
        assert all(row.state is ProposalState.SUPERSEDED for row in rows if row.id in replaced)

    @invariant()
    def every_vote_and_order_is_in_the_audit_log(self) -> None:
        kinds, rows = self._kinds(), self._rows()
        votes = sum(len(row.votes) for row in rows)
        assert kinds.count(AuditKind.PROPOSAL_VOTED) == votes
        assert kinds.count(AuditKind.DISPATCH_INTENT) >= len(self.world.control.posts)
        assert kinds.count(AuditKind.PROPOSAL_CREATED) == len(rows)

    # Where it is kept.

    def _open(self) -> None:
        pass

    def _rows(self) -> Sequence[Proposal]:
        return list(self.world.store.rows.values())

    def _kinds(self) -> Sequence[str]:
        return self.world.memory.kinds()

    def _later(self, minutes: int) -> None:
        self.world.later(minutes=minutes)

    def _run(self, work: Coroutine[object, object, T]) -> T:
        return self.runner.run(work)

    def _row(self, which: int) -> Proposal:
        rows = self._rows()
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
            self._run(self.world.decide(fuse).run(row.id, decision, journal.resumed(fuse)))
        except Crash:
            self.crashed.add(key)
        if self.world.freeze.words:
            self.sent_frozen += len(self.world.control.posts) - before


class StoredLife(DecidingLife):
    """Over the stores; time passes by moving what is stored into the past."""

    def _open(self) -> None:
        self.folder = tempfile.TemporaryDirectory(prefix="kortex-life-")
        file = Path(self.folder.name) / "kortex.db"
        self._run(place_sqlite(file))
        self.database = self._run(Database.open(f"sqlite+aiosqlite:///{file}"))
        self.world.store = StoredProposals(self.database)  # type: ignore[assignment]
        self.world.cards = LapsingStoredCards(self.database)
        self.world.audit = StoredAudit(self.database)  # type: ignore[assignment]

    def teardown(self) -> None:
        self._every_card_equals_its_row()
        self._run(self.database.close())
        self.runner.close()
        self.folder.cleanup()

    def _rows(self) -> Sequence[Proposal]:
        async def work(connection: AsyncConnection) -> Sequence[Proposal]:
            ordered = sa.select(tables.proposals).order_by(sa.text("rowid"))
            return [proposal_of(row) for row in await connection.execute(ordered)]

        return self._run(self.database.fetch(work))

    def _kinds(self) -> Sequence[str]:
        async def work(connection: AsyncConnection) -> Sequence[str]:
            return list(await connection.scalars(sa.select(tables.audit.c.kind)))

        return self._run(self.database.fetch(work))

    def _later(self, minutes: int) -> None:
        async def work(connection: AsyncConnection) -> None:
            for row in rows:
                earlier = row.expires_at - timedelta(minutes=minutes)
                mine = tables.proposals.c.id == row.id
                await connection.execute(
                    tables.proposals.update().where(mine).values(expires_at=earlier)
                )

        rows = self._rows()
        self._run(self.database.transact(work))


TestDecidingLife = DecidingLife.TestCase
TestDecidingLife.settings = settings(max_examples=40, stateful_step_count=20, deadline=None)

TestStoredLife = StoredLife.TestCase
TestStoredLife.settings = settings(max_examples=6, stateful_step_count=15, deadline=None)
