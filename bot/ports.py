"""What the conversation and the actions need from the outside, in domain terms.

Implementations: `bot.store` (rows), a chat platform's room (people see), `bot.engine` (durability).
Every method may raise the errors named here and no others.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from enum import StrEnum
from typing import Protocol

from pydantic import JsonValue

from adapters.llm.messages import Message, Usage
from bot.domain.audit import AuditEvent, TrailEntry
from bot.domain.budget import DAY_S, BudgetLimits, Refusal
from bot.domain.events import Evidence, TurnEvent, TurnFinished
from bot.domain.freeze import Freeze
from bot.domain.ids import MessageTs, Person, Place, ProposalId, SessionId, TurnId, UserId
from bot.domain.proposal import Proposal, ProposalState
from bot.domain.roles import HeldRoles
from bot.domain.session import Ask, Session, Summary, TurnState


class StorageUnavailable(Exception):
    """The database is locked, full, or gone; nothing was half-done."""


class SurfaceGone(Exception):
    """The message, channel or membership is gone: end quietly, keep the record."""


class MessageGone(SurfaceGone):
    """Somebody deleted the message; its place is there."""


class SurfaceFailed(Exception):
    """The platform refused or cannot be reached now; `retryable`: whether trying again may help."""

    def __init__(self, message: str, *, retryable: bool) -> None:
        super().__init__(message)
        self.retryable = retryable


class GivenUp(Exception):
    """A step that ended its process again and again is not run any more. Its text is its name."""


class SessionStore(Protocol):
    """Sessions, their messages and turns."""

    async def open(self, ask: Ask, name: str, at: datetime) -> Session:
        """The session of the ask's place, created if new; `active_at` moves. Idempotent.

        One that was closed, or idle for too long, begins anew with this ask.
        """
        ...

    async def find(self, place: Place) -> Session | None:
        """Whether the bot has a session here."""
        ...

    async def get(self, session_id: SessionId) -> Session | None:
        """The session of that id."""
        ...

    async def begin_turn(self, ask: Ask, session: Session, at: datetime, told: str = "") -> None:
        """Store the turn and its user message, with its audit row. Idempotent by turn id.

        `told` is what the model is told with the question.
        """
        ...

    async def history(
        self, session: SessionId, before: TurnId, after_ts: str = ""
    ) -> Sequence[Message]:
        """The messages of the earlier, finished turns of the session, oldest first.

        Not those from before it began anew, nor of messages up to `after_ts`.
        """
        ...

    async def finish_turn(
        self,
        turn: TurnId,
        state: TurnState,
        messages: Sequence[Message],
        evidence: Sequence[Evidence],
        at: datetime,
        summary: Summary | None = None,
    ) -> None:
        """Store what the turn said and consulted, with its audit row. Idempotent by turn id.

        A `summary` stands, for later turns, in the place of the oldest that this one read.
        """
        ...

    async def set_answer(self, turn: TurnId, ts: MessageTs) -> None:
        """Remember which message is edited."""
        ...

    async def turn_of_answer(self, place: Place, ts: MessageTs) -> TurnId | None:
        """The turn whose answer is that message."""
        ...

    async def running_turn(self, place: Place) -> TurnId | None:
        """The turn that is being answered in that place, or waits to be, if any."""
        ...

    async def evidence(self, turn: TurnId, number: int) -> Evidence | None:
        """One numbered result of a finished turn."""
        ...


@dataclass(frozen=True, slots=True)
class Decision:
    """A person's or the clock's wish to change a pending proposal. `key` makes a retry the same.

    `params` are those of the proposal that is to supersede it, as canonical text.
    """

    to: ProposalState
    by: UserId | str
    key: str
    reason: str = ""
    params: str = ""


def decision_workflow(key: str) -> str:
    """The id of the workflow that carries out the decision of that key."""
    return f"decision:{key}"


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the compare-and-set said. `proposal` is the row afterwards, whoever won.

    `voted`: the confirmation counts, and more people have to give theirs before it is decided.
    """

    won: bool
    proposal: Proposal
    voted: bool = False


class ProposalStore(Protocol):
    """Proposals. Every change of state and its audit row are one transaction on database time."""

    async def create(self, proposal: Proposal, audit: AuditEvent) -> Proposal:
        """Insert, or return the row already there under that id."""
        ...

    async def now(self) -> datetime:
        """The database's clock, by which a proposal lives: a process's own may have jumped."""
        ...

    async def get(self, proposal_id: ProposalId) -> Proposal | None:
        """The row now."""
        ...

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
        """confirmed → dispatching → an end, one compare-and-set; False when it was not `before`."""
        ...

    async def due(self, limit: int) -> Sequence[ProposalId]:
        """Pending ones past their time, by the database's clock."""
        ...

    async def of_session(
        self, session: SessionId, state: ProposalState | None = None
    ) -> Sequence[Proposal]:
        """Those of a session, in one state or in any, oldest first."""
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
        """How it stands. Raises StorageUnavailable; then nothing may run."""
        ...


