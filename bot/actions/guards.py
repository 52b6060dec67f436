"""The guards between a person's Confirm and the dispatch, in order.

Every verdict is written to the audit log before the next guard is asked. A guard that cannot
decide raises, and then nothing is dispatched.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

import orjson
from pydantic import JsonValue

from bot.actions.catalog import Action, ActionCatalog
from bot.actions.orders import sent_before
from bot.actions.params import too_wide
from bot.actions.target import Target, TargetUnread, changes
from bot.domain.audit import AuditEvent, AuditKind
from bot.domain.channel import ChannelNow, out_of_place
from bot.domain.proposal import (
    ONE_ORDER,
    ConfirmedProposal,
    Proposal,
    ProposalState,
    blast_rank,
    digest,
    unapproved,
)
from bot.ports.audit_log import AuditLog
from bot.ports.proposals import FreezeState, ProposalStore
from tools.errors import InvalidArguments


@dataclass(frozen=True, slots=True)
class Subject:
    """The input of the guards: the proof, the row as stored now, and the action as declared now."""

    confirmed: ConfirmedProposal
    row: Proposal
    action: Action


@dataclass(frozen=True, slots=True)
class Judgement:
    """A guard's word. `reason` empty lets it pass; `facts` go on record with it.

    `outdated` says that the target is no longer the one the card showed.
    """

    reason: str = ""
    facts: Mapping[str, JsonValue] = field(default_factory=dict)
    outdated: bool = False


PASSED = Judgement()


@dataclass(frozen=True, slots=True)
class Refused:
    guard: str
    reason: str
    outdated: bool = False


class Guard(Protocol):
    """One check. It raises what its stores raise, and then nothing is dispatched."""

    name: str

    async def judge(self, subject: Subject) -> Judgement:
        """PASSED, or why not."""
        ...


class RequireApproval:
    """As many people as are wanted confirmed this row, the asker not where four eyes are wanted."""

    name = "require_approval"

    async def judge(self, subject: Subject) -> Judgement:
        row, rule = subject.row, subject.action.rule
        if row.state is not ProposalState.CONFIRMED:
            return Judgement("no confirmation is on record")
        # The stricter of the card and the current declaration.
        four_eyes = row.four_eyes or rule.four_eyes
        approvals = max(row.approvals, rule.approvals)
        return Judgement(unapproved(replace(row, four_eyes=four_eyes, approvals=approvals)) or "")


class SameDigest:
    """The stored arguments are those of the card."""

    name = "digest"

    async def judge(self, subject: Subject) -> Judgement:
        row = subject.row
        now = digest(row.action, row.product, row.params)
        if now == row.digest == subject.confirmed.proposal.digest:
            return PASSED
        return Judgement("the stored arguments differ from the confirmed ones")


class ValidParams:
    """The arguments fit the action as it is declared now."""

    name = "params"

    def __init__(self, catalog: ActionCatalog) -> None:
        self._catalog = catalog

    async def judge(self, subject: Subject) -> Judgement:
        """Against today's schema."""
        try:
            self._catalog.check_params(subject.action, orjson.loads(subject.row.params))
        except InvalidArguments as error:
            return Judgement(error.message)
        return PASSED


class InItsChannel:
    """The channel still has the name and the products that the card was shown under."""

    name = "channel"

    def __init__(self, channel_now: ChannelNow) -> None:
        self._channel_now = channel_now

    async def judge(self, subject: Subject) -> Judgement:
        row = subject.row
        channel = await self._channel_now(row.place)
        reason = out_of_place(channel, row.channel_name, row.product)
        if reason is None and not channel.rule.confirm:
            reason = "no role can decide in this channel any more"
        return Judgement(reason or "")


class OneOrder:
    """The same order has not gone out since this one was raised: of equal cards one runs."""

    name = ONE_ORDER

    def __init__(self, store: ProposalStore) -> None:
        self._store = store

    async def judge(self, subject: Subject) -> Judgement:
        """By the store, which asks once more as it lets the order go out."""
        same = await self._store.same_order(subject.row.id)
        return PASSED if same is None else duplicate_refusal(same)


def duplicate_refusal(same: Proposal) -> Judgement:
    """The no because of that other proposal."""
    return Judgement(sent_before(same), facts={"same": same.id}, outdated=True)


class NotFrozen:
    """No freeze window or kill switch is active."""

    name = "freeze"

    def __init__(self, freeze: FreezeState) -> None:
        self._freeze = freeze

    async def judge(self, subject: Subject) -> Judgement:
        row = subject.row
        return Judgement(await self._freeze.refusal(row.action, row.product) or "")


