"""A turn as a trace: start, model requests, tool calls and steps, until the last edit.

Spans are made when they end. A turn that is handed over keeps its ended spans, and the replica that
ends it writes the turn's span. A turn's logs name trace, session and turn.
"""

import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Final

import structlog
from pydantic import JsonValue

from bot.chat.turn_trace import TurnTrace, as_json, current, usage_attributes
from bot.domain.ids import session_at
from bot.domain.session import Ask
from bot.domain.turn_events import TurnEnd, TurnFinished
from bot.ports.durability import Journal
from bot.telemetry import conventions as names
from bot.telemetry.spans import (
    NO_SPANS,
    FinishedSpan,
    SpanKind,
    Spans,
    Value,
    log_ids,
    root_of,
    trace_of,
    turn_span_of,
)

TurnBody = Callable[[Ask, Journal], Awaitable[object]]
EndingBody = Callable[[Ask, bool, Journal], Awaitable[None]]
Run = Callable[[], Awaitable[JsonValue]]

AGENT_NAME: Final = "kortex"
LOST: Final = "lost"
_OPEN: Final = "open"  # the step that keeps, as its third value, when the turn began
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class TurnTraces:
    """Puts traces around turns. With `NO_SPANS` only their logs gain the ids."""

    def __init__(self, spans: Spans = NO_SPANS) -> None:
        self._spans = spans

    @contextmanager
    def accepting(self, ask: Ask) -> Iterator[None]:
        """While a message becomes durable: the beginning of its trace."""
        started_ns = time.time_ns()
        error = ""
        with structlog.contextvars.bound_contextvars(**_ids_of(ask)):
            try:
                yield
            except BaseException as failed:
                error = type(failed).__name__
                raise
            finally:
                if self._spans.takes(trace_of(ask.turn_id)):
                    self._accepted(ask, started_ns, error)

    def answering(self, body: TurnBody) -> TurnBody:
        async def answer(ask: Ask, journal: Journal) -> object:
            with self._within(ask) as trace:
                if trace is None:
                    return await body(ask, journal)
                traced = TracedJournal(journal, trace)
                try:
                    final = await body(ask, traced)
                except Exception as error:  # the turn is over; cancelled, it is another's to end
                    _turn_ended(trace, traced, None, type(error).__name__)
                    raise
                _turn_ended(trace, traced, final)
                return final

        return answer

    def ending(self, body: EndingBody) -> EndingBody:
        async def end(ask: Ask, told: bool, journal: Journal) -> None:
            with self._within(ask) as trace:
                if trace is None:
                    return await body(ask, told, journal)
                traced = TracedJournal(journal, trace)
                await body(ask, told, traced)
                return _turn_ended(trace, traced, None, LOST)

        return end

    @contextmanager
    def _within(self, ask: Ask) -> Iterator[TurnTrace | None]:
        with structlog.contextvars.bound_contextvars(**_ids_of(ask)):
            if not self._spans.takes(trace_of(ask.turn_id)):
                yield None
                return
            trace = TurnTrace(ask.turn_id, _session_of(ask), self._spans)
            token = current.set(trace)
            try:
                yield trace
            finally:
                current.reset(token)

    def _accepted(self, ask: Ask, started_ns: int, error: str) -> None:
        self._spans.ended(
            FinishedSpan(
                names.ACCEPT,
                SpanKind.CONSUMER,
                trace_of(ask.turn_id),
                root_of(ask.turn_id),
                b"",
                started_ns,
                time.time_ns(),
                {names.TURN: ask.turn_id, names.CONVERSATION: _session_of(ask)},
                error=error,
            )
        )


