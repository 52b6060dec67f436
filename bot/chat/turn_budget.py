"""The budget of all turns and of one: rounds are held to the limits and written down, once."""

import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Final

from adapters.llm.messages import TOOLS_EMULATED, CompleteRequest
from adapters.llm.port import Translation, measured
from adapters.llm.written_calls import CALLS_WRITTEN
from bot.chat.models import Models
from bot.chat.round_budget import Charge, RoundBudget
from bot.chat.round_record import RoundRecord
from bot.chat.rounds import Rounds
from bot.domain.audit import AuditEvent, AuditKind
from bot.domain.budget import NO_MODEL, BudgetLimits, Refusal
from bot.domain.ids import SessionId
from bot.domain.session import Ask
from bot.domain.tenancy import TenantOf, single_tenant
from bot.domain.turn_events import TurnEvent
from bot.ports.audit_log import AuditLog
from bot.ports.durability import StopSignal
from bot.ports.ledger import Ledger, LedgerEntry, Reservation
from bot.telemetry.metrics import Metrics

NO_CHOICES = Models()


@dataclass(frozen=True, slots=True)
class Tenants:
    """The tenant of a team, and its daily limit under the limit of all; 0: no limit."""

    of: TenantOf
    daily_usd_micros: Callable[[str], int]


HOME_ALONE: Final = Tenants(single_tenant, lambda _: 0)


@dataclass(slots=True, eq=False, repr=False)
class Budget:
    """Holds rounds to the limits and writes every one down. Shared by all turns of a process."""

    rounds: Rounds
    ledger: Ledger
    audit: AuditLog
    limits: BudgetLimits
    metrics: Metrics
    models: Models = NO_CHOICES
    tenants: Tenants = HOME_ALONE

    def for_turn(
        self,
        ask: Ask,
        session: SessionId,
        purpose: str,
        stop: StopSignal,
        channel_daily_usd_micros: int = 0,
    ) -> "TurnBudget":
        """Of one turn, in its channel's limit too; `stop` ends its rounds."""
        limits = self.limits.for_channel(channel_daily_usd_micros)
        tenant = self.tenants.of(ask.place.team)
        limits = replace(limits, workspace_daily_usd_micros=self.tenants.daily_usd_micros(tenant))
        if not ask.asker.is_somebody:  # how often alerts may ask was judged before
            limits = replace(limits, user_hourly_questions=0)
        return TurnBudget(self, ask, session, purpose, stop, limits)


@dataclass(frozen=True, slots=True)
class _Paid:
    """A round that was asked, and is written down as often as that fails."""

    record: RoundRecord
    budget: RoundBudget
    duration_ms: int