class WatchKind(StrEnum):
    """What is looked at again after a dispatch."""

    PROGRESS = "progress"  # an order that its executor has and is not done with
    EFFECT = "effect"  # whether an action that succeeded helped


@dataclass(frozen=True, slots=True)
class Watch:
    """One thing to look at now. `is_last` when there is no time for another look."""

    proposal_id: ProposalId
    kind: WatchKind
    is_last: bool


class Watches(Protocol):
    """What is due to be looked at, over all replicas. Every method raises StorageUnavailable."""

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


class Revisions(Protocol):
    """What a person may change of an open proposal. Both raise InvalidArguments, in words."""

    def form(self, proposal: Proposal) -> Sequence[FormField]:
        """The parameters as they are."""
        ...

    def read(self, proposal: Proposal, answers: Mapping[str, str]) -> str:
        """The changed parameters as canonical text, checked like a model's."""
        ...


class AuditLog(Protocol):
    """The append-only trail, for events that change no other row."""

    async def append(self, event: AuditEvent) -> None:
        """Write one row; a repeated `key` is one row. Raises StorageUnavailable."""
        ...


class Trail(Protocol):
    """The trail, read back."""

    async def entries(
        self,
        *,
        after: int = 0,
        session: str = "",
        since: datetime | None = None,
        limit: int = 1000,
        newest: bool = False,
    ) -> Sequence[TrailEntry]:
        """In order, beyond row `after`; `newest` takes the last ones. Raises StorageUnavailable."""
        ...


@dataclass(frozen=True, slots=True)
class Spending:
    """One round's cost. `cost_usd_micros` None is unknown, never zero.

    `counted_usd_micros` is what limits count where that differs: an assumption for an unknown cost.
    `channel_id` stays when a channel is renamed.
    """

    session_id: SessionId
    turn_id: TurnId
    round: int
    user: UserId
    channel: str
    provider: str
    model: str
    purpose: str
    usage: Usage
    cost_usd_micros: int | None
    duration_ms: int
    counted_usd_micros: int | None = None
    channel_id: str = ""


@dataclass(frozen=True, slots=True)
class Reservation:
    """The worst case of a round that is about to be asked. Known by `id` from then on."""

    id: str
    session_id: SessionId
    turn_id: TurnId
    user: UserId
    channel_id: str
    usd_micros: int
    tokens: int


@dataclass(frozen=True, slots=True)
class Operation:
    """One row of the usage export: a round that was paid for, and when it was started."""

    at: datetime
    spending: Spending


@dataclass(frozen=True, slots=True)
class Today:
    """The budget's day so far. `held` is reserved by rounds that run, or whose process died.

    `used` is what limits count, `spent` what is known to have been spent.
    """

    spent_usd_micros: int
    used_usd_micros: int
    held_usd_micros: int
    at: datetime

    @property
    def elapsed_s(self) -> float:
        """Seconds since midnight UTC by the database's clock."""
        return self.at.timestamp() % DAY_S


@dataclass(frozen=True, slots=True)
class SpentBy:
    """One row of a report. `rounds_unpriced` had no known price."""

    name: str
    usd_micros: int
    rounds: int
    rounds_unpriced: int
    tokens: int


class Ledger(Protocol):
    """Spending, recorded per round, and held before it. Atomic over all replicas."""

    async def reserve(self, wanted: Reservation, limits: BudgetLimits) -> Refusal | None:
        """Hold the worst case, or say which limit is in the way; then nothing is held anew.

        The same id again replaces what it held. What is spent or held never passes a limit. What a
        dead process held counts until its day or hour ends; of a thread's tokens, for an hour.
        """
        ...

    async def release(self, reservation: str) -> None:
        """Hold nothing under that id any more."""
        ...

    async def record(self, spending: Spending, reservation: str = "") -> None:
        """Idempotent by (turn, round, provider). Takes the place of the reservation, at its time."""
        ...

    async def today(self) -> Today:
        """Since midnight UTC by the database's clock."""
        ...

    def operations(self, since: datetime, until: datetime) -> AsyncIterator[Operation]:
        """Every recorded round of that time, oldest first, however many."""
        ...

    async def report(self, day: date | None, by: str) -> Sequence[SpentBy]:
        """Totals of a day (None: today) by "user", "channel", "provider" or "session"."""
        ...


@dataclass(frozen=True, slots=True)
class IngestedEvent:
    """One CloudEvent from outside: a deploy, an incident, a finding."""

    id: str
    source: str
    type: str
    product: str
    at: datetime
    data: Mapping[str, JsonValue]


class EventStore(Protocol):
    """Events from outside, unique by (source, id)."""

    async def add(self, event: IngestedEvent) -> bool:
        """False when it was there already."""
        ...


class RoleHolders(Protocol):
    """Which roles somebody holds, now."""

    async def held(self, person: Person, roles: Sequence[str]) -> HeldRoles:
        """Of those roles. Never raises; what cannot be looked up is not held."""
        ...


