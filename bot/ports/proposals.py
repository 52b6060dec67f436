"""Proposals as they are stored, changed, counted and shown, and what may stop them."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Final, Protocol, TypeAlias

from bot.domain.audit import AuditEvent
from bot.domain.freeze import Freeze
from bot.domain.ids import ChannelId, MessageTs, Place, ProposalId, SessionId, TeamId, UserId
from bot.domain.proposal import Proposal, ProposalState
from tools.redactor import Redacted

NO_REASON: Final = Redacted("")


# Called when a proposal changes its state. Not exact: a crash may repeat a call.
OnState: TypeAlias = Callable[[ProposalState], None]


@dataclass(frozen=True, slots=True)
class Decision:
    """A person's or the clock's wish to change a pending proposal. `key` makes a retry the same.

    `params` are those of the proposal that is to supersede it, as canonical text.
    """

    to: ProposalState
    by: UserId | str
    key: str
    reason: Redacted = NO_REASON
    params: str = ""


def decision_workflow(key: str) -> str:
    return f"decision:{key}"


@dataclass(frozen=True, slots=True)
class Verdict:
    """The result of the compare-and-set. `proposal` is the row afterwards, also for a loser.

    `voted`: the confirmation counts, and more people have to confirm.
    """

    won: bool
    proposal: Proposal
    voted: bool = False


@dataclass(frozen=True, slots=True)
class Departure:
    """Whether the caller's compare-and-set made it dispatching. Only then may it send.

    `same` is the other proposal with the identical order that prevents it.
    """

    is_ours: bool
    same: Proposal | None = None


@dataclass(frozen=True, slots=True)
class Around:
    """Proposals as a place sees them, each part oldest first."""

    own: Sequence[Proposal]
    """Of the session itself."""
    threads: Sequence[Proposal]
    """Of its channel's other threads, of those raised lately: open, or decided about by somebody."""
    others: Sequence[Proposal]
    """What went out lately anywhere else in the tenant: not of its conversation, nor of its channel
    (`bot.domain.tenancy.is_shared`)."""


class ProposalStore(Protocol):
    """Proposals. Every change of state and its audit row are one transaction on database time."""

    async def create(self, proposal: Proposal, audit: AuditEvent) -> Proposal:
        """Insert, or return the row already there under that id.

        Or the identical order that is open in the same channel (`bot.domain.tenancy.is_shared`, else
        in the same thread), of another id: one that is pending and not past its time, confirmed or
        dispatching. Then nothing is stored.
        """
        ...

    async def now(self) -> datetime:
        """The database's clock, which decides when a proposal expires.

        A process's clock may have jumped.
        """
        ...

    async def get(self, proposal_id: ProposalId) -> Proposal | None: ...

    async def decide(
        self, proposal_id: ProposalId, decision: Decision, audit: AuditEvent
    ) -> Verdict | None:
        """pending → confirmed | rejected | expired | superseded; None when there is no such row.

        Confirm and reject need `expires_at` in the future, expire in the past, both on the
        database's clock. The same `decision.key` again is the same win. Where several approvals
        are wanted a confirmation is a vote, one per person, and the last one wanted decides.
        """
        ...

    async def supersede(
        self,
        proposal_id: ProposalId,
        decision: Decision,
        audit: AuditEvent,
        successor: Proposal,
        created: AuditEvent,
    ) -> Verdict | None:
        """Like `decide`, with the successor stored in the same transaction, from when it lives."""
        ...

    async def advance(
        self,
        proposal_id: ProposalId,
        before: ProposalState,
        after: ProposalState,
        outcome: str,
        audit: AuditEvent,
    ) -> bool:
        """confirmed | dispatching → an end, one compare-and-set; False when it was not `before`.

        Raises IllegalTransition for dispatching: only `begin_dispatch` comes there.
        """
        ...

    async def begin_dispatch(self, proposal_id: ProposalId, audit: AuditEvent) -> Departure:
        """confirmed → dispatching, unless `same_order` prevents it: one transaction.

        Two identical orders of a tenant never pass it at the same time, on any number of replicas.
        """
        ...

    async def same_order(self, proposal_id: ProposalId) -> Proposal | None:
        """Another proposal of the tenant with an identical order that conflicts with this one.

        Its order was sent, and had not ended before this proposal was raised, by the order of the
        audit log and not by a clock. Once there is one there always is, unless a guard refused
        that order and nothing was sent. None also if the row does not exist.
        """
        ...

    async def retire_same(
        self, proposal_id: ProposalId, outcome: str, event: Callable[[Proposal], AuditEvent]
    ) -> Sequence[ProposalId]:
        """Supersede open proposals that `same_order` now prevents, each with `event`."""
        ...

    async def due(self, limit: int) -> Sequence[ProposalId]:
        """Pending ones past their time, by the database's clock."""
        ...

    async def of_session(
        self, session: SessionId, state: ProposalState | None = None
    ) -> Sequence[Proposal]:
        """Those of a session, in one state or in any, oldest first."""
        ...

    async def around(
        self,
        session: SessionId,
        place: Place,
        products: Collection[str] | None,
        seconds: float,
        limit: int,
    ) -> Around:
        """The proposals for a place's prompt, read at one time.

        Beyond `limit` of each kind only the latest are read; of the session's own, all. `place` is
        the session's. `products` limits what it may read of orders elsewhere; None: any.
        """
        ...

    async def dispatches_since(self, action: str, product: str, seconds: float) -> int:
        """How many of that action reached dispatch in the last seconds, over all replicas."""
        ...


