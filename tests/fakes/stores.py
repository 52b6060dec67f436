"""The stores of `bot.ports` in memory. They pass the same contract suites as the databases.

`Memory` is the one world they share: the audit log and the database's clock, which a test may move.
"""

import math
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta

from pydantic import JsonValue

from adapters.ingested_event import IngestedEvent
from adapters.llm.messages import Message, Role
from bot.domain.audit import AuditEntry, AuditEvent, AuditKind
from bot.domain.budget import BudgetLimits, Refusal
from bot.domain.ids import MessageTs, Place, ProposalId, SessionId, TurnId, UserId, session_at
from bot.domain.proposal import (
    LIFETIME,
    OPEN,
    IllegalTransition,
    Proposal,
    ProposalState,
    Vote,
    check_transition,
    refused_by,
)
from bot.domain.session import Ask, Session, Summary, Turn, TurnState
from bot.domain.tenancy import is_shared
from bot.domain.turn_events import Evidence
from bot.ports.ledger import DatedEntry, LedgerEntry, Reservation, SpentBy, Today
from bot.ports.proposals import Around, Decision, Departure, Verdict
from bot.store.allowance import HELD_S, Amount, Used, exceeded
from bot.store.session_rows import asked_in


def _utc_now() -> datetime:
    return datetime.now(UTC)


@dataclass
class Memory:
    """What a database would share between its tables."""

    now: Callable[[], datetime] = _utc_now
    audit_log: list[AuditEvent] = field(default_factory=list)

    def append(self, event: AuditEvent) -> None:
        """One row per key."""
        if not event.key or all(event.key != each.key for each in self.audit_log):
            self.audit_log.append(event)

    def kinds(self) -> list[AuditKind]:
        return [event.kind for event in self.audit_log]


class MemoryAudit:
    """AuditLog."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory

    async def append(self, event: AuditEvent) -> None:
        self._memory.append(event)

    async def append_with_step(self, event: AuditEvent) -> None:
        self._memory.append(event)


class MemoryAuditReader:
    """AuditReader."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory

    async def entries(
        self,
        *,
        after: int = 0,
        session: str = "",
        since: datetime | None = None,
        limit: int = 1000,
        newest: bool = False,
    ) -> Sequence[AuditEntry]:
        found = [
            AuditEntry(
                seq,
                self._memory.now(),
                event.kind.value,
                event.actor,
                event.session_id,
                event.body,
                f"{seq:064x}",
                "1",
            )
            for seq, event in enumerate(self._memory.audit_log, 1)
            if seq > after and event.session_id.startswith(session)
        ]
        return found[-limit:] if newest else found[:limit]


@dataclass
class _KeptTurn:
    turn: Turn
    ts: MessageTs
    messages: list[Message]
    evidence: list[Evidence] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)
    answer: str = ""


