"""Carrying out a confirmed proposal: intent on record, sent at most once, a truthful end.

The only caller is `bot.actions.decide`.
"""

import asyncio
from dataclasses import replace
from typing import Final

import structlog
from pydantic import JsonValue

from adapters.control_plane.port import (
    AnswerKind,
    ControlAnswer,
    ControlPlane,
    where_to_look,
)
from bot.actions.catalog import ActionCatalog
from bot.actions.display import Sleep
from bot.actions.effect import begin_effect
from bot.actions.guards import GuardLine, Refused
from bot.actions.orders import (
    Outcome,
    ended,
    from_answer,
    order_of,
    outcome_of,
    progress_of,
    refusal,
    retired,
    safe,
    sent_before,
    to_answer,
)
from bot.domain.audit import AuditEvent, AuditKind
from bot.domain.proposal import LEGAL, ONE_ORDER, ConfirmedProposal, Proposal, ProposalState
from bot.ports.durability import Journal
from bot.ports.failures import StorageUnavailable
from bot.ports.proposals import OnState, ProposalStore, Watches, WatchKind, uncounted
from tools.redactor import Redactor

log = structlog.stdlib.get_logger(__name__)

# Before each question about a lost or still running order. Nothing waits for minutes in a workflow.
ASK_DELAYS_S: Final = (0.0, 2.0, 5.0)
FIRST_LOOK_S: Final = 5.0  # after the last of these, at an order that still runs


class _SendPermit:
    """Leave to send once, in the memory of the process that wrote the intent, and only there.

    A process that takes the work over finds the intent written and holds no permit: the order may
    have been sent, so it asks and never sends.
    """

    def __init__(self) -> None:
        self.intent_is_ours = False
        self._held = False

    def issue(self) -> None:
        self._held = True

    def take(self) -> bool:
        """Whether to send; it is spent before the first byte leaves."""
        held, self._held = self._held, False
        return held


