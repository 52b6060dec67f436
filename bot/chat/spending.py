"""Money around a round: may it be asked, what did it cost, who is told."""

import time
from collections.abc import Callable
from dataclasses import replace

from adapters.llm.messages import CompleteRequest
from bot.chat.round_record import RoundRecord
from bot.chat.rounds import Rounds
from bot.domain.audit import AuditEvent, AuditKind
from bot.domain.budget import BudgetLimits, may_spend
from bot.domain.events import Notice, TurnEvent
from bot.domain.ids import SessionId
from bot.domain.session import Ask
from bot.metrics import Metrics
from bot.ports import AuditLog, Ledger, Spending, StopSignal

SPENT = "today's budget is spent: only providers that cost nothing were asked"


class Purse:
    """Guards the day's limit and writes every round down. Shared by all turns of a process."""

    def __init__(
        self,
        rounds: Rounds,
        ledger: Ledger,
        audit: AuditLog,
        limits: BudgetLimits,
        metrics: Metrics,
    ) -> None:
        self.rounds = rounds
        self.ledger = ledger
        self.audit = audit
        self.limits = limits
        self.metrics = metrics

    def spender(self, ask: Ask, session: SessionId, purpose: str) -> "Spender":
        """The purse as one turn uses it."""
        return Spender(self, ask, session, purpose)


class Spender:
    """One turn's rounds, priced and recorded."""

    def __init__(self, purse: Purse, ask: Ask, session: SessionId, purpose: str) -> None:
        self._purse = purse
        self._ask = ask
        self._session = session
        self._purpose = purpose
        self._answered: dict[int, tuple[RoundRecord, int]] = {}

    async def round(
        self,
        request: CompleteRequest,
        number: int,
        emit: Callable[[TurnEvent], None],
        prefer: str,
        stop: StopSignal,
    ) -> RoundRecord:
        """Run one round within the budget. Raises StorageUnavailable.

        Asked again for a round that could not be written down, it writes it down and no more:
        what was paid and shown is not bought twice.
        """
        if number not in self._answered:
            started = time.monotonic()
            record = await self._asked(request, number, emit, prefer, stop)
            self._answered[number] = record, round((time.monotonic() - started) * 1000)
        record, duration_ms = self._answered[number]
        await self._write_down(record, duration_ms)
        return record

    async def _asked(
        self,
        request: CompleteRequest,
        number: int,
        emit: Callable[[TurnEvent], None],
        prefer: str,
        stop: StopSignal,
    ) -> RoundRecord:
        purse = self._purse
        solvent = may_spend(purse.limits, await purse.ledger.spent_today())
        if not solvent:
            await self._refused(number)
            emit(Notice(SPENT))
        record = await purse.rounds.run(
            request, number, emit, stop, prefer=prefer, free_only=not solvent
        )
        self._count(record)
        return record if solvent else replace(record, notices=(SPENT, *record.notices))

    def _count(self, record: RoundRecord) -> None:
        if record.provider:
            outcome = record.error.value if record.error else record.stop_reason.value
            self._purse.metrics.round_ended(record.provider, outcome)
            self._purse.metrics.spent(record.provider, record.cost_usd_micros or 0)

    async def _refused(self, number: int) -> None:
        await self._purse.audit.append(
            AuditEvent(
                AuditKind.BUDGET_REFUSED,
                self._ask.asker.user,
                {"turn": self._ask.turn_id, "round": number, "limit": "daily"},
                self._session,
                key=f"{self._ask.turn_id}:budget:{number}",
            )
        )

    async def _write_down(self, record: RoundRecord, duration_ms: int) -> None:
        if not record.provider:
            return
        ask = self._ask
        await self._purse.ledger.record(
            Spending(
                session_id=self._session,
                turn_id=ask.turn_id,
                round=record.number,
                user=ask.asker.user,
                channel=ask.channel_name or ask.place.channel,
                provider=record.provider,
                model=record.model,
                purpose=self._purpose,
                usage=record.usage,
                cost_usd_micros=record.cost_usd_micros,
                duration_ms=duration_ms,
            )
        )
        await self._purse.audit.append(
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
                    "duration_ms": duration_ms,
                },
                self._session,
                key=f"{ask.turn_id}:round:{record.number}",
            )
        )
