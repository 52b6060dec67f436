"""Redaction before and after every model: requests are redacted again, and so are answers.

A model repeats what it has read, so its words are no safer than a log line.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, TypeVar
from weakref import WeakKeyDictionary

from adapters.llm.messages import (
    CompleteRequest,
    ErrorKind,
    Message,
    StopReason,
    ToolCall,
    ToolResult,
)
from adapters.llm.port import Provider
from adapters.llm.vendor_blocks import readable
from bot.chat.attempt import Emit
from bot.chat.circuits import Circuits
from bot.chat.round_budget import RoundBudget
from bot.chat.round_record import RoundRecord
from bot.chat.rounds import Rounds
from bot.domain.turn_events import Notice, TurnEvent
from bot.ports.durability import StopSignal
from tools.redactor import RedactionFailed, Redactor, redacted_json
from tools.runner import OFF_LOOP_CHARS

T = TypeVar("T", CompleteRequest, Message, RoundRecord, ToolCall, ToolResult)

WITHHELD_REQUEST = "the model was not asked, because the conversation could not be redacted"
WITHHELD = "the model's answer is hidden, because it could not be redacted"


class _Passed(NamedTuple):
    """The messages of a turn that were left as they are, by identity, as long as nothing is learned."""

    learned: int
    messages: Mapping[int, Message]


class RedactedRounds(Rounds):
    """`Rounds` with records that hold no secret. Growing text is redacted when it is shown."""

    def __init__(
        self, providers: Sequence[Provider], redactor: Redactor, circuits: Circuits | None = None
    ) -> None:
        super().__init__(providers, circuits)
        self._redactor = redactor
        self._passed: WeakKeyDictionary[StopSignal, _Passed] = WeakKeyDictionary()

    async def run(
        self,
        request: CompleteRequest,
        number: int,
        emit: Emit,
        stop: StopSignal,
        *,
        budget: RoundBudget,
        prefer: str = "",
    ) -> RoundRecord:
        """See `Rounds.run`. What cannot be redacted becomes a failed round without words."""

        def safe_emit(event: TurnEvent) -> None:
            emit(Notice(self._or_withheld(event.text)) if isinstance(event, Notice) else event)

        try:
            is_large = sum(len(each.text) for each in request.messages) > OFF_LOOP_CHARS
            request = (
                await asyncio.to_thread(self._safe_request, request, stop)
                if is_large
                else self._safe_request(request, stop)
            )
        except RedactionFailed:
            return RoundRecord(number, error=ErrorKind.PROTOCOL, error_message=WITHHELD_REQUEST)
        record = await super().run(request, number, safe_emit, stop, prefer=prefer, budget=budget)
        try:
            return self._safe(record)
        except RedactionFailed:
            return _withheld(record)

    def _safe_request(self, request: CompleteRequest, stop: StopSignal) -> CompleteRequest:
        """The request to send. Texts were redacted at their source; this is the last check.

        Each round of a turn repeats the text of the round before it. `stop` is the turn's.
        """
        learned = self._redactor.learned  # before any of these messages
        before = self._passed.get(stop)
        passed = before.messages if before and before.learned == learned else {}
        messages = [
            each if id(each) in passed else self._safe_message(each) for each in request.messages
        ]
        same = (new for new, old in zip(messages, request.messages, strict=True) if new is old)
        self._passed[stop] = _Passed(learned, {id(each): each for each in same})
        return _with(
            request, system=self._redactor.redact(request.system), messages=tuple(messages)
        )

    def _safe_message(self, message: Message) -> Message:
        redact = self._redactor.redact
        result = message.tool_result
        if result is not None:
            result = _with(result, content=redacted_json(result.content, self._redactor))
        calls = tuple(
            _with(c, arguments=redacted_json(c.arguments, self._redactor))
            for c in message.tool_calls
        )
        return _with(
            message,
            text=redact(message.text),
            told=redact(message.told),
            tool_calls=calls,
            tool_result=result,
            provider_blocks=_untouched(message.provider_blocks, redact),
        )

    def _safe(self, record: RoundRecord) -> RoundRecord:
        redact = self._redactor.redact
        return _with(
            record,
            model=redact(record.model),
            text=redact(record.text),
            tool_calls=tuple(map(self._safe_call, record.tool_calls)),
            provider_blocks=_untouched(record.provider_blocks, redact),
            notices=tuple(map(redact, record.notices)),
            error_message=redact(record.error_message),
        )

    def _safe_call(self, call: ToolCall) -> ToolCall:
        redact = self._redactor.redact
        # An id with a mark in it fits no wire; without one, the loop gives its own.
        kept_id = call.id if redact(call.id) == call.id else ""
        arguments = redacted_json(call.arguments, self._redactor)
        return _with(call, id=kept_id, name=redact(call.name), arguments=arguments)

    def _or_withheld(self, text: str) -> str:
        try:
            return self._redactor.redact(text)
        except RedactionFailed:
            return WITHHELD


def _with(item: T, **fields: Any) -> T:
    """With these fields; the thing itself where they are as they were, as nearly all are."""
    if all(getattr(item, name) == value for name, value in fields.items()):
        return item
    return replace(item, **fields)


def _untouched(blocks: tuple[str, ...], redact: Callable[[str], str]) -> tuple[str, ...]:
    """The vendor's own blocks, unchanged, for that vendor; none if their readable text is unsafe.

    They are kept for the next turns, so a secret would stay readable there.
    """
    is_safe = all(redact(words) == words for words in map(readable, blocks))
    return blocks if is_safe else ()


def _withheld(record: RoundRecord) -> RoundRecord:
    return replace(
        record,
        model="",
        text="",
        tool_calls=(),
        provider_blocks=(),
        stop_reason=StopReason.ERROR,
        notices=(),
        error=ErrorKind.PROTOCOL,
        error_message=WITHHELD,
    )
