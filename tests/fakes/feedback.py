"""`bot.ports.feedback.Feedback` in memory, over `MemorySessions`. Passes the contract suite."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from adapters.llm.messages import Role
from bot.domain.audit import AuditEvent, AuditKind
from bot.domain.feedback import Judged, Opinion, Vote
from bot.domain.ids import MessageTs, Person, Place, TurnId
from bot.domain.session import TurnState
from tests.fakes.stores import Memory, MemorySessions
from tools.redactor import Redacted


class MemoryFeedback:
    """Feedback."""

    keeps_reasons = True

    def __init__(self, memory: Memory, sessions: MemorySessions) -> None:
        self._memory = memory
        self._sessions = sessions
        self.rows: dict[tuple[TurnId, Person], Opinion] = {}

    async def vote(self, turn: TurnId, person: Person, vote: Vote, key: str) -> bool | None:
        kept = self._sessions.turns.get(turn)
        if kept is None or kept.turn.state is TurnState.RUNNING:
            return None
        before = self.rows.get((turn, person))
        if before is not None and before.vote is vote:
            return False
        at = self._memory.now()
        self.rows[turn, person] = Opinion(
            turn, self._place(turn), None, "", vote, "", person.user, at
        )
        self._record(turn, person, vote, key, explained=False)
        return True

    async def explain(self, turn: TurnId, person: Person, reason: Redacted, key: str) -> bool:
        row = self.rows.get((turn, person))
        if row is None or row.vote is not Vote.DOWN:
            return False
        self.rows[turn, person] = replace(row, reason=reason, at=self._memory.now())
        self._record(turn, person, Vote.DOWN, key, explained=True)
        return True

    async def judged(self, days: int) -> Sequence[Judged]:
        since = self._memory.now() - timedelta(days=days)
        over = [
            kept
            for kept in self._sessions.turns.values()
            if kept.turn.state is TurnState.ANSWERED
            and kept.turn.ended_at is not None
            and kept.turn.ended_at >= since
        ]
        answers = Counter(self._provider(kept.turn.id) for kept in over)
        votes = Counter(
            (self._provider(turn), row.vote)
            for (turn, _), row in self.rows.items()
            if any(kept.turn.id == turn for kept in over)
        )
        return [
            Judged(name, days, answers[name], votes[name, Vote.UP], votes[name, Vote.DOWN])
            for name in sorted(answers)
        ]

    async def reasons(self, limit: int) -> Sequence[Opinion]:
        told = [self._whole(row) for row in self.rows.values() if row.reason]
        return sorted(told, key=lambda row: row.at, reverse=True)[:limit]

    async def between(self, start: datetime, end: datetime) -> Sequence[Opinion]:
        began = {t: kept.turn.started_at for t, kept in self._sessions.turns.items()}
        found = [row for (t, _), row in self.rows.items() if start <= began[t] <= end]
        ordered = sorted(found, key=lambda row: (began[TurnId(row.turn)], row.turn, row.at))
        return [self._whole(row) for row in ordered]

    def _whole(self, row: Opinion) -> Opinion:
        kept = self._sessions.turns[TurnId(row.turn)]
        asked = next((m.text for m in kept.messages if m.role is Role.USER), "")
        return replace(
            row,
            provider=self._provider(TurnId(row.turn)),
            answer_ts=kept.turn.answer_ts,
            asked=asked,
        )

    def _provider(self, turn: TurnId) -> str:
        said = reversed(self._sessions.turns[turn].messages)
        return next((m.provider for m in said if m.provider), "")

    def _place(self, turn: TurnId) -> Place:
        of = self._sessions.turns[turn].turn.session_id
        found = (s.place for s in self._sessions.sessions.values() if s.id == of)
        return next(found, Place("", "", MessageTs("")))  # type: ignore[arg-type]

    def _record(
        self, turn: TurnId, person: Person, vote: Vote, key: str, *, explained: bool
    ) -> None:
        self._memory.append(
            AuditEvent(
                AuditKind.FEEDBACK_GIVEN,
                person.user,
                {"turn": turn, "vote": vote.value, "explained": explained},
                self._sessions.turns[turn].turn.session_id,
                key,
            )
        )
