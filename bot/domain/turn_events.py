"""What happens during a turn, as values. The loop yields them; a platform's stream shows them.

A turn yields exactly one `TurnFinished`, last.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from adapters.llm.messages import StopReason, Usage
from bot.domain.claims import Claim
from bot.domain.ids import ProposalId
from tools.records import CallEvent, ToolOutcome


@dataclass(frozen=True, slots=True)
class RoundStarted:
    """A request to a provider begins. `number` counts from 1."""

    number: int
    provider: str
    model: str


@dataclass(frozen=True, slots=True)
class TextDelta:
    """A piece of the answer as the model wrote it: not redacted yet."""

    text: str


@dataclass(frozen=True, slots=True)
class RoundReplaced:
    """The text of this round is void: another model, the full one or a fallback, answers instead."""

    number: int


@dataclass(frozen=True, slots=True)
class ToolProgress:
    """A tool call started, is slow, or ended. `evidence` numbers the ended ones from 1."""

    event: CallEvent
    evidence: int | None = None


@dataclass(frozen=True, slots=True)
class ProposalRaised:
    """A proposal was stored. Its card is a message of its own, shown by who stored it."""

    proposal_id: ProposalId


@dataclass(frozen=True, slots=True)
class Notice:
    """Something people should know about this answer: a failover, a spent budget, a fold."""

    text: str


class TurnEnd(StrEnum):
    ANSWERED = "answered"
    DEPTH_EXCEEDED = "depth_exceeded"
    STOPPED = "stopped"
    BUDGET = "budget"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Evidence:
    """One numbered tool result: its call, its size, its duration."""

    number: int
    tool_call_id: str
    tool: str
    summary: str
    ok: bool
    latency_ms: int
    truncated: bool
    content: str  # the redacted result behind the button

    @classmethod
    def of(cls, number: int, outcome: ToolOutcome) -> "Evidence":
        record = outcome.record
        return cls(
            number=number,
            tool_call_id=record.tool_call_id,
            tool=record.name,
            summary=outcome.summary,
            ok=record.ok,
            latency_ms=record.latency_ms,
            truncated=record.truncated,
            content=outcome.content,
        )


@dataclass(frozen=True, slots=True)
class TurnFinished:
    """The one final event. `text` is the whole answer, marked where a claim fails; `claims` say why.

    `narration` is its beginning that was said before the last result was read. `is_kept`: the store
    has the whole text, so that a message may show less.
    """

    end: TurnEnd
    text: str
    stop_reason: StopReason
    provider: str
    model: str
    rounds: int
    usage: Usage
    cost_usd_micros: int | None
    outcomes: Sequence[ToolOutcome] = ()
    evidence: Sequence[Evidence] = ()
    notices: Sequence[str] = ()
    claims: Sequence[Claim] = ()
    proposal_ids: Sequence[ProposalId] = ()
    stopped_by: str = ""  # the platform's id of who stopped it
    narration: str = ""
    is_kept: bool = False
    changes: str = ""  # of a failed turn: what became of its proposals; empty when it made none


TurnEvent = (
    RoundStarted | TextDelta | RoundReplaced | ToolProgress | ProposalRaised | Notice | TurnFinished
)