class Dispatch:
    def __init__(
        self,
        catalog: ActionCatalog,
        store: ProposalStore,
        control: ControlPlane,
        guards: GuardLine,
        redactor: Redactor,
        watches: Watches,
        *,
        sleep: Sleep = asyncio.sleep,
        on_state: OnState = uncounted,
    ) -> None:
        self._catalog = catalog
        self._store = store
        self._control = control
        self._guards = guards
        self._redactor = redactor
        self._watches = watches
        self._sleep = sleep
        self._on_state = on_state

    async def run(self, confirmed: ConfirmedProposal, journal: Journal) -> None:
        """Bring the row to succeeded, failed or unknown. Safe to resume after any crash.

        The compare-and-set confirmed → dispatching succeeds once per proposal, and only the process
        that won it may send: at most one POST in every case.
        """
        permit = _SendPermit()

        async def intend() -> JsonValue:
            refused = await self._intend(confirmed, permit)
            return None if refused is None else [refused.guard, refused.reason, refused.outdated]

        refused = await journal.step("intent", intend)
        if isinstance(refused, list):
            outcome = refusal(str(refused[0]), str(refused[1]), outdated=True in refused[2:])
        else:
            answer = await self._settled(confirmed, permit, journal)
            order = order_of(self._catalog, confirmed.proposal)
            if answer.kind is AnswerKind.RUNNING and order is not None:
                await journal.step("watch", lambda: self._watch(confirmed, answer))
                return
            outcome = outcome_of(answer, "" if order is None else where_to_look(order))
        await journal.step("outcome", lambda: self._end(confirmed, outcome))

    async def _intend(self, confirmed: ConfirmedProposal, permit: _SendPermit) -> Refused | None:
        row = await self._store.get(confirmed.proposal.id)
        if row is not None and row.state is ProposalState.CONFIRMED:
            refused = await self._guards.refusal(confirmed, row)
            if refused is not None:
                return refused
            departure = await self._store.begin_dispatch(row.id, _intent(row))
            if departure.same is not None:
                return await self._guards.refused_for(departure.same, row)
            permit.intent_is_ours = departure.is_ours
        if row is None or not permit.intent_is_ours:
            return None  # an earlier attempt came this far: no permit
        refused = await self._guards.refusal_once_counted(confirmed, row)
        if refused is None:
            await self._retire_same(row)
            permit.issue()
        return refused

    async def _retire_same(self, row: Proposal) -> None:
        sent = replace(row, state=ProposalState.DISPATCHING)
        outcome = refusal(ONE_ORDER, sent_before(sent), outdated=True)
        try:
            over = await self._store.retire_same(
                row.id, outcome.text, lambda each: retired(each, sent, outcome)
            )
        except StorageUnavailable:
            log.warning("proposal.duplicate_not_closed", proposal=row.id)
            return
        for _ in over:
            self._on_state(outcome.state)

    async def _settled(
        self, confirmed: ConfirmedProposal, permit: _SendPermit, journal: Journal
    ) -> ControlAnswer:
        async def send() -> JsonValue:
            return from_answer(safe(await self._send(confirmed, permit), self._redactor))

        answer = to_answer(await journal.step("send", send))
        for number, delay_s in enumerate(ASK_DELAYS_S, 1):
            if answer.kind not in (AnswerKind.LOST, AnswerKind.RUNNING):
                break

            async def ask(before: ControlAnswer = answer, delay_s: float = delay_s) -> JsonValue:
                said = await self._ask(confirmed, before, delay_s)
                return from_answer(safe(said, self._redactor))

            answer = to_answer(await journal.step(f"ask-{number}", ask))
        return answer

    async def _send(self, confirmed: ConfirmedProposal, permit: _SendPermit) -> ControlAnswer:
        if not permit.take():
            return ControlAnswer(
                AnswerKind.LOST, "Kortex stopped while it was sending; no answer was stored"
            )
        order = order_of(self._catalog, confirmed.proposal)
        if order is None:
            return ControlAnswer(AnswerKind.NOT_SENT, "the action is no longer declared")
        return await self._control.send(order)

    async def _ask(
        self, confirmed: ConfirmedProposal, before: ControlAnswer, delay_s: float
    ) -> ControlAnswer:
        """The order's state at the control plane, or the last known state if it cannot say."""
        order = order_of(self._catalog, confirmed.proposal)
        if order is None or not order.endpoint.can_be_asked:
            return before
        await self._sleep(delay_s)
        said = await self._control.ask(order)
        taken = before.kind is AnswerKind.RUNNING and said.kind is AnswerKind.LOST
        return before if taken else said

    async def _watch(self, confirmed: ConfirmedProposal, answer: ControlAnswer) -> JsonValue:
        """Leave it running: the clock looks after it from now on, on any replica."""
        row = confirmed.proposal
        for_s = self._catalog.find(row.action, row.product).rule.max_duration_s
        await self._watches.begin(row.id, WatchKind.PROGRESS, FIRST_LOOK_S, for_s)
        await self._watches.tell(row.id, progress_of(answer))
        return None

    async def _end(self, confirmed: ConfirmedProposal, outcome: Outcome) -> JsonValue:
        """The end, with its audit row; a second time it is there already."""
        row = await self._store.get(confirmed.proposal.id)
        if row is None or outcome.state not in LEGAL[row.state]:
            return None
        event = ended(row, outcome, row.decided_by or "")
        if outcome.state is ProposalState.SUCCEEDED:
            await begin_effect(self._watches, self._catalog, row)  # first: a crash must not lose it
        if await self._store.advance(row.id, row.state, outcome.state, outcome.text, event):
            self._on_state(outcome.state)
        return outcome.state.value


def _intent(row: Proposal) -> AuditEvent:
    return AuditEvent(
        AuditKind.DISPATCH_INTENT,
        row.decided_by or "",
        {
            "proposal": row.id,
            "action": row.action,
            "product": row.product,
            "digest": row.digest,
            "confirmed_by": row.decided_by or "",
        },
        session_id=row.session_id,
        key=f"{row.id}:intent",
    )