class MemorySessions:
    """SessionStore."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self.sessions: dict[Place, Session] = {}
        self.turns: dict[TurnId, _KeptTurn] = {}
        self.idle_ttl = timedelta(hours=168)
        self.resumed_at: dict[SessionId, datetime] = {}

    def _opened(self, ask: Ask, name: str, at: datetime) -> Session:
        fresh = Session(SessionId(f"session:{ask.place.key}"), ask.place, name, at, at)
        kept = self.sessions.setdefault(ask.place, fresh)
        if at - kept.active_at > self.idle_ttl:
            kept = replace(kept, resumed_by=ask.turn_id, summary="", summary_ts="")
            self.resumed_at[kept.id] = at
        self.sessions[ask.place] = replace(kept, active_at=max(kept.active_at, at))
        others = [turn.turn.session_id for turn in self.turns.values() if turn.ts != ask.ts]
        return replace(self.sessions[ask.place], is_new=kept.id not in others)

    async def find(self, place: Place) -> Session | None:
        return self.sessions.get(place)

    async def get(self, session_id: SessionId) -> Session | None:
        return next((s for s in self.sessions.values() if s.id == session_id), None)

    async def begin_turn(self, ask: Ask, name: str, at: datetime, told: str = "") -> Session:
        session = self._opened(ask, name, at)
        if ask.turn_id in self.turns:
            return session
        turn = Turn(ask.turn_id, session.id, ask.asker, TurnState.RUNNING, at)
        self.turns[turn.id] = _KeptTurn(
            turn, ask.ts, [Message(Role.USER, text=ask.text, told=told)]
        )
        self._memory.append(
            AuditEvent(
                AuditKind.TURN_STARTED,
                ask.asker.user,
                {"turn": turn.id, "place": ask.place.key, "session_name": session.name},
                session.id,
                f"{turn.id}:started",
            )
        )
        return session

    async def history(
        self, session: SessionId, before: TurnId, after_ts: str = ""
    ) -> Sequence[Message]:
        if before not in self.turns:
            return []
        return [m for key in self._read_by(before, after_ts) for m in self.turns[key[1]].messages]

    def _read_by(self, turn: TurnId, after_ts: str) -> list[tuple[MessageTs, TurnId]]:
        this = self.turns[turn]
        session = this.turn.session_id
        since = self.resumed_at.get(session, datetime.min.replace(tzinfo=UTC))
        return sorted(
            (kept.ts, kept.turn.id)
            for kept in self.turns.values()
            if kept.turn.session_id == session
            and kept.turn.state is not TurnState.RUNNING
            and kept.turn.started_at >= since
            and kept.ts > after_ts
            and (kept.ts, kept.turn.id) < (this.ts, turn)
        )

    async def finish_turn(
        self,
        turn: TurnId,
        state: TurnState,
        messages: Sequence[Message],
        evidence: Sequence[Evidence],
        at: datetime,
        summary: Summary | None = None,
        notices: Sequence[str] = (),
        answer: str = "",
    ) -> bool:
        kept = self.turns.get(turn)
        if kept is None:
            return False
        kept.answer = kept.answer or answer
        if kept.turn.state is not TurnState.RUNNING:
            return bool(answer)
        if summary is not None:
            place, of = next(
                (p, s) for p, s in self.sessions.items() if s.id == kept.turn.session_id
            )
            upto, _ = self._read_by(turn, of.summary_ts)[summary.turns - 1]
            self.sessions[place] = replace(of, summary=summary.text, summary_ts=upto)
        kept.turn = replace(kept.turn, state=state, ended_at=at)
        kept.messages.extend(messages)
        kept.evidence.extend(evidence)
        kept.notices.extend(notices)
        self._memory.append(
            AuditEvent(
                AuditKind.TURN_ENDED,
                kept.turn.asked_by.user,
                {"turn": turn, "state": state.value, "evidence": len(evidence)},
                kept.turn.session_id,
                f"{turn}:ended",
            )
        )
        return bool(answer)

    async def set_answer(self, turn: TurnId, ts: MessageTs) -> None:
        if turn in self.turns:
            kept = self.turns[turn]
            kept.turn = replace(kept.turn, answer_ts=ts)

    async def turn_of_answer(self, place: Place, ts: MessageTs) -> TurnId | None:
        ids = {
            s.id
            for s in self.sessions.values()
            if (s.place.team, s.place.channel) == (place.team, place.channel)
        }
        return self._oldest(lambda t: t.session_id in ids and t.answer_ts == ts)

    async def running_turn(self, place: Place) -> TurnId | None:
        session = self.sessions.get(place)
        return self._oldest(
            lambda t: (
                session is not None and t.session_id == session.id and t.state is TurnState.RUNNING
            )
        )

    async def evidence(self, turn: TurnId, number: int) -> Evidence | None:
        kept = self.turns.get(turn)
        found = [e for e in kept.evidence if e.number == number] if kept else []
        return found[0] if found else None

    async def answer(self, turn: TurnId) -> str:
        return self.turns[turn].answer if turn in self.turns else ""

    async def notices(self, turn: TurnId) -> Sequence[str]:
        return list(self.turns[turn].notices) if turn in self.turns else []

    async def consulted(self, turn: TurnId) -> Sequence[tuple[Evidence, Mapping[str, JsonValue]]]:
        kept = self.turns.get(turn)
        found = sorted(kept.evidence, key=lambda each: each.number) if kept else []
        said = kept.messages if kept else ()
        return [(replace(e, content=""), asked_in(said, e.tool_call_id)) for e in found]

    async def asked(self, turn: TurnId, tool_call_id: str) -> Mapping[str, JsonValue]:
        kept = self.turns.get(turn)
        return asked_in(kept.messages if kept else (), tool_call_id)

    def _oldest(self, matches: Callable[[Turn], bool]) -> TurnId | None:
        found = sorted((k.ts, k.turn.id) for k in self.turns.values() if matches(k.turn))
        return found[0][1] if found else None


def _is_here(one: Place, other: Place) -> bool:
    of_channel = (one.team, one.channel) == (other.team, other.channel)
    return of_channel and (is_shared(one.team) or one == other)


class MemoryProposals:
    """ProposalStore."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self.rows: dict[ProposalId, Proposal] = {}
        self._keys: dict[ProposalId, str] = {}
        self._dispatched_at: dict[ProposalId, datetime] = {}

    async def create(self, proposal: Proposal, audit: AuditEvent) -> Proposal:
        if (kept := self.rows.get(proposal.id)) is not None:
            return kept
        same = [
            row
            for row in self._like(proposal)
            if row.state in OPEN
            and _is_here(row.place, proposal.place)
            and (
                row.state is not ProposalState.PENDING
                or self._in_time(row, ProposalState.CONFIRMED)
            )
        ]
        return same[0] if same else self._insert(proposal, audit)

    def _insert(self, proposal: Proposal, audit: AuditEvent) -> Proposal:
        self.rows[proposal.id] = proposal
        self._memory.append(audit)
        return proposal

    async def now(self) -> datetime:
        return self._memory.now()

    async def get(self, proposal_id: ProposalId) -> Proposal | None:
        return self.rows.get(proposal_id)

    async def decide(
        self, proposal_id: ProposalId, decision: Decision, audit: AuditEvent
    ) -> Verdict | None:
        check_transition(ProposalState.PENDING, decision.to)
        row = self.rows.get(proposal_id)
        if row is None:
            return None
        if row.state is not ProposalState.PENDING or not self._in_time(row, decision.to):
            return self._afterwards(row, decision.key)
        if decision.to is ProposalState.CONFIRMED and row.approvals > 1:
            if any(vote.by == decision.by for vote in row.votes):
                return self._afterwards(row, decision.key)
            votes = (*row.votes, Vote(UserId(decision.by), self._memory.now(), decision.key))
            row = self.rows[proposal_id] = replace(row, votes=votes)
            self._memory.append(
                replace(
                    audit,
                    kind=AuditKind.PROPOSAL_VOTED,
                    body={**audit.body, "vote": len(votes), "of": row.approvals},
                    key=f"voted:{decision.key}",
                )
            )
            if len(votes) < row.approvals:
                return Verdict(False, row, voted=True)
        decided = replace(
            row,
            state=decision.to,
            decided_by=UserId(decision.by),
            decided_at=self._memory.now(),
            reason=decision.reason,
        )
        self.rows[proposal_id] = decided
        self._keys[proposal_id] = decision.key
        self._memory.append(audit)
        return Verdict(True, decided)

    async def supersede(
        self,
        proposal_id: ProposalId,
        decision: Decision,
        audit: AuditEvent,
        successor: Proposal,
        created: AuditEvent,
    ) -> Verdict | None:
        row = self.rows.get(proposal_id)
        if row is not None and row.expires_at <= self._memory.now():
            return self._afterwards(row, decision.key)
        verdict = await self.decide(proposal_id, decision, audit)
        if verdict is not None and verdict.won and successor.id not in self.rows:
            begins = verdict.proposal.decided_at or self._memory.now()
            fresh = replace(successor, created_at=begins, expires_at=begins + LIFETIME)
            self._insert(fresh, created)
        return verdict

    def _afterwards(self, row: Proposal, key: str) -> Verdict:
        won = self._keys.get(row.id) == key
        return Verdict(won, row, not won and any(vote.key == key for vote in row.votes))

    async def advance(
        self,
        proposal_id: ProposalId,
        before: ProposalState,
        after: ProposalState,
        outcome: str,
        audit: AuditEvent,
    ) -> bool:
        check_transition(before, after)
        row = self.rows.get(proposal_id)
        if row is None or row.state is not before:
            return False
        if after is ProposalState.DISPATCHING:
            raise IllegalTransition("only begin_dispatch")
        self.rows[proposal_id] = replace(row, state=after, outcome=outcome)
        self._memory.append(audit)
        return True

    async def begin_dispatch(self, proposal_id: ProposalId, audit: AuditEvent) -> Departure:
        row = self.rows.get(proposal_id)
        if row is None or row.state is not ProposalState.CONFIRMED:
            return Departure(is_ours=False)
        if (same := self._in_the_way(row)) is not None:
            return Departure(is_ours=False, same=same)
        self.rows[proposal_id] = replace(row, state=ProposalState.DISPATCHING, outcome="")
        self._dispatched_at[proposal_id] = self._memory.now()
        self._memory.append(audit)
        return Departure(is_ours=True)

    async def same_order(self, proposal_id: ProposalId) -> Proposal | None:
        row = self.rows.get(proposal_id)
        return None if row is None else self._in_the_way(row)

    async def retire_same(
        self, proposal_id: ProposalId, outcome: str, event: Callable[[Proposal], AuditEvent]
    ) -> Sequence[ProposalId]:
        row = self.rows.get(proposal_id)
        over = [
            each
            for each in (self._like(row) if row else ())
            if each.state is ProposalState.PENDING and self._in_the_way(each)
        ]
        for each in over:
            self.rows[each.id] = replace(
                each,
                state=ProposalState.SUPERSEDED,
                outcome=outcome,
                decided_at=self._memory.now(),
            )
            self._memory.append(event(each))
        return [each.id for each in over]

    def _like(self, row: Proposal) -> Sequence[Proposal]:
        order = (row.action, row.product, row.digest)
        return [
            each
            for each in self.rows.values()
            if each.id != row.id and (each.action, each.product, each.digest) == order
        ]

    def _in_the_way(self, row: Proposal) -> Proposal | None:
        raised = self._number(f"{row.id}:created")
        found = [
            (self._dispatched_at[each.id], each)
            for each in self._like(row)
            if each.id in self._dispatched_at
            and not refused_by(each)
            and not self._number(f"{each.id}:outcome") < raised
        ]
        return max(found, key=lambda one: one[0])[1] if found else None

    def _number(self, key: str) -> float:
        """The position of a row in the audit log; a missing row comes last."""
        found = [number for number, event in enumerate(self._memory.audit_log) if event.key == key]
        return found[0] if found else math.inf

    async def due(self, limit: int) -> Sequence[ProposalId]:
        late = sorted(
            (row.expires_at, row.id)
            for row in self.rows.values()
            if row.state is ProposalState.PENDING and row.expires_at <= self._memory.now()
        )
        return [each for _, each in late[:limit]]

    async def of_session(
        self, session: SessionId, state: ProposalState | None = None
    ) -> Sequence[Proposal]:
        wanted = set(ProposalState) if state is None else {state}
        found = [r for r in self.rows.values() if r.session_id == session and r.state in wanted]
        return sorted(found, key=lambda row: (row.created_at, row.id))

    async def around(
        self,
        session: SessionId,
        place: Place,
        products: Collection[str] | None,
        seconds: float,
        limit: int,
    ) -> Around:
        threads = self._in_threads(place, seconds) if is_shared(place.team) else []
        others = self._carried_out_elsewhere(place, products, seconds)
        return Around(await self.of_session(session), threads[-limit:], others[-limit:])

    def _in_threads(self, place: Place, seconds: float) -> Sequence[Proposal]:
        since = self._memory.now() - timedelta(seconds=seconds)
        found = [
            row
            for row in self.rows.values()
            if (row.place.team, row.place.channel) == (place.team, place.channel)
            and row.place != place
            and row.created_at > since
            and row.state not in (ProposalState.EXPIRED, ProposalState.SUPERSEDED)
            and (
                row.state is not ProposalState.PENDING
                or self._in_time(row, ProposalState.CONFIRMED)
            )
        ]
        return sorted(found, key=lambda row: (row.created_at, row.id))

    def _carried_out_elsewhere(
        self, place: Place, products: Collection[str] | None, seconds: float
    ) -> Sequence[Proposal]:
        since = self._memory.now() - timedelta(seconds=seconds)
        found = [
            (self._dispatched_at[row.id], row)
            for row in self.rows.values()
            if row.id in self._dispatched_at
            and self._dispatched_at[row.id] > since
            and row.session_id != session_at(place)
            and not _is_here(row.place, place)
            and (products is None or row.product in products)
            and not refused_by(row)
        ]
        return [row for _, row in sorted(found, key=lambda one: (one[0], one[1].id))]

    async def dispatches_since(self, action: str, product: str, seconds: float) -> int:
        since = self._memory.now() - timedelta(seconds=seconds)
        return sum(
            (self.rows[each].action, self.rows[each].product) == (action, product) and at > since
            for each, at in self._dispatched_at.items()
        )

    def _in_time(self, row: Proposal, to: ProposalState) -> bool:
        alive = row.expires_at > self._memory.now()
        return {
            ProposalState.CONFIRMED: alive,
            ProposalState.REJECTED: alive,
            ProposalState.EXPIRED: not alive,
        }.get(to, True)