class RoleDirectory(RoleHolders, Protocol):
    """Who is in which role, now."""

    async def refusal(
        self, person: Person, roles: Sequence[str], also: Sequence[str] = ()
    ) -> str | None:
        """None when the person holds one of the roles; else why not, in words for them.

        Where `also` names any, one of those has to be held too. Fails closed: no `roles` and a
        lookup that fails are a refusal, as are guests, strangers, bots and other workspaces unless
        a role of each kind lists them by id, and always deactivated people.
        """
        ...


class ChannelNames(Protocol):
    """What channels are called, which rules are written in. Every method raises StorageUnavailable.

    A name is never guessed: "" is a channel whose name could not be read. What has none is
    "@direct" or "@group".
    """

    async def for_asking(self, place: Place, patience_s: float = 0.0) -> str:
        """To read by. One read a while ago does; asked again for so many seconds while unknown."""
        ...

    async def for_deciding(self, place: Place) -> str:
        """To decide by: read within the last minute, or unknown."""
        ...


@dataclass(frozen=True, slots=True)
class PlatformTraits:
    """What a chat platform can do, as far as the conversation and the actions have to know.

    `card_chars` is what a card holds of a proposal's arguments, as they are shown at worst, and
    `preview_chars` of its dry run: what would not be shown whole cannot be confirmed.
    """

    name: str
    card_chars: int
    preview_chars: int
    message_chars: int  # of one message; longer answers go on in the next one
    edits_per_minute: float  # of all answers together; infinite where nothing is edited
    private_messages: bool
    forms: bool  # whether a person can be asked for text: a reason, changed arguments
    native_stream: bool = False  # whether text can be appended without editing
    charts: bool = False


class AnswerStream(Protocol):
    """One live answer. `feed` never blocks and never raises."""

    def feed(self, event: TurnEvent) -> None:
        """Show it when the workspace's edit budget allows; the newest state wins."""
        ...

    async def finish(self, final: TurnFinished) -> None:
        """Deliver the whole final text. Raises SurfaceGone, SurfaceFailed."""
        ...

    async def aclose(self) -> None:
        """Stop editing without a final text (the turn moved elsewhere)."""
        ...


class AnswerSurface(Protocol):
    """Where answers grow. All texts are plain Markdown; the surface escapes and defuses."""

    async def open_answer(self, ask: Ask) -> MessageTs:
        """Post the placeholder, or find the one an earlier attempt posted."""
        ...

    def stream(self, ask: Ask, ts: MessageTs) -> AnswerStream:
        """Edit that message as the turn goes on."""
        ...


class PrivateSurface(Protocol):
    """Words for one person."""

    @property
    def traits(self) -> PlatformTraits:
        """What the platform can do."""
        ...

    async def whisper(self, place: Place, user: UserId, text: str) -> None:
        """Tell one person privately; best effort."""
        ...


class CardSurface(PrivateSurface, Protocol):
    """Where proposals are decided on."""

    async def show_card(self, proposal: Proposal) -> MessageTs:
        """Post the proposal's card, or bring the one already posted up to date."""
        ...

    async def say(self, place: Place, text: str, key: str) -> MessageTs:
        """Post in the thread once per `key`."""
        ...


class ChatSurface(AnswerSurface, CardSurface, Protocol):
    """Where people read."""


class Journal(Protocol):
    """Durable steps of one workflow: a finished step is never run again, its value is replayed."""

    async def step(self, name: str, run: Callable[[], Awaitable[JsonValue]]) -> JsonValue:
        """Run once; afterwards answer from the record. Raises GivenUp."""
        ...

    async def steps(
        self, parts: Sequence[tuple[str, Callable[[], Awaitable[JsonValue]]]]
    ) -> Sequence[JsonValue]:
        """Several at once; values in the order given."""
        ...


class StopSignal(Protocol):
    """Whether somebody asked a turn to stop."""

    async def wait(self) -> None:
        """Return when they did."""
        ...

    @property
    def requested(self) -> bool:
        """Whether they did."""
        ...


class StopRequests(Protocol):
    """Stops asked for, across replicas, ahead of any queue."""

    async def request(self, turn: TurnId, by: UserId) -> bool:
        """Ask a running turn to stop; False when it is not running."""
        ...


class Stops(StopRequests, Protocol):
    """And heard of, where the turn runs."""

    def watch(self, turn: TurnId) -> StopSignal:
        """The signal of a turn that runs here."""
        ...


class Workflows(Protocol):
    """Durable starts: when a call returns, the work survives a crash and runs once."""

    async def start_turn(self, ask: Ask) -> None:
        """Answer a message. The same ask again, here or on another replica, is the same turn."""
        ...

    async def start_decision(self, proposal_id: ProposalId, decision: Decision) -> None:
        """Carry a person's or the clock's decision through: decide, dispatch, show."""
        ...
