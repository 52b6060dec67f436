"""The decision on a proposal, as the body of a durable workflow: decide, dispatch, show.

One compare-and-set picks the winner among Confirm, Reject and expiry; losers see it privately. The
click handler checked the permission. The row's `expires_at` decides the expiry; the sweep here only
updates cards.
"""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Final

import structlog
from pydantic import JsonValue

from bot.actions.dispatch import Dispatch
from bot.actions.display import ProposalDisplay
from bot.actions.orders import ended, from_proposal, line, refusal, to_proposal
from bot.actions.propose import created
from bot.actions.remind import begin_reminder
from bot.actions.revise import successor
from bot.domain.audit import AuditEvent, AuditKind
from bot.domain.ids import ProposalId, UserId
from bot.domain.proposal import (
    IllegalTransition,
    Proposal,
    ProposalState,
    confirmed_from_row,
    too_late,
)
from bot.ports.audit_log import AuditLog
from bot.ports.durability import Journal, Workflows
from bot.ports.platform import NameAt
from bot.ports.proposals import Decision, OnState, ProposalStore, Watches, uncounted
from bot.telemetry.spans import log_ids
from tools.errors import CapabilityUnavailable, InvalidArguments

log = structlog.stdlib.get_logger(__name__)

# Refresh the facts of its card. Raises InvalidArguments, CapabilityUnavailable.
Rehearse = Callable[[Proposal], Awaitable[Proposal]]

_KINDS: Final = {
    ProposalState.CONFIRMED: AuditKind.PROPOSAL_CONFIRMED,
    ProposalState.REJECTED: AuditKind.PROPOSAL_REJECTED,
    ProposalState.EXPIRED: AuditKind.PROPOSAL_EXPIRED,
    ProposalState.SUPERSEDED: AuditKind.PROPOSAL_SUPERSEDED,
}
_PRESSED: Final = frozenset(
    {ProposalState.CONFIRMED, ProposalState.REJECTED, ProposalState.SUPERSEDED}
)
_NOT_SHOWN: Final = (
    "Your edited proposal is stored, but its card could not be posted, so it cannot be "
    "confirmed. It will expire. Ask for it again."
)

BATCH: Final = 100


