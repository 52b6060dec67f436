"""The records of a tool call: its row, its evidence line, and the events while it runs."""

from dataclasses import dataclass, field
from datetime import datetime

from pydantic import JsonValue

from tools.errors import ToolErrorCode


@dataclass(frozen=True, slots=True)
class ToolInvocationRecord:
    """One call from start to result. `tool_call_id` is the same in every event of the call.

    `arguments` are the validated, redacted ones (empty when they never fit). `message` is safe to
    show. `raw` is the unredacted backend value, for observability only: it is excluded from repr
    and must never be shown, stored or sent.
    """

    tool_call_id: str
    name: str
    arguments: dict[str, JsonValue]
    ok: bool
    error_code: ToolErrorCode | None
    message: str
    started_at: datetime
    ended_at: datetime
    bytes: int
    truncated: bool
    cached: bool = False
    raw: object = field(default=None, repr=False, compare=False)

    @property
    def latency_ms(self) -> int:
        return max(0, round((self.ended_at - self.started_at).total_seconds() * 1000))


@dataclass(frozen=True, slots=True)
class ToolOutcome:
    """What the runner returns: the record and the JSON text the model is given.

    `content` has passed output validation, redaction and the size cap. `summary` is the few words
    people see beside the evidence number ("42 lines, last 30m"). `proposal_id` is set only by
    `core__propose_action`.
    """

    record: ToolInvocationRecord
    content: str
    summary: str
    proposal_id: str | None = None


@dataclass(frozen=True, slots=True)
class CallStarted:
    tool_call_id: str
    name: str
    arguments: dict[str, JsonValue]


@dataclass(frozen=True, slots=True)
class CallSlow:
    """The call has run for 30 s; users see that it takes longer than usual."""

    tool_call_id: str
    name: str


@dataclass(frozen=True, slots=True)
class CallEnded:
    outcome: ToolOutcome


CallEvent = CallStarted | CallSlow | CallEnded
