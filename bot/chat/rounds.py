"""One round: ask a provider, stream what it says, and turn to the next one on a hard failure.

Fails over only while nothing of the round was shown. After that the round ends honestly with what
there is: no provider can continue another's sentence.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from adapters.llm.messages import (
    CompleteRequest,
    DoneChunk,
    ErrorChunk,
    ErrorKind,
    StopReason,
    Usage,
)
from adapters.llm.port import Provider
from bot.chat.attempt import Attempt, Emit, is_refused, is_worth_retrying, read
from bot.chat.circuits import Circuit, Circuits
from bot.chat.models import NEED_MORE_CONTEXT, KnownModel, MarkerFilter, passed_on, uses_model
from bot.chat.round_budget import Admitted, NotAdmitted, RoundBudget
from bot.chat.round_record import RoundRecord
from bot.chat.stopping import StoppedByPerson, unless_stopped
from bot.chat.turn_trace import model_request
from bot.domain.turn_events import Notice, RoundStarted
from bot.ports.durability import StopSignal

# After each provider's own limit, because the provider knows the usage billed.
BEHIND_S = 30.0
RETRY_DELAY_S = 0.5
LONGEST_RETRY_S = 8.0  # the vendors' own clients wait no longer between tries


class Rounds:
    """Runs rounds against an ordered list of providers (the default first)."""

    def __init__(self, providers: Sequence[Provider], circuits: Circuits | None = None) -> None:
        self._providers = tuple(providers)
        self._circuits = circuits or Circuits()
        # Models that answer only when no tool is required of them, as found out.
        self._unforced: set[tuple[str, str]] = set()

    @property
    def providers(self) -> Sequence[Provider]:
        return self._providers

    @property
    def asks_a_model(self) -> bool:
        """Whether a model is asked before the provider that needs none."""
        ready = (p for p in self._providers if p.unavailable_reason is None)
        first = next(ready, None)
        return first is not None and uses_model(first)

    def ask_in_order(self, providers: Sequence[Provider]) -> None:
        """Change the order for the rounds that start from now on."""
        self._providers = tuple(providers)

    def circuit(self, provider: str) -> Circuit:
        """Whether a provider's configured model is asked now, and if not, why and until when."""
        return self._circuits.of(provider)

    async def run(
        self,
        request: CompleteRequest,
        number: int,
        emit: Emit,
        stop: StopSignal,
        *,
        budget: RoundBudget,
        prefer: str = "",
    ) -> RoundRecord:
        """Ask until one answers. Raises only what the budget raises, and on cancellation.

        `prefer` keeps a turn with the provider that answered its earlier rounds; what the `budget`
        does not admit is not asked.
        """
        record = await self._asked(request, number, emit, stop, budget, prefer)
        return replace(record, failing=self._failing()) if record.notices else record

    def _failing(self) -> tuple[tuple[str, datetime], ...]:
        began = ((p.name, self._circuits.failing_since(p.name)) for p in self._providers)
        return tuple((name, since) for name, since in began if since is not None)

    async def _asked(
        self,
        request: CompleteRequest,
        number: int,
        emit: Emit,
        stop: StopSignal,
        budget: RoundBudget,
        prefer: str,
    ) -> RoundRecord:
        notices: list[str] = []
        failed: ErrorChunk | None = None
        held_back = False
        for provider in self._candidates(prefer, notices, budget):
            asked = False
            for model in self._ready(provider, budget):
                admitted = await self._admitted(provider, model, request, notices, emit, budget)
                if admitted is None:
                    continue  # the next one is cheaper
                asked = True
                emit(RoundStarted(number, provider.name, admitted.request.model))
                attempt = await self._attempt(provider, model, admitted, emit, stop, budget, number)
                if attempt.stopped or attempt.shown or isinstance(attempt.end, DoneChunk):
                    record = self._record(provider, number, attempt, notices, budget)
                    return passed_on(record) if admitted.trial else record
                failed = attempt.end or ErrorChunk(ErrorKind.CUT, "no answer")
                self._told(notices, emit, _said_of(provider, failed.message))
                if not _limits_one_model(provider, failed):
                    break
            held_back = held_back or not asked
        return _unanswered(number, failed, notices, budget, out_of_budget=held_back)

    async def _attempt(
        self,
        provider: Provider,
        model: KnownModel,
        admitted: Admitted,
        emit: Emit,
        stop: StopSignal,
        budget: RoundBudget,
        number: int,
    ) -> Attempt:
        turn_down = MarkerFilter(NEED_MORE_CONTEXT, emit) if admitted.trial else None
        attempt = await self._try(
            provider, model, admitted.request, turn_down or emit, stop, budget, number
        )
        self._circuits.heard(
            provider.name, attempt.end, model.id, by_model=provider.limits_by_model
        )
        if turn_down:
            turn_down.flush()
        return attempt

    async def _admitted(
        self,
        provider: Provider,
        model: KnownModel,
        request: CompleteRequest,
        notices: list[str],
        emit: Emit,
        budget: RoundBudget,
    ) -> Admitted | None:
        admitted = await budget.admit(provider, model, request)
        if isinstance(admitted, Admitted):
            for notice in admitted.notices:
                self._told(notices, emit, notice)
            return admitted
        if admitted.reason not in notices:
            self._told(notices, emit, admitted.reason)
        return None

    def _candidates(self, prefer: str, notices: list[str], budget: RoundBudget) -> list[Provider]:
        """The providers to ask, in order.

        If all are skipped, providers without a retry time are tried: an operator may have fixed the
        fault, and an answer is worth one failed request.
        """
        ready: list[Provider] = []
        left_alone: list[Provider] = []
        for provider in sorted(
            self._providers, key=lambda p: p.name != prefer if prefer else False
        ):
            reason = provider.unavailable_reason
            circuit = self._soonest(provider, budget)
            if reason is None and not circuit.wait_s:
                ready.append(provider)
                continue
            if reason is None and not circuit.asked_to_wait:
                left_alone.append(provider)
            if not ready:
                notices.append(_said_of(provider, reason or _left_alone(circuit)))
        return ready or left_alone

    def _soonest(self, provider: Provider, budget: RoundBudget) -> Circuit:
        models = budget.models(provider)
        circuits = [self._circuits.of(provider.name, model.id) for model in models]
        return min(circuits, key=lambda circuit: circuit.wait_s, default=Circuit())

    def _ready(self, provider: Provider, budget: RoundBudget) -> Sequence[KnownModel]:
        models = budget.models(provider)
        ready = [m for m in models if not self._circuits.of(provider.name, m.id).wait_s]
        return ready or models

    @staticmethod
    def _told(notices: list[str], emit: Emit, text: str) -> None:
        notices.append(text)
        emit(Notice(text))

    async def _try(
        self,
        provider: Provider,
        model: KnownModel,
        request: CompleteRequest,
        emit: Emit,
        stop: StopSignal,
        budget: RoundBudget,
        number: int,
    ) -> Attempt:
        self._circuits.asked(provider.name, model.id)
        if (provider.name, request.model) in self._unforced:
            request = replace(request, require_tool=False)
        attempt = await self._ask(provider, request, emit, stop, number)
        budget.note(provider, model, attempt.end, answered=attempt.answered)
        if request.require_tool and is_refused(attempt):
            request = replace(request, require_tool=False)
            if isinstance(await budget.admit(provider, model, request), NotAdmitted):
                return attempt
            attempt = await self._ask(provider, request, emit, stop, number)
            budget.note(provider, model, attempt.end, answered=attempt.answered)
            if isinstance(attempt.end, DoneChunk):
                self._unforced.add((provider.name, request.model))
        if is_worth_retrying(attempt):
            assert isinstance(attempt.end, ErrorChunk)  # noqa: S101 - said by is_worth_retrying
            delay_s = attempt.end.retry_after_s or RETRY_DELAY_S
            if delay_s <= LONGEST_RETRY_S:
                try:
                    await unless_stopped(stop, asyncio.sleep(delay_s))
                except StoppedByPerson:
                    attempt.stopped = True
                    return attempt
                if isinstance(await budget.admit(provider, model, request), NotAdmitted):
                    return attempt
                attempt = await self._ask(provider, request, emit, stop, number)
                budget.note(provider, model, attempt.end, answered=attempt.answered)
        return attempt

    async def _ask(
        self,
        provider: Provider,
        request: CompleteRequest,
        emit: Emit,
        stop: StopSignal,
        number: int,
    ) -> Attempt:
        attempt = Attempt(number)

        limit_s = provider.round_limit_s + BEHIND_S

        async def asked() -> None:
            try:
                async with asyncio.timeout(limit_s):
                    await read(provider, request, attempt, emit)
            except TimeoutError:
                attempt.end = ErrorChunk(
                    ErrorKind.TIMEOUT, f"no complete answer after {limit_s:.0f} s"
                )

        with model_request(provider.name, request, attempt):
            try:
                await unless_stopped(stop, asked())
            except StoppedByPerson:
                attempt.stopped = attempt.end is None
        return attempt

    @staticmethod
    def _record(
        provider: Provider,
        number: int,
        attempt: Attempt,
        notices: Sequence[str],
        budget: RoundBudget,
    ) -> RoundRecord:
        end = attempt.end
        done = end if isinstance(end, DoneChunk) else None
        usage = (end.usage if end else None) or Usage()
        return RoundRecord(
            number=number,
            provider=provider.name,
            model=done.model if done else "",
            text="".join(attempt.text),
            tool_calls=tuple(attempt.calls) if done else (),
            stop_reason=done.stop_reason if done else StopReason.ERROR,
            usage=usage,
            cost_usd_micros=budget.cost_usd_micros,
            provider_blocks=done.provider_blocks if done else (),
            notices=(*notices, *(done.warnings if done else ())),
            error=end.kind if isinstance(end, ErrorChunk) else None,
            error_message=end.message if isinstance(end, ErrorChunk) else "",
            stopped=attempt.stopped,
        )


def _said_of(provider: Provider, words: str) -> str:
    return words if words.startswith(provider.name) else f"{provider.name}: {words}"


def _left_alone(circuit: Circuit) -> str:
    return f"not asked for {circuit.wait_s:.0f} s ({circuit.why.replace('_', ' ')})"


def _limits_one_model(provider: Provider, failed: ErrorChunk) -> bool:
    return provider.limits_by_model and failed.kind is ErrorKind.RATE_LIMITED


def _unanswered(
    number: int,
    failed: ErrorChunk | None,
    notices: Sequence[str],
    budget: RoundBudget,
    *,
    out_of_budget: bool,
) -> RoundRecord:
    if failed is None:
        failed = ErrorChunk(ErrorKind.UNAVAILABLE, "; ".join(notices) or "no provider")
    return RoundRecord(
        number=number,
        provider="",
        model="",
        text="",
        tool_calls=(),
        stop_reason=StopReason.ERROR,
        usage=Usage(),
        cost_usd_micros=budget.cost_usd_micros,
        notices=tuple(notices),
        error=failed.kind,
        error_message=failed.message,
        out_of_budget=out_of_budget,
    )
