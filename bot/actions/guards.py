"""The guards between a person's Confirm and the dispatch, in order.

Every verdict is written to the audit trail before the next guard is asked. A guard that cannot
decide raises, and then nothing is dispatched.
"""

from collections.abc import Sequence

from bot.actions.catalog import ActionCatalog
from bot.actions.guard import Guard, Judgement, Refused, Subject
from bot.actions.row_guards import (
    InItsChannel,
    NotFrozen,
    RequireApproval,
    SameDigest,
    ValidParams,
    WithinRate,
)
from bot.actions.target import Target
from bot.actions.target_guards import NotDrifted, SamePreview, WithinBlastRadius
from bot.domain.audit import AuditEvent, AuditKind
from bot.domain.channel import ChannelNow
from bot.domain.proposal import ConfirmedProposal, Proposal
from bot.ports.proposals import FreezeState, ProposalStore
from bot.ports.trail import AuditLog
from tools.errors import InvalidArguments


class GuardLine:
    """The guards in order."""

    def __init__(
        self,
        catalog: ActionCatalog,
        store: ProposalStore,
        audit: AuditLog,
        target: Target,
        freeze: FreezeState,
        channel_now: ChannelNow,
    ) -> None:
        self._catalog = catalog
        self._audit = audit
        self._rate = WithinRate(store)
        self._freeze = NotFrozen(freeze)
        self._guards: Sequence[Guard] = (
            RequireApproval(),
            SameDigest(),
            ValidParams(catalog),
            InItsChannel(channel_now),
            self._freeze,
            self._rate,
            WithinBlastRadius(target),
            SamePreview(target),
            NotDrifted(target),
        )

    async def refusal(self, confirmed: ConfirmedProposal, row: Proposal) -> Refused | None:
        """The first no, or None. Raises StorageUnavailable: then nothing may be dispatched."""
        subject = await self._subject(confirmed, row)
        if isinstance(subject, Refused):
            return subject
        for guard in self._guards:
            said = await guard.judge(subject)
            await self._record(row, guard.name, said)
            if said.reason:
                return Refused(guard.name, said.reason, said.outdated)
        return None

    async def refusal_once_counted(
        self, confirmed: ConfirmedProposal, row: Proposal
    ) -> Refused | None:
        """What is judged last, when the dispatch is already counted.

        The rate, which only counts then; and the freeze, since reading the target takes its time.
        """
        subject = await self._subject(confirmed, row)
        if isinstance(subject, Refused):
            return subject
        for name, judge in (
            (self._freeze.name, self._freeze.judge),
            (self._rate.name, self._rate.judge_once_counted),
        ):
            said = await judge(subject)
            if said.reason:
                await self._record(row, name, said)
                return Refused(name, said.reason)
        return None

    async def _subject(self, confirmed: ConfirmedProposal, row: Proposal) -> Subject | Refused:
        try:
            return Subject(confirmed, row, self._catalog.find(row.action, row.product))
        except InvalidArguments:
            reason = f"{row.action} is no longer declared for {row.product}"
            await self._record(row, RequireApproval.name, Judgement(reason))
            return Refused(RequireApproval.name, reason)

    async def _record(self, row: Proposal, guard: str, said: Judgement) -> None:
        verdict = "refused" if said.reason else "passed"
        await self._audit.append(
            AuditEvent(
                AuditKind.GUARD_VERDICT,
                row.decided_by or "",
                {
                    "proposal": row.id,
                    "guard": guard,
                    "verdict": verdict,
                    "reason": said.reason,
                    "facts": dict(said.facts),
                },
                session_id=row.session_id,
                key=f"{row.id}:guard:{guard}:{verdict}",
            )
        )
