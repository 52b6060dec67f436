"""What a model says, redacted before it is kept, sent on, or run as a tool's arguments.

A model repeats what it has read, and nobody can promise what that was: its words are no safer than
a log line.
"""

from collections.abc import Sequence
from dataclasses import replace

from adapters.llm.messages import CompleteRequest, ErrorKind, StopReason, ToolCall
from adapters.llm.port import Provider
from bot.chat.circuits import Circuits
from bot.chat.gate import Gate
from bot.chat.round_record import RoundRecord
from bot.chat.rounds import OPEN_GATE, Emit, Rounds
from bot.domain.events import Notice, TurnEvent
from bot.ports import StopSignal
from tools.redactor import RedactionFailed, Redactor

WITHHELD = "what the model said is withheld: it could not be redacted"


class RedactedRounds(Rounds):
    """`Rounds` whose records hold no secret. Text on its way is redacted where it is shown."""

    def __init__(
        self, providers: Sequence[Provider], redactor: Redactor, circuits: Circuits | None = None
    ) -> None:
        super().__init__(providers, circuits)
        self._redactor = redactor

    async def run(
        self,
        request: CompleteRequest,
        number: int,
        emit: Emit,
        stop: StopSignal,
        *,
        prefer: str = "",
        gate: Gate = OPEN_GATE,
    ) -> RoundRecord:
        """See `Rounds.run`. What cannot be redacted becomes a failed round without words."""

        def safe_emit(event: TurnEvent) -> None:
            emit(Notice(self._or_withheld(event.text)) if isinstance(event, Notice) else event)

        record = await super().run(request, number, safe_emit, stop, prefer=prefer, gate=gate)
        try:
            return self._safe(record)
        except RedactionFailed:
            return _withheld(record)

    def _safe(self, record: RoundRecord) -> RoundRecord:
        redact = self._redactor.redact
        blocks = tuple(map(redact, record.provider_blocks))
        return replace(
            record,
            model=redact(record.model),
            text=redact(record.text),
            tool_calls=tuple(map(self._safe_call, record.tool_calls)),
            # Signed by their vendor: changed ones would be refused, so they go altogether.
            provider_blocks=blocks if blocks == record.provider_blocks else (),
            notices=tuple(map(redact, record.notices)),
            error_message=redact(record.error_message),
        )

    def _safe_call(self, call: ToolCall) -> ToolCall:
        redact = self._redactor.redact
        # An id with a mark in it fits no wire; without one, the loop gives its own.
        kept_id = call.id if redact(call.id) == call.id else ""
        return replace(call, id=kept_id, name=redact(call.name), arguments=redact(call.arguments))

    def _or_withheld(self, text: str) -> str:
        try:
            return self._redactor.redact(text)
        except RedactionFailed:
            return WITHHELD


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