@dataclass(slots=True, eq=False, repr=False)
class TurnBudget:
    budget: Budget
    ask: Ask
    session: SessionId
    purpose: str
    stop: StopSignal
    limits: BudgetLimits
    _paid: dict[int, _Paid] = field(init=False, default_factory=dict)
    _hold: str = field(init=False)

    def __post_init__(self) -> None:
        # Not the turn alone: what a dead process held stays held, for it may have been billed.
        self._hold = f"{self.ask.turn_id}:{uuid.uuid4().hex}"

    async def round(
        self,
        request: CompleteRequest,
        number: int,
        emit: Callable[[TurnEvent], None],
        prefer: str,
        *,
        full: bool = False,
        purpose: str = "",
    ) -> RoundRecord:
        """Run one round within the budget. Raises StorageUnavailable.

        If an earlier call could not store its round, only the record is written: the round is not
        paid twice. `purpose` defaults to the turn's.
        """
        if number not in self._paid:
            started = time.monotonic()
            budget = self._for_round(number, full=full)
            with measured() as took:
                record = await self.budget.rounds.run(
                    request, number, emit, self.stop, prefer=prefer, budget=budget
                )
            seconds = time.monotonic() - started
            self._count(record, took, seconds)
            duration_ms = round(seconds * 1000)
            self._paid[number] = _Paid(record, budget, duration_ms)
        paid = self._paid[number]
        await self._write_down(paid, purpose or self.purpose)
        return paid.record

    @property
    def without_model(self) -> str:
        """The provider that answers without a model, where one may be asked; else empty."""
        names = {provider.name for provider in self.budget.rounds.providers}
        return NO_MODEL if NO_MODEL in names else ""

    def window_tokens(self) -> int:
        """Of the model that is asked first; what a turn plans by."""
        first = next(iter(self.budget.rounds.providers), None)
        return self.budget.models.window_tokens(first) if first else 0

    def _for_round(self, number: int, *, full: bool) -> RoundBudget:
        who = Reservation(
            id=f"{self._hold}:{number}",
            session_id=self.session,
            turn_id=self.ask.turn_id,
            user=self.ask.asker.user,
            channel_id=self.ask.place.channel,
            usd_micros=0,
            tokens=0,
            tenant=self.budget.tenants.of(self.ask.place.team),
        )
        of_all = self.budget
        return RoundBudget(of_all.ledger, self.limits, of_all.models, who, full=full)

    def _count(self, record: RoundRecord, took: Translation, seconds: float) -> None:
        if not record.provider:
            return
        metrics = self.budget.metrics
        outcome = record.error.value if record.error else record.stop_reason.value
        metrics.round_ended(record.provider, outcome)
        metrics.model_asked(record.provider, seconds, record.usage)
        metrics.spent(record.provider, record.cost_usd_micros or 0)
        metrics.translated(record.provider, "request", took.request_s)
        metrics.translated(record.provider, "answer", took.answer_s)
        for kind in self._fallbacks(record):
            metrics.fallback(kind)

    def _fallbacks(self, record: RoundRecord) -> Iterator[str]:
        first = next(iter(self.budget.rounds.providers), None)
        if first is not None and record.provider != first.name:
            yield "provider"
        if record.passed_on:
            yield "model"
        if TOOLS_EMULATED in record.notices or CALLS_WRITTEN in record.notices:
            yield "tools"

    async def _refused(self, number: int, refusal: Refusal) -> None:
        limit = refusal.limit.value
        await self.budget.audit.append_with_step(
            AuditEvent(
                AuditKind.BUDGET_REFUSED,
                self.ask.asker.user,
                {
                    "turn": self.ask.turn_id,
                    "round": number,
                    "limit": limit,
                    "most": refusal.most,
                    "spent": refusal.spent,
                    "held": refusal.held,
                    "wanted": refusal.wanted,
                },
                self.session,
                key=f"{self.ask.turn_id}:budget:{number}:{limit}",
            )
        )

    async def _write_down(self, paid: _Paid, purpose: str) -> None:
        record, budget = paid.record, paid.budget
        for refusal in {each.limit: each for each in reversed(budget.refusals)}.values():
            await self._refused(record.number, refusal)
        held = f"{self._hold}:{record.number}" if budget.holds else ""
        owed = list(budget.charges.items())
        for number, (provider, charge) in enumerate(owed, start=1):
            # The last row takes the reservation's place: until then it covers them all.
            takes = held if number == len(owed) else ""
            await self.budget.ledger.record(
                self._entry(paid, provider, charge, purpose), reservation=takes
            )
        if held and not owed:
            await self.budget.ledger.release(held)
        if record.provider:
            await self._audited(paid)

    def _entry(self, paid: _Paid, provider: str, charge: Charge, purpose: str) -> LedgerEntry:
        ask = self.ask
        return LedgerEntry(
            session_id=self.session,
            turn_id=ask.turn_id,
            round=paid.record.number,
            user=ask.asker.user,
            channel=ask.channel_name or ask.place.channel,
            provider=provider,
            model=charge.model,
            purpose=purpose,
            usage=charge.usage,
            cost_usd_micros=charge.cost_usd_micros,
            duration_ms=paid.duration_ms,
            counted_usd_micros=charge.counted_usd_micros,
            channel_id=ask.place.channel,
            tenant=self.budget.tenants.of(ask.place.team),
        )

    async def _audited(self, paid: _Paid) -> None:
        ask, record = self.ask, paid.record
        await self.budget.audit.append_with_step(
            AuditEvent(
                AuditKind.MODEL_CALL,
                ask.asker.user,
                {
                    "turn": ask.turn_id,
                    "round": record.number,
                    "provider": record.provider,
                    "model": record.model,
                    "stop_reason": record.stop_reason.value,
                    "error": record.error.value if record.error else None,
                    "input_tokens": record.usage.input,
                    "output_tokens": record.usage.output,
                    "cost_usd_micros": record.cost_usd_micros,
                    "duration_ms": paid.duration_ms,
                },
                self.session,
                key=f"{ask.turn_id}:round:{record.number}",
            )
        )