class MemoryLedger:
    """Ledger."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self.rows: dict[tuple[TurnId, int, str], tuple[datetime, LedgerEntry]] = {}
        self.held: dict[str, tuple[datetime, Reservation]] = {}

    async def reserve(self, wanted: Reservation, limits: BudgetLimits) -> Refusal | None:
        others = [(at, r) for at, r in self.held.values() if r.id != wanted.id]
        now = self._memory.now()
        spent_today = [s for at, s in self.rows.values() if at.date() == now.date()]
        held_today = [r for at, r in others if at.date() == now.date()]
        hour = now.replace(minute=0, second=0, microsecond=0)
        who = (wanted.tenant, wanted.user)
        rows = self.rows.values()
        asked = {s.turn_id for at, s in rows if at >= hour and (s.tenant, s.user) == who}
        asked |= {r.turn_id for at, r in others if at >= hour and (r.tenant, r.user) == who}
        here = (wanted.tenant, wanted.channel_id)
        lapsed = now - timedelta(seconds=HELD_S)
        used = Used(
            Amount(sum(map(_counted, spent_today)), sum(r.usd_micros for r in held_today)),
            Amount(
                sum(_counted(s) for s in spent_today if s.tenant == wanted.tenant),
                sum(r.usd_micros for r in held_today if r.tenant == wanted.tenant),
            ),
            Amount(
                sum(_counted(s) for s in spent_today if (s.tenant, s.channel_id) == here),
                sum(r.usd_micros for r in held_today if (r.tenant, r.channel_id) == here),
            ),
            Amount(len(asked - {wanted.turn_id})),
            Amount(
                sum(
                    s.usage.input + s.usage.output
                    for _, s in self.rows.values()
                    if s.session_id == wanted.session_id
                ),
                sum(
                    r.tokens
                    for at, r in others
                    if r.session_id == wanted.session_id
                    and r.turn_id != wanted.turn_id
                    and at >= lapsed
                ),
            ),
        )
        refusal = exceeded(used, wanted, limits)
        if refusal is None:
            self.held[wanted.id] = (now, wanted)
        return refusal

    async def release(self, reservation: str) -> None:
        self.held.pop(reservation, None)

    async def record(self, spending: LedgerEntry, reservation: str = "") -> None:
        key = (spending.turn_id, spending.round, spending.provider)
        at, _ = self.held.pop(reservation, (self._memory.now(), None))
        self.rows.setdefault(key, (at, spending))

    async def today(self) -> Today:
        now = self._memory.now()
        spent = [s for at, s in self.rows.values() if at.date() == now.date()]
        held = [r for at, r in self.held.values() if at.date() == now.date()]
        return Today(
            sum(s.cost_usd_micros or 0 for s in spent),
            sum(map(_counted, spent)),
            sum(r.usd_micros for r in held),
            now,
        )

    async def entries(self, since: datetime, until: datetime) -> AsyncIterator[DatedEntry]:
        ordered = sorted(self.rows.items(), key=lambda item: (item[1][0], item[0]))
        for _, (at, spending) in ordered:
            if since <= at < until:
                yield DatedEntry(at, spending)

    async def report(self, day: date | None, by: str) -> Sequence[SpentBy]:
        names: dict[str, Callable[[LedgerEntry], str]] = {
            "user": lambda s: s.user,
            "channel": lambda s: s.channel,
            "provider": lambda s: s.provider,
            "session": lambda s: s.session_id,
        }
        if by not in names:
            raise ValueError(f"no report by {by}")
        wanted = day or self._memory.now().date()
        groups: dict[str, list[LedgerEntry]] = defaultdict(list)
        for at, spending in self.rows.values():
            if at.date() == wanted:
                groups[names[by](spending)].append(spending)
        totals = [_total(name, each) for name, each in groups.items()]
        return sorted(totals, key=lambda total: (-total.usd_micros, total.name))


def _counted(spending: LedgerEntry) -> int:
    counted = spending.counted_usd_micros
    return (spending.cost_usd_micros or 0) if counted is None else counted


def _total(name: str, spent: Sequence[LedgerEntry]) -> SpentBy:
    return SpentBy(
        name=name,
        usd_micros=sum(s.cost_usd_micros or 0 for s in spent),
        rounds=len(spent),
        rounds_unpriced=sum(s.cost_usd_micros is None for s in spent),
        tokens=sum(s.usage.input + s.usage.output for s in spent),
    )


class MemoryEvents:
    """EventStore."""

    def __init__(self) -> None:
        self.rows: dict[tuple[str, str], IngestedEvent] = {}

    async def add(self, found: Sequence[IngestedEvent]) -> int:
        before = len(self.rows)
        for event in found:
            if not self._is_at(event):
                self.rows.setdefault((event.source, event.id), event)
        return len(self.rows) - before

    def _is_at(self, event: IngestedEvent) -> bool:
        mine = [each for each in self.rows.values() if each.course == event.course]
        newest = max(mine, key=lambda each: each.at, default=None)
        return bool(event.course) and newest is not None and newest.step == event.step
