"""What is checked between a person's Confirm and the dispatch, one small class per guard.

Every verdict is written to the audit trail before the next guard is asked. A guard that cannot
decide raises, and then nothing is dispatched.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import orjson

from bot.actions.catalog import Action, ActionCatalog
from bot.domain.audit import AuditEvent, AuditKind
from bot.domain.proposal import (
    ConfirmedProposal,
    Proposal,
    ProposalState,
    blast_rank,
    digest,
    unapproved,
)
from bot.ports import AuditLog, ProposalStore
from tools.errors import InvalidArguments


@dataclass(frozen=True, slots=True)
class Subject:
    """What is judged: the proof, the row as stored now, and the action as declared now."""

    confirmed: ConfirmedProposal
    row: Proposal
    action: Action


@dataclass(frozen=True, slots=True)
class Refused:
    """A guard's no, in words for people."""

    guard: str
    reason: str


class Guard(Protocol):
    """One check."""

    name: str

    async def refusal(self, subject: Subject) -> str | None:
        """None to let it pass, else why not."""
        ...


class RequireApproval:
    """As many people as are wanted confirmed this row, the asker not where four eyes are wanted."""

    name = "require_approval"

    async def refusal(self, subject: Subject) -> str | None:
        """From the stored row."""
        row, rule = subject.row, subject.action.rule
        if row.state is not ProposalState.CONFIRMED:
            return "nobody's confirmation is on record"
        # The stricter of what the card said and what is declared now.
        four_eyes = row.four_eyes or rule.four_eyes
        approvals = max(row.approvals, rule.approvals)
        return unapproved(replace(row, four_eyes=four_eyes, approvals=approvals))


class SameDigest:
    """The stored arguments are those that the card showed."""

    name = "digest"

    async def refusal(self, subject: Subject) -> str | None:
        """Computed anew from the stored row."""
        row = subject.row
        now = digest(row.action, row.product, row.params)
        if now == row.digest == subject.confirmed.proposal.digest:
            return None
        return "the stored arguments are not those that were confirmed"


class ValidParams:
    """The arguments fit the action as it is declared now."""

    name = "params"

    def __init__(self, catalog: ActionCatalog) -> None:
        self._catalog = catalog

    async def refusal(self, subject: Subject) -> str | None:
        """Against today's schema."""
        try:
            self._catalog.check_params(subject.action, orjson.loads(subject.row.params))
        except InvalidArguments as error:
            return error.message
        return None


class WithinRate:
    """The action's rate limit, counted in the database over all replicas."""

    name = "rate_limit"

    def __init__(self, store: ProposalStore) -> None:
        self._store = store

    async def refusal(self, subject: Subject) -> str | None:
        """Before the proposal itself counts."""
        return await self._over(subject, allowed_before=0)

    async def refusal_once_counted(self, subject: Subject) -> str | None:
        """After it counts: of two that passed side by side, neither goes over the limit."""
        return await self._over(subject, allowed_before=1)

    async def _over(self, subject: Subject, *, allowed_before: int) -> str | None:
        limit = subject.action.rate_limit
        if limit is None:
            return None
        row = subject.row
        count = await self._store.dispatches_since(row.action, row.product, limit.window_s)
        if count < limit.count + allowed_before:
            return None
        return (
            f"rate limit {subject.action.rule.rate_limit}: {row.action} for {row.product} has run "
            "that often already; wait, or do it by hand"
        )


class WithinBlastRadius:
    """The card showed the radius that is declared now, and the model expected no wider one."""

    name = "blast_radius"

    async def refusal(self, subject: Subject) -> str | None:
        """From the stored row."""
        declared = subject.action.rule.blast_radius
        row = subject.row
        if row.blast_radius != declared:
            return f"its blast radius is now declared as {declared}; the card said otherwise"
        claimed, allowed = blast_rank(row.model_blast_radius), blast_rank(declared)
        if claimed is not None and (allowed is None or claimed > allowed):
            return f"it may touch at most {declared}, and was expected to touch more"
        return None


class GuardLine:
    """The guards in order."""

    def __init__(self, catalog: ActionCatalog, store: ProposalStore, audit: AuditLog) -> None:
        self._catalog = catalog
        self._audit = audit
        self._rate = WithinRate(store)
        self._guards: Sequence[Guard] = (
            RequireApproval(),
            SameDigest(),
            ValidParams(catalog),
            self._rate,
            WithinBlastRadius(),
        )

    async def refusal(self, confirmed: ConfirmedProposal, row: Proposal) -> Refused | None:
        """The first no, or None. Raises StorageUnavailable: then nothing may be dispatched."""
        subject = await self._subject(confirmed, row)
        if isinstance(subject, Refused):
            return subject
        for guard in self._guards:
            reason = await guard.refusal(subject)
            await self._record(row, guard.name, reason)
            if reason is not None:
                return Refused(guard.name, reason)
        return None

    async def refusal_once_counted(
        self, confirmed: ConfirmedProposal, row: Proposal
    ) -> Refused | None:
        """What can only be judged when the dispatch is already counted."""
        subject = await self._subject(confirmed, row)
        if isinstance(subject, Refused):
            return subject
        reason = await self._rate.refusal_once_counted(subject)
        if reason is None:
            return None
        await self._record(row, self._rate.name, reason)
        return Refused(self._rate.name, reason)

    async def _subject(self, confirmed: ConfirmedProposal, row: Proposal) -> Subject | Refused:
        try:
            return Subject(confirmed, row, self._catalog.find(row.action, row.product))
        except InvalidArguments:
            reason = f"{row.action} is no longer declared for {row.product}"
            await self._record(row, RequireApproval.name, reason)
            return Refused(RequireApproval.name, reason)

    async def _record(self, row: Proposal, guard: str, reason: str | None) -> None:
        verdict = "passed" if reason is None else "refused"
        await self._audit.append(
            AuditEvent(
                AuditKind.GUARD_VERDICT,
                row.decided_by or "",
                {"proposal": row.id, "guard": guard, "verdict": verdict, "reason": reason or ""},
                session_id=row.session_id,
                key=f"{row.id}:guard:{guard}:{verdict}",
            )
        )
