"""Tool calls as a turn makes them: through the runner, stoppable, and written down.

Before the first round there is an overview, so that the model does not have to search. Its calls are
planned once and recorded, so a resumed turn makes the same ones. They run like a model's calls, and
the conversation shows them as such.
"""

import math
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from pydantic import JsonValue

from adapters.llm.first_look.calls import is_named_as_ours, is_of_look
from adapters.llm.messages import CompleteRequest, ToolCall
from bot.chat.stopping import StoppedByPerson, unless_stopped
from bot.domain.audit import AuditEvent, AuditKind
from bot.ports.audit_log import AuditLog
from bot.ports.durability import Journal, StopSignal
from bot.telemetry.metrics import Metrics
from tools.capabilities import CallContext, Clock
from tools.catalog import ToolCatalog, ToolDescription
from tools.errors import ToolErrorCode
from tools.records import CallEvent, ToolInvocationRecord, ToolOutcome
from tools.runner import ToolRunner

STOPPED = '{"error":"cancelled","message":"a person stopped this turn"}'


@dataclass(frozen=True, slots=True)
class Toolbox:
    catalog: ToolCatalog
    runner: ToolRunner


class TurnTools:
    """The tools of every turn of this process. `choose` names the backends a channel looks at."""

    def __init__(self, choose: Callable[[CallContext], Toolbox], clock: Clock) -> None:
        self._choose = choose
        self._clock = clock

    def visible(self, context: CallContext) -> Sequence[ToolDescription]:
        return self._choose(context).catalog.visible(context)

    async def run(
        self,
        call: ToolCall,
        context: CallContext,
        on_event: Callable[[CallEvent], None],
        stop: StopSignal,
    ) -> ToolOutcome:
        """Run one call; a stop makes it an outcome with `cancelled`."""
        started = self._clock.now()
        work = self._choose(context).runner.run(
            call.id,
            call.name,
            call.arguments,
            context if context.tool_call_id == call.id else replace(context, tool_call_id=call.id),
            on_event,
            patience_s(call),
        )
        try:
            return await unless_stopped(stop, work)
        except StoppedByPerson:
            record = ToolInvocationRecord(
                tool_call_id=call.id,
                name=call.name,
                arguments={},
                ok=False,
                error_code=ToolErrorCode.CANCELLED,
                message="stopped",
                started_at=started,
                ended_at=self._clock.now(),
                bytes=len(STOPPED),
                truncated=False,
            )
            return ToolOutcome(record, STOPPED, "stopped")


def record_calls(
    audit: AuditLog, metrics: Metrics
) -> Callable[[ToolInvocationRecord, CallContext], Awaitable[None]]:
    """The runner's hook: every call is a row before its result reaches the conversation.

    Calls read, or propose, which has a row of its own before: within a step they go with its record.
    """

    async def write(record: ToolInvocationRecord, context: CallContext) -> None:
        metrics.tool_called(record)
        await audit.append_with_step(
            AuditEvent(
                AuditKind.TOOL_CALL,
                context.actor,
                {
                    "turn": context.turn_id,
                    "tool": record.name,
                    "call": record.tool_call_id,
                    "arguments": record.arguments,
                    "ok": record.ok,
                    "error": record.error_code.value if record.error_code else None,
                    "bytes": record.bytes,
                    "truncated": record.truncated,
                    "cached": record.cached,
                    "latency_ms": record.latency_ms,
                },
                context.session_id,
                key=f"{context.turn_id}:call:{record.tool_call_id}:{record.started_at.timestamp()}",
            )
        )

    return write


# For each call; a sweep takes at most 5 s. The model sees a later one as unanswered.
PATIENCE_S: Final = 15.0

Look = Callable[[CompleteRequest], Sequence[ToolCall]]


def patience_s(call: ToolCall) -> float:
    """How long a call may take beside its own limits."""
    return PATIENCE_S if is_of_look(call) else math.inf


def of_model(calls: Sequence[ToolCall]) -> Sequence[ToolCall]:
    """A model's calls, renamed if their ids look like ours."""
    return [
        replace(each, id=f"call_{each.id}") if is_named_as_ours(each) else each for each in calls
    ]


async def planned(
    step: str, look: Look, request: CompleteRequest, journal: Journal
) -> tuple[ToolCall, ...]:
    async def plan() -> JsonValue:
        return [[call.id, call.name, call.arguments] for call in look(request)]

    kept = await journal.step(step, plan, with_next=True)
    assert isinstance(kept, list)  # noqa: S101 - written two lines up
    rows = [row for row in kept if isinstance(row, list)]
    return tuple(ToolCall(str(row[0]), str(row[1]), str(row[2])) for row in rows)