class Decide:
    """Carries one decision through. Every effect is a journal step."""

    def __init__(
        self,
        store: ProposalStore,
        audit: AuditLog,
        display: ProposalDisplay,
        dispatch: Dispatch,
        name_at: NameAt,
        rehearse: Rehearse,
        *,
        watches: Watches,
        on_state: OnState = uncounted,
    ) -> None:
        self._store = store
        self._audit = audit
        self._display = display
        self._dispatch = dispatch
        self._name_at = name_at
        self._rehearse = rehearse
        self._watches = watches
        self._on_state = on_state

    async def run(self, proposal_id: ProposalId, decision: Decision, journal: Journal) -> None:
        """Resumes after a crash between any two steps. Raises StorageUnavailable."""

        async def card() -> JsonValue:
            return await self._display.refresh(proposal_id)

        verdict = await journal.step("decide", lambda: self._decide(proposal_id, decision))
        if not isinstance(verdict, list):
            log.warning("decision.unknown_proposal", proposal=proposal_id)
            return
        won, proposal = bool(verdict[0]), to_proposal(verdict[1])
        # Until the end of the workflow, which owns this context.
        structlog.contextvars.bind_contextvars(**log_ids(proposal.turn_id, proposal.session_id))
        replaced_by = str(verdict[3]) if won and len(verdict) > 3 and verdict[3] else ""
        voted = len(verdict) > 2 and bool(verdict[2])  # what an older release kept has no third
        if not won and not voted:
            await self._lose(proposal, decision, journal)
        await journal.step("card", card)
        if replaced_by:
            await journal.step(
                "card-new", lambda: self._show_new(proposal, ProposalId(replaced_by))
            )
        if won and decision.to is ProposalState.EXPIRED:
            await journal.step("say-expired", lambda: self._say(proposal_id))
        if won and decision.to is ProposalState.CONFIRMED:
            await self._carry_out(proposal, journal)
            await journal.step("card-outcome", card)
            await journal.step("say", lambda: self._say(proposal_id))

    async def _decide(self, proposal_id: ProposalId, decision: Decision) -> JsonValue:
        row = await self._store.get(proposal_id)
        if row is None:
            return None
        if decision.params:
            return await self._replace(row, decision)
        verdict = await self._store.decide(proposal_id, decision, _decided(row, decision))
        if verdict is None:
            return None
        if verdict.won:
            self._on_state(decision.to)
        return [verdict.won, from_proposal(verdict.proposal), verdict.voted]

    async def _replace(self, row: Proposal, decision: Decision) -> JsonValue:
        try:
            new = await self._rehearse(successor(row, decision))
        except (InvalidArguments, CapabilityUnavailable) as error:
            text = f"Your edit was not proposed, and the old card stays open: {error}"
            await self._display.whisper(row.place, UserId(decision.by), text)
            return [False, from_proposal(row), True]
        verdict = await self._store.supersede(
            row.id, decision, _decided(row, decision), new, created(new)
        )
        if verdict is None:
            return None
        if verdict.won:
            self._on_state(decision.to)
            self._on_state(ProposalState.PENDING)
        return [verdict.won, from_proposal(verdict.proposal), False, new.id]

    async def _show_new(self, old: Proposal, new: ProposalId) -> JsonValue:
        row = await self._store.get(new)
        if row is not None:
            await begin_reminder(self._watches, row)
        shown = await self._display.refresh(new)
        if not shown and old.decided_by:
            await self._display.whisper(old.place, old.decided_by, _NOT_SHOWN)
        return shown

    async def _carry_out(self, proposal: Proposal, journal: Journal) -> None:
        try:
            confirmed = confirmed_from_row(proposal)
        except IllegalTransition as error:
            words = str(error)
            await journal.step("refuse", lambda: self._refuse(proposal, words))
            return
        await self._dispatch.run(confirmed, journal)

    async def _refuse(self, proposal: Proposal, why: str) -> JsonValue:
        outcome = refusal("require_approval", why)
        event = ended(proposal, outcome, proposal.decided_by or "")
        return await self._store.advance(
            proposal.id, ProposalState.CONFIRMED, outcome.state, outcome.text, event
        )

    async def _lose(self, proposal: Proposal, decision: Decision, journal: Journal) -> None:
        if decision.to not in _PRESSED:
            return

        async def record() -> JsonValue:
            await self._audit.append(_lost(proposal, decision))
            # Expired before a sweep noticed; a second vote of one person changes nothing.
            if proposal.state is ProposalState.PENDING:
                expired = expiry(proposal.id)
                verdict = await self._store.decide(
                    proposal.id, expired, _decided(proposal, expired)
                )
                return verdict is not None and verdict.won
            return None

        async def whisper() -> JsonValue:
            text = await self._what_happened(proposal, decision)
            await self._display.whisper(proposal.place, UserId(decision.by), text)
            return None

        has_expired = await journal.step("lost", record)
        await journal.step("whisper", whisper)
        if has_expired:
            await journal.step("say-expired", lambda: self._say(proposal.id))

    async def _say(self, proposal_id: ProposalId) -> JsonValue:
        row = await self._store.get(proposal_id)
        if row is None:
            return False
        running = row.state is ProposalState.DISPATCHING
        key = f"{row.id}:{'running' if running else 'outcome'}"
        return await self._display.say(row.place, line(row), key)

    async def _what_happened(self, row: Proposal, decision: Decision) -> str:
        if row.state is ProposalState.PENDING:
            if any(vote.by == decision.by for vote in row.votes):
                return (
                    f"You already confirmed it ({len(row.votes)} of {row.approvals}). Another "
                    "approver must confirm it too. Nothing has run yet."
                )
            row = replace(row, state=ProposalState.EXPIRED)  # expired before a sweep noticed
        return too_late(
            row, await self._name_at(row.place, row.decided_by) if row.decided_by else "someone"
        )


def _decided(row: Proposal, decision: Decision) -> AuditEvent:
    return AuditEvent(
        _KINDS[decision.to],
        decision.by,
        {
            "proposal": row.id,
            "action": row.action,
            "product": row.product,
            "digest": row.digest,
            "by": decision.by,
            **({"reason": decision.reason} if decision.reason else {}),
        },
        session_id=row.session_id,
        key=f"{row.id}:{decision.to.value}",
    )


def _lost(row: Proposal, decision: Decision) -> AuditEvent:
    return AuditEvent(
        AuditKind.CLICK_REFUSED,
        decision.by,
        {"proposal": row.id, "wanted": decision.to.value, "why": _why_lost(row, decision)},
        session_id=row.session_id,
        key=f"lost:{decision.key}",
    )


def _why_lost(row: Proposal, decision: Decision) -> str:
    if row.state is ProposalState.PENDING and any(vote.by == decision.by for vote in row.votes):
        return "voted before"
    return f"already {row.state.value}"


def expiry(proposal_id: ProposalId) -> Decision:
    """The clock's decision; the same on every replica."""
    return Decision(ProposalState.EXPIRED, "clock", f"{proposal_id}:expired")


class ExpirySweep:
    """Starts the expiry of due proposals. Idempotent: any number of replicas may sweep at once."""

    def __init__(self, store: ProposalStore, workflows: Workflows, *, batch: int = BATCH) -> None:
        self._store = store
        self._workflows = workflows
        self._batch = batch

    async def run(self) -> int:
        """The number started. Raises StorageUnavailable: the next sweep continues."""
        started = 0
        for proposal_id in await self._store.due(self._batch):
            await self._workflows.start_decision(proposal_id, expiry(proposal_id))
            started += 1
        return started
