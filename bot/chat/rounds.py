"""One round: ask a provider, stream what it says, and turn to the next one on a hard failure.

Fails over only while nothing of the round was shown. After that the round ends honestly with what
there is: no provider can continue another's sentence.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

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
        record = await self._asked(_Asking(request, number, emit, stop, budget), prefer)
        if not record.notices:
            return record
        began = ((p.name, self._circuits.failing_since(p.name)) for p in self._providers)
        failing = tuple((name, since) for name, since in began if since is not None)
        return replace(record, failing=failing)

    async def _asked(self, asking: "_Asking", prefer: str) -> RoundRecord:
        failed: ErrorChunk | None = None
        held_back = False
        for provider in self._candidates(asking, prefer):
            asked = False
            for model in self._ready(provider, asking.budget):
                admitted = await asking.admitted(provider, model)
                if admitted is None:
                    continue  # the next one is cheaper
                asked = True
                asking.emit(RoundStarted(asking.number, provider.name, admitted.request.model))
                attempt = await self._attempt(asking, provider, model, admitted)
                if attempt.stopped or attempt.shown or isinstance(attempt.end, DoneChunk):
                    record = asking.record(provider, attempt)
                    return passed_on(record) if admitted.trial else record
                failed = attempt.end or ErrorChunk(ErrorKind.CUT, "no answer")
                asking.tell(_said_of(provider, failed.message))
                if not (provider.limits_by_model and failed.kind is ErrorKind.RATE_LIMITED):
                    break
            held_back = held_back or not asked
        return asking.unanswered(failed, out_of_budget=held_back)

    def _candidates(self, asking: "_Asking", prefer: str) -> list[Provider]:
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
            models = asking.budget.candidates(provider)
            circuits = [self._circuits.of(provider.name, model.id) for model in models]
            circuit = min(circuits, key=lambda each: each.wait_s, default=Circuit())
            if reason is None and not circuit.wait_s:
                ready.append(provider)
                continue
            if reason is None and not circuit.asked_to_wait:
                left_alone.append(provider)
            if not ready:
                asking.notices.append(_said_of(provider, reason or circuit.pause))
        return ready or left_alone

    def _ready(self, provider: Provider, budget: RoundBudget) -> Sequence[KnownModel]:
        models = budget.candidates(provider)
        ready = [m for m in models if not self._circuits.of(provider.name, m.id).wait_s]
        return ready or models

    async def _attempt(
        self, asking: "_Asking", provider: Provider, model: KnownModel, admitted: Admitted
    ) -> Attempt:
        turn_down = MarkerFilter(NEED_MORE_CONTEXT, asking.emit) if admitted.trial else None
        if turn_down:
            asking = replace(asking, emit=turn_down)
        self._circuits.asked(provider.name, model.id)
        attempt = await self._try(asking, provider, model, admitted.request)
        self._circuits.heard(
            provider.name, attempt.end, model.id, by_model=provider.limits_by_model
        )
        if turn_down:
            turn_down.flush()
        return attempt

    async def _try(
        self, asking: "_Asking", provider: Provider, model: KnownModel, request: CompleteRequest
    ) -> Attempt:
        """One request, and at most one more of each kind: without a forced tool, and a moment later."""
        if (provider.name, request.model) in self._unforced:
            request = replace(request, require_tool=False)
        attempt = await asking.ask(provider, model, request)
        if request.require_tool and is_refused(attempt):
            request = replace(request, require_tool=False)
            again = await asking.ask_again(provider, model, request)
            if again is None:
                return attempt
            attempt = again
            if isinstance(attempt.end, DoneChunk):
                self._unforced.add((provider.name, request.model))
        if not is_worth_retrying(attempt):
            return attempt
        assert isinstance(attempt.end, ErrorChunk)  # noqa: S101 - said by is_worth_retrying
        delay_s = attempt.end.retry_after_s or RETRY_DELAY_S
        if delay_s > LONGEST_RETRY_S:
            return attempt
        try:
            await unless_stopped(asking.stop, asyncio.sleep(delay_s))
        except StoppedByPerson:
            attempt.stopped = True
            return attempt
        return await asking.ask_again(provider, model, request) or attempt


@dataclass(frozen=True, slots=True)
class _Asking:
    """One round in progress: its request, its budget, and the notices for people so far."""

    request: CompleteRequest
    number: int
    emit: Emit
    stop: StopSignal
    budget: RoundBudget
    notices: list[str] = field(default_factory=list)

    def tell(self, text: str) -> None:
        self.notices.append(text)
        self.emit(Notice(text))

    async def admitted(self, provider: Provider, model: KnownModel) -> Admitted | None:
        admitted = await self.budget.admit(provider, model, self.request)
        if isinstance(admitted, Admitted):
            for notice in admitted.notices:
                self.tell(notice)
            return admitted
        if admitted.reason not in self.notices:
            self.tell(admitted.reason)
        return None

    async def ask(self, provider: Provider, model: KnownModel, request: CompleteRequest) -> Attempt:
        attempt = Attempt(self.number)
        limit_s = provider.round_limit_s + BEHIND_S

        async def asked() -> None:
            try:
                async with asyncio.timeout(limit_s):
                    await read(provider, request, attempt, self.emit)
            except TimeoutError:
                late = f"no complete answer after {limit_s:.0f} s"
                attempt.end = ErrorChunk(ErrorKind.TIMEOUT, late)

        with model_request(provider.name, request, attempt):
            try:
                await unless_stopped(self.stop, asked())
            except StoppedByPerson:
                attempt.stopped = attempt.end is None
        self.budget.note(provider, model, attempt.end, answered=attempt.answered)
        return attempt

    async def ask_again(
        self, provider: Provider, model: KnownModel, request: CompleteRequest
    ) -> Attempt | None:
        """None where the budget does not admit another request."""
        if isinstance(await self.budget.admit(provider, model, request), NotAdmitted):
            return None
        return await self.ask(provider, model, request)

    def record(self, provider: Provider, attempt: Attempt) -> RoundRecord:
        end = attempt.end
        done = end if isinstance(end, DoneChunk) else None
        failed = end if isinstance(end, ErrorChunk) else None
        return RoundRecord(
            number=self.number,
            provider=provider.name,
            model=done.model if done else "",
            text="".join(attempt.text),
            tool_calls=tuple(attempt.calls) if done else (),
            stop_reason=done.stop_reason if done else StopReason.ERROR,
            usage=(end.usage if end else None) or Usage(),
            cost_usd_micros=self.budget.cost_usd_micros,
            provider_blocks=done.provider_blocks if done else (),
            notices=(*self.notices, *(done.warnings if done else ())),
            error=failed.kind if failed else None,
            error_message=failed.message if failed else "",
            stopped=attempt.stopped,
        )

    def unanswered(self, failed: ErrorChunk | None, *, out_of_budget: bool) -> RoundRecord:
        if failed is None:
            why = "; ".join(self.notices) or "no provider"
            failed = ErrorChunk(ErrorKind.UNAVAILABLE, why)
        return RoundRecord(
            number=self.number,
            cost_usd_micros=self.budget.cost_usd_micros,
            notices=tuple(self.notices),
            error=failed.kind,
            error_message=failed.message,
            out_of_budget=out_of_budget,
        )


def _said_of(provider: Provider, words: str) -> str:
    return words if words.startswith(provider.name) else f"{provider.name}: {words}"
