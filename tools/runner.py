"""The only path to call a tool, for any caller and any source of tools.

Admission (tools.admission) → start event → cache (tools.recent_calls), else execution under a
timeout and rendering (tools.rendering) → record → end event. It raises only a cancellation.
"""

import asyncio
import contextlib
import math
import time
import traceback
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime

import structlog
from pydantic import BaseModel, JsonValue

from tools.admission import Admission, Admitted, Authoriser
from tools.capabilities import CallContext, Capabilities, Clock
from tools.catalog import ToolCatalog
from tools.contract import PROPOSE_TOOL_ID, ToolContract
from tools.errors import ToolErrorCode
from tools.failure import (
    INTERNAL,
    MAX_MESSAGE_CHARS,
    WITHHELD,
    CallFailed,
    duration_words,
    error_content,
    failure_of,
)
from tools.output import clean_text, weight
from tools.outside_json import counting_unread
from tools.policy import ToolPolicy
from tools.recent_calls import NOTE_BYTES, Breaker, CachedCall, key_of, result_cache, with_age
from tools.records import (
    CallEnded,
    CallEvent,
    CallSlow,
    CallStarted,
    ToolInvocationRecord,
    ToolOutcome,
)
from tools.redactor import Redactor
from tools.rendering import dumped, redacted_text, redacted_value, rendered, validated

SLOW_AFTER_S = 30.0
RECORD_TIMEOUT_S = 10.0
CANCELLED_RECORD_TIMEOUT_S = 0.05  # a cancellation must be through within 100 ms
OFF_LOOP_CHARS = 16 * 1024  # redacting so much takes 1 ms, and 20 ms where it is dense with JSON
MAX_SUMMARY_CHARS = 120
_NOT_RECORDED = "the call could not be recorded, so its result is hidden"
_WRONG = frozenset({ToolErrorCode.EXECUTION, ToolErrorCode.OUTPUT_INVALID})

OnEvent = Callable[[CallEvent], None]
OnRecord = Callable[[ToolInvocationRecord, CallContext], Awaitable[None]]
OnBug = Callable[[str], None]

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class RunnerHooks:
    """What the composition root attaches.

    `authorise` refuses a call by person; `on_record` is awaited before anything of the call
    reaches the conversation; `on_bug` counts a tool's bugs by tool name.
    """

    authorise: Authoriser | None = None
    on_record: OnRecord | None = None
    on_bug: OnBug | None = None


@dataclass(slots=True)
class _Call:
    id: str
    name: str
    raw_arguments: str
    context: CallContext
    on_event: OnEvent
    started_at: datetime
    started_s: float
    longest_s: float
    arguments: dict[str, JsonValue]
    output: BaseModel | None = None
    unread: int = 0

    @property
    def short_name(self) -> str:
        return self.name.split("__", 1)[-1]