class TracedJournal(Journal):
    """A journal with a span for each step that runs; replayed steps were traced before.

    Rounds have no span: their requests have.
    """

    def __init__(self, journal: Journal, trace: TurnTrace) -> None:
        self._journal = journal
        self._trace = trace
        self.began_ns = time.time_ns()
        self.resumed = False

    async def step(self, name: str, run: Run, *, with_next: bool = False) -> JsonValue:
        ran = False

        async def running() -> JsonValue:
            nonlocal ran
            ran = True
            return await self._timed(name, run)

        value = await self._journal.step(name, running, with_next=with_next)
        if name == _OPEN and not ran:
            self.resumed = True
            self.began_ns = _began_ns(value) or self.began_ns
        return value

    async def steps(self, parts: Sequence[tuple[str, Run]]) -> Sequence[JsonValue]:
        timed = [(name, self._timing(name, run)) for name, run in parts]
        return await self._journal.steps(timed)

    async def got_on(self) -> None:
        await self._journal.got_on()

    def _timing(self, name: str, run: Run) -> Run:
        return lambda: self._timed(name, run)

    async def _timed(self, name: str, run: Run) -> JsonValue:
        kind = name.partition(":")[0]
        if kind == "round":
            return await run()
        started_ns = time.time_ns()
        try:
            value = await run()
        except BaseException as error:
            self._trace.ended(names.STEP + kind, started_ns, {}, error=type(error).__name__)
            raise
        if kind == "tool":
            _tool_ended(self._trace, started_ns, value)
        else:
            self._trace.ended(names.STEP + kind, started_ns, {})
        return value


def _tool_ended(trace: TurnTrace, started_ns: int, value: JsonValue) -> None:
    outcome = value if isinstance(value, dict) else {}
    record = outcome.get("record")
    record = record if isinstance(record, dict) else {}
    tool = str(record.get("name", ""))
    attributes: dict[str, Value] = {
        names.OPERATION: names.EXECUTE_TOOL,
        names.TOOL: tool,
        names.TOOL_TYPE: "function",
        names.TOOL_CALL: str(record.get("tool_call_id", "")),
        names.TRUNCATED: record.get("truncated") is True,
        names.CACHED: record.get("cached") is True,
    }
    content: dict[str, str] = {}
    if trace.spans.with_content:
        content[names.TOOL_ARGUMENTS] = as_json(record.get("arguments"))
        content[names.TOOL_RESULT] = str(outcome.get("content", ""))
    error = "" if record.get("ok") is True else str(record.get("error_code") or "failed")
    trace.ended(
        f"{names.EXECUTE_TOOL} {tool}", started_ns, attributes, content=content, error=error
    )


def _turn_ended(trace: TurnTrace, journal: TracedJournal, final: object, error: str = "") -> None:
    attributes: dict[str, Value] = {
        names.OPERATION: names.INVOKE_AGENT,
        names.AGENT: AGENT_NAME,
        names.CONVERSATION: trace.conversation,
        names.TURN: trace.turn,
        names.RESUMED: journal.resumed,
    }
    content: dict[str, str] = {}
    if isinstance(final, TurnFinished):
        attributes |= _of_final(final)
        if trace.spans.with_content:
            content[names.OUTPUT_MESSAGES] = final.text
        error = error or (final.end.value if final.end is TurnEnd.FAILED else "")
    trace.spans.ended(
        FinishedSpan(
            f"{names.INVOKE_AGENT} {AGENT_NAME}",
            SpanKind.INTERNAL,
            trace_of(trace.turn),
            turn_span_of(trace.turn),
            root_of(trace.turn),
            journal.began_ns,
            time.time_ns(),
            attributes,
            content,
            error,
        )
    )


def _of_final(final: TurnFinished) -> Mapping[str, Value]:
    found: dict[str, Value] = {
        names.END: final.end.value,
        names.ROUNDS: final.rounds,
        **usage_attributes(final.usage),
    }
    if final.provider:
        found[names.PROVIDER] = names.PROVIDERS.get(final.provider, final.provider)
    if final.model:
        found[names.RESPONSE_MODEL] = final.model
    if final.cost_usd_micros is not None:
        found[names.COST] = final.cost_usd_micros
    return found


def _began_ns(kept: JsonValue) -> int | None:
    if not (isinstance(kept, list) and len(kept) > 2 and isinstance(kept[2], str)):
        return None
    try:
        began = datetime.fromisoformat(kept[2])
    except ValueError:
        return None
    return round((began - _EPOCH).total_seconds() * 1e9) if began.tzinfo else None


def _session_of(ask: Ask) -> str:
    return session_at(ask.place)


def _ids_of(ask: Ask) -> Mapping[str, str]:
    return log_ids(ask.turn_id, _session_of(ask))