class KillSwitch(Protocol):
    """The one switch that stops every action, on all replicas."""

    async def freeze(self, by: str, reason: str) -> bool:
        """Stop every action now. False: it holds here and is stored as soon as that is possible."""
        ...

    async def lift(self, by: str) -> None:
        """Let actions run again, on record. Raises StorageUnavailable; then it stays frozen."""
        ...

    async def sync(self) -> bool:
        """Store what could not be stored before; False when that is still to be done."""
        ...

    async def state(self) -> Freeze:
        """The state of the switch. Raises StorageUnavailable; then nothing may run."""
        ...


class WatchKind(StrEnum):
    """The reason for another look, after a dispatch or before an expiry."""

    PROGRESS = "progress"  # an order that its executor has and is not done with
    EFFECT = "effect"  # whether an action that succeeded helped
    REMINDER = "reminder"  # a proposal that is open still


@dataclass(frozen=True, slots=True)
class Watch:
    """One thing to look at now. `is_last` when there is no time for another look."""

    proposal_id: ProposalId
    kind: WatchKind
    is_last: bool


class Watches(Protocol):
    """Due looks, over all replicas. Every method raises StorageUnavailable."""

    async def begin(
        self, proposal_id: ProposalId, kind: WatchKind, first_s: float, for_s: float
    ) -> None:
        """Look first after `first_s` seconds, for at most `for_s`. A second begin changes nothing."""
        ...

    async def claim(self, limit: int, again_s: float) -> Sequence[Watch]:
        """Those due, each given to one caller; due again after `again_s` unless they end."""
        ...

    async def end(self, watch: Watch) -> None:
        """Look no more."""
        ...

    async def tell(self, proposal_id: ProposalId, progress: str) -> None:
        """Keep how far a running dispatch is, as JSON text."""
        ...


class FreezeState(Protocol):
    """Whether anything may be dispatched now: the kill switch, freeze windows, quiet hours."""

    async def refusal(self, action: str, product: str) -> str | None:
        """None when it may, else who froze it and until when.

        Raises StorageUnavailable; then nothing may run.
        """
        ...


@dataclass(frozen=True, slots=True)
class FormField:
    """One parameter in a form. `kind` is its JSON type, or "json" for all of them in one text."""

    name: str
    label: str
    value: str
    kind: str
    optional: bool = False


def uncounted(_state: ProposalState) -> None: ...


@dataclass(frozen=True, slots=True)
class CardClaim:
    """Leave to paint one card until then. `wanted` is which of the row's changes it will show."""

    proposal: Proposal
    wanted: int
    until: datetime
    tries: int


class Cards(Protocol):
    """Which cards differ from their row. Every method raises StorageUnavailable."""

    async def claim(self, proposal_id: ProposalId, for_s: float) -> CardClaim | None:
        """Claim the card to paint it; None if it is current, claimed, or waiting."""
        ...

    async def showed(self, claim: CardClaim, ts: MessageTs) -> None:
        """The claimed state is visible in that message. A late call makes the card due again."""
        ...

    async def failed(self, claim: CardClaim, again_s: float) -> None:
        """It could not be painted; it may be claimed again after so many seconds."""
        ...

    async def due(self, limit: int) -> Sequence[ProposalId]:
        """Outdated cards without a claim, longest waiting first."""
        ...

    async def in_reach(self, team: TeamId, channel: ChannelId, limit: int) -> Sequence[ProposalId]:
        """Outdated cards of a channel that can be written to again, newest first.

        They no longer wait for their next try.
        """
        ...

    async def pressed(self, proposal_id: ProposalId, ts: MessageTs) -> None:
        """A button on that message was pressed: it is the card's, and it can be reached."""
        ...