class ToolRunner:
    """Runs calls. `timeouts` maps a tool's id or short name to seconds, capped at its ceiling.

    Raises ValueError at construction for a timeout that is not positive.
    """

    def __init__(
        self,
        catalog: ToolCatalog,
        policy: ToolPolicy,
        capabilities: Capabilities,
        redactor: Redactor,
        clock: Clock,
        *,
        timeouts: Mapping[str, float] | None = None,
        hooks: RunnerHooks | None = None,
        slow_after_s: float = SLOW_AFTER_S,
    ) -> None:
        self._hooks = hooks or RunnerHooks()
        self._admission = Admission(catalog, policy, capabilities, self._hooks.authorise)
        self._catalog = catalog
        self._capabilities = capabilities
        self._redactor = redactor
        self._clock = clock
        self._timeouts = timeouts or {}
        self._slow_after_s = slow_after_s
        self._cache = result_cache(time.monotonic)
        self._breaker = Breaker(time.monotonic)
        if any(not seconds > 0 for seconds in self._timeouts.values()):
            raise ValueError("a tool timeout must be positive")

    async def run(
        self,
        call_id: str,
        name: str,
        arguments: str,
        ctx: CallContext,
        on_event: OnEvent,
        longest_s: float = math.inf,
    ) -> ToolOutcome:
        """One call from its arguments' text to what the model may read.

        `longest_s` only shortens what the tool may take. `call_id` becomes the context's
        tool_call_id. Calls `on_event` with CallStarted, CallSlow, CallEnded. Raises nothing but
        CancelledError.
        """
        if ctx.tool_call_id != call_id:
            ctx = replace(ctx, tool_call_id=call_id)
        # A name that a model invented may hold anything: only a registered one is repeated.
        known_name = name if self._catalog.get(name) is not None else "unknown"
        call = _Call(
            call_id, known_name, arguments, ctx, on_event,
            self._clock.now(), asyncio.get_running_loop().time(), longest_s, {},
        )  # fmt: skip
        try:
            outcome = await self._recorded(call, await self._attempt(call, name))
        except asyncio.CancelledError:
            await self._cancelled(call)
            raise
        self._emit(call, CallEnded(outcome))
        return outcome

    async def _attempt(self, call: _Call, name: str) -> ToolOutcome:
        try:
            admitted = await self._admission.admit(name, call.raw_arguments, call.context)
            call.arguments = redacted_value(_sent(admitted.arguments), self._redactor)
            self._emit(call, CallStarted(call.id, call.name, call.arguments))
            key = key_of(admitted.entry.contract, admitted.arguments, admitted.context)
            kept = None if key is None else self._cache.get(key)
            if kept is not None:
                return self._again(call, kept)
            outcome = await self._finished(call, admitted, await self._execute(call, admitted))
            if key is not None:
                cut = outcome.record.truncated
                self._cache[key] = CachedCall(outcome.content, outcome.summary, cut, call.started_s)
            return outcome
        except asyncio.CancelledError as error:
            if _really_cancelled():
                raise
            return self._broken(call, RuntimeError(f"the tool cancelled itself: {error}"))
        except Exception as error:  # noqa: BLE001 - the seam where a tool's bug becomes an answer
            failed = failure_of(error)
            return self._broken(call, error) if failed is None else self._failed(call, failed)

    async def _execute(self, call: _Call, admitted: Admitted) -> object:
        """Unless the tool has not answered for a while, which the next call is then spared."""
        tool_id = admitted.entry.contract.id
        resting = self._breaker.refusal(tool_id)
        if resting is not None:
            raise CallFailed(ToolErrorCode.UNAVAILABLE, f"{call.short_name} {resting}")
        try:
            answer = await self._timed(call, admitted)
        except Exception as error:
            failed = failure_of(error) or CallFailed(ToolErrorCode.EXECUTION, "")
            if failed.asked:
                self._breaker.ended(tool_id, failed.code)
            else:
                self._breaker.untried(tool_id)
            raise
        self._breaker.ended(tool_id, None)
        return answer

    async def _timed(self, call: _Call, admitted: Admitted) -> object:
        tool, contract = admitted.entry.tool, admitted.entry.contract
        slow = asyncio.get_running_loop().call_later(
            self._slow_after_s, self._emit, call, CallSlow(call.id, call.name)
        )
        longest_s = min(admitted.limits.call_time_s, call.longest_s)
        deadline = asyncio.timeout(min(self._timeout_s(contract), longest_s))
        try:
            with counting_unread() as unread:
                async with deadline:
                    answer: object = await tool.execute(
                        admitted.arguments, admitted.context, self._capabilities
                    )
            call.unread = unread.count
            return answer
        except Exception as error:
            if deadline.expired():
                raise CallFailed(ToolErrorCode.TOOL_TIMEOUT, "timed out") from error
            raise
        finally:
            slow.cancel()

    async def _finished(self, call: _Call, admitted: Admitted, output: object) -> ToolOutcome:
        entry = admitted.entry
        call.output = validated(entry.contract, output)
        value = dumped(call.output)
        cap = admitted.limits.result_bytes - NOTE_BYTES
        parts = (entry, value, self._redactor, cap, call.unread)
        is_large = weight(value, OFF_LOOP_CHARS) > OFF_LOOP_CHARS
        answer = await asyncio.to_thread(rendered, *parts) if is_large else rendered(*parts)
        proposal = getattr(call.output, "proposal_id", None)
        return ToolOutcome(
            record=self._record(call, None, "", answer.content, truncated=answer.cut),
            content=answer.content,
            summary=self._summary(call, admitted),
            proposal_id=proposal if entry.contract.id == PROPOSE_TOOL_ID else None,
        )

    def _again(self, call: _Call, kept: CachedCall) -> ToolOutcome:
        content = with_age(kept, asyncio.get_running_loop().time())
        record = self._record(call, None, "", content, truncated=kept.cut, cached=True)
        return ToolOutcome(record, content, kept.summary)

    def _summary(self, call: _Call, admitted: Admitted) -> str:
        """A summary is a courtesy: one that fails is left out, the result is not."""
        try:
            words = admitted.entry.tool.summarise(call.output, admitted.arguments)
            words = clean_text(redacted_text(words, self._redactor))
            unread = f", {call.unread} entries unreadable" if call.unread else ""
            return words[: MAX_SUMMARY_CHARS - len(unread)] + unread
        except Exception as error:  # noqa: BLE001 - a tool's bug again, with the result at hand
            self._report(call, error)
            return ""

    def _broken(self, call: _Call, error: Exception) -> ToolOutcome:
        self._report(call, error)
        return self._failed(call, CallFailed(ToolErrorCode.EXECUTION, INTERNAL), reported=True)

    def _failed(self, call: _Call, failed: CallFailed, *, reported: bool = False) -> ToolOutcome:
        if failed.code in _WRONG and not reported:
            self._report(call, failed)
        code, message = failed.code, clean_text(failed.message)
        if len(message) > OFF_LOOP_CHARS:
            message = f"a message of {len(message)} characters, too long to show"
        try:
            message = redacted_text(message, self._redactor)[:MAX_MESSAGE_CHARS]
        except CallFailed:
            code, message = ToolErrorCode.REDACTION_FAILED, WITHHELD
        elapsed = duration_words(asyncio.get_running_loop().time() - call.started_s)
        if code is ToolErrorCode.TOOL_TIMEOUT:
            message = f"timed out after {elapsed}"
        content = error_content(code, message, tool=call.short_name, elapsed=elapsed)
        record = self._record(call, code, message, content, truncated=False)
        return ToolOutcome(record, content, message[:MAX_SUMMARY_CHARS])

    def _record(
        self,
        call: _Call,
        code: ToolErrorCode | None,
        message: str,
        content: str,
        *,
        truncated: bool,
        cached: bool = False,
    ) -> ToolInvocationRecord:
        return ToolInvocationRecord(
            tool_call_id=call.id,
            name=call.name,
            arguments=call.arguments,
            ok=code is None,
            error_code=code,
            message=message,
            started_at=call.started_at,
            ended_at=self._clock.now(),
            bytes=len(content.encode()),
            truncated=truncated,
            cached=cached,
            raw=call.output,
        )

    async def _recorded(self, call: _Call, outcome: ToolOutcome) -> ToolOutcome:
        """What cannot be recorded does not reach the conversation."""
        if self._hooks.on_record is None:
            return outcome
        try:
            async with asyncio.timeout(RECORD_TIMEOUT_S):
                await self._hooks.on_record(outcome.record, call.context)
        except Exception as error:  # noqa: BLE001 - recording fails closed, whatever broke
            self._report(call, error)
            withheld = self._failed(call, CallFailed(ToolErrorCode.UNAVAILABLE, _NOT_RECORDED))
            return ToolOutcome(
                withheld.record, withheld.content, withheld.summary, outcome.proposal_id
            )
        return outcome

    async def _cancelled(self, call: _Call) -> None:
        """Leave a record if that is quick; the cancellation goes on either way."""
        outcome = self._failed(call, CallFailed(ToolErrorCode.CANCELLED, "stopped"))
        self._emit(call, CallEnded(outcome))
        if self._hooks.on_record is None:
            return
        try:
            async with asyncio.timeout(CANCELLED_RECORD_TIMEOUT_S):
                await self._hooks.on_record(outcome.record, call.context)
        except Exception as error:  # noqa: BLE001 - the caller must see the cancellation
            # Expected while a process ends: nothing is broken, and there is no time for more.
            _log.warning(
                "tool.cancelled_call_not_recorded", tool=call.name, call=call.id,
                session=call.context.session_id, error=type(error).__name__,
            )  # fmt: skip

    def _timeout_s(self, contract: ToolContract) -> float:
        """Seconds: what configuration says, or the contract's default, at most the ceiling."""
        chosen = self._timeouts.get(contract.id, self._timeouts.get(contract.short_name))
        return min(chosen or contract.timeouts.default_s, contract.timeouts.ceiling_s)

    def _emit(self, call: _Call, event: CallEvent) -> None:
        try:
            call.on_event(event)
        except Exception as error:  # noqa: BLE001 - showing progress must not break the call
            _log.warning("tool.event_not_shown", tool=call.name, error=type(error).__name__)

    def _report(self, call: _Call, error: Exception) -> None:
        """Log the traceback, redacted: an exception may quote what a backend sent."""
        if self._hooks.on_bug is not None:
            with contextlib.suppress(Exception):  # counting must not break the call
                self._hooks.on_bug(call.name)
        try:
            trace = redacted_text("".join(traceback.format_exception(error)), self._redactor)
        except CallFailed:
            trace = "".join(traceback.format_tb(error.__traceback__)) + type(error).__name__
        _log.error(
            "tool.internal_error", tool=call.name, call=call.id,
            session=call.context.session_id, trace=trace,
        )  # fmt: skip


def _sent(arguments: BaseModel) -> dict[str, JsonValue]:
    value: dict[str, JsonValue] = arguments.model_dump(
        mode="json", exclude_none=True, exclude_unset=True
    )
    return value


def _really_cancelled() -> bool:
    """Whether this task was cancelled; a tool may also leak a CancelledError of its own."""
    return (task := asyncio.current_task()) is None or task.cancelling() > 0