class WithinRate:
    """The action's rate limit, counted in the database: one count for all replicas and restarts."""

    name = "rate_limit"

    def __init__(self, store: ProposalStore) -> None:
        self._store = store

    async def judge(self, subject: Subject) -> Judgement:
        """Before the proposal itself counts."""
        return await self._judge(subject, allowed_before=0)

    async def judge_once_counted(self, subject: Subject) -> Judgement:
        """After it counts: of two that passed side by side, neither goes over the limit."""
        return await self._judge(subject, allowed_before=1)

    async def _judge(self, subject: Subject, *, allowed_before: int) -> Judgement:
        limit = subject.action.rate_limit
        if limit is None:
            return PASSED
        row = subject.row
        count = await self._store.dispatches_since(row.action, row.product, limit.window_s)
        if count < limit.count + allowed_before:
            return Judgement(facts={"so_far": count - allowed_before, "limit": limit.count})
        return Judgement(
            f"{row.action} for {row.product} has reached its rate limit of "
            f"{subject.action.rule.rate_limit}; wait, or do it manually"
        )


class WithinBlastRadius:
    """No wider than declared, in words and in counted objects, and than the card showed."""

    name = "blast_radius"

    def __init__(self, target: Target) -> None:
        self._target = target

    async def judge(self, subject: Subject) -> Judgement:
        reason = _in_words(subject)
        if reason is None:
            return await self._counted(subject)
        return Judgement(reason)

    async def _counted(self, subject: Subject) -> Judgement:
        row, rule = subject.row, subject.action.rule
        try:
            now = await self._target.objects(subject.action, row)
        except TargetUnread as error:
            return Judgement(error.message)
        if now is None:
            return PASSED
        if now.count > rule.max_objects:
            return Judgement(f"it would touch {now.count} objects; the limit is {rule.max_objects}")
        if row.objects is None or now.count > row.objects:
            shown = "none" if row.objects is None else row.objects
            return Judgement(
                f"the card showed {shown} objects, now there are {now.count}", outdated=True
            )
        new = sorted(set(now.names) - set(row.object_names)) if row.object_names else []
        if new:
            return Judgement(f"the card did not show {', '.join(new)}", outdated=True)
        return Judgement(facts={"objects": now.count, "limit": rule.max_objects})


def _in_words(subject: Subject) -> str | None:
    declared = subject.action.rule.blast_radius
    row = subject.row
    if row.blast_radius != declared:
        return f"its blast radius is now declared as {declared}; the card said otherwise"
    claimed, allowed = blast_rank(row.model_blast_radius), blast_rank(declared)
    if claimed is not None and (allowed is None or claimed > allowed):
        return f"it may touch at most {declared}, and the card said more"
    return too_wide(orjson.loads(row.params), subject.action.rule.free_text)


class SamePreview:
    """The dry run still says what the card showed."""

    name = "dry_run"

    def __init__(self, target: Target) -> None:
        self._target = target

    async def judge(self, subject: Subject) -> Judgement:
        """Run once more."""
        if not subject.action.rule.has_preview and not subject.row.preview:
            return PASSED
        try:
            now = await self._target.preview(subject.action, subject.row)
        except TargetUnread as error:
            return Judgement(error.message)
        if now == subject.row.preview:
            return PASSED
        told = changes(subject.row.preview, now)
        return Judgement(f"the dry run is not what the card showed: {told}", outdated=True)


class NotDrifted:
    """The target is still the one that was read for the card."""

    name = "drift"

    def __init__(self, target: Target) -> None:
        self._target = target

    async def judge(self, subject: Subject) -> Judgement:
        """Read once more."""
        row = subject.row
        try:
            now = await self._target.fingerprint(subject.action, row)
        except TargetUnread as error:
            return Judgement(error.message)
        if now == row.fingerprint:
            return Judgement(facts={"fingerprint": orjson.loads(now)} if now else {})
        return Judgement(
            f"the target has changed since the card was shown: {changes(row.fingerprint, now)}",
            facts={"then": row.fingerprint, "now": now},
            outdated=True,
        )


class GuardLine:
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
            OneOrder(store),
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

    async def refused_for(self, same: Proposal, row: Proposal) -> Refused:
        """On record: the store did not let it go out because of that other one."""
        said = duplicate_refusal(same)
        await self._record(row, ONE_ORDER, said)
        return Refused(ONE_ORDER, said.reason, said.outdated)

    async def refusal_once_counted(
        self, confirmed: ConfirmedProposal, row: Proposal
    ) -> Refused | None:
        """The last checks, after the dispatch was counted: the rate, which only counts then, and
        the freeze, since reading the target takes time.
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
