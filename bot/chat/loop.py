"""The tool loop: rounds of model output and tool calls until the model ends.

It is independent of providers, chat platforms and databases. Every round and tool call is a step of
the journal: paid once, and replayed when a turn resumes after a crash.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from datetime import UTC, datetime
from typing import Protocol

from pydantic import JsonValue

from adapters.llm.messages import CompleteRequest, Message, Role, ToolCall, ToolResult
from bot.chat.attachments import has_seen
from bot.chat.conversation import Conversation, question_of, unique_ids, wrap_evidence
from bot.chat.evidence_need import (
    REPLACED,
    UNCHECKED,
    HeldWords,
    can_investigate,
    has_looked,
    may_answer,
)
from bot.chat.fallback_notice import led_by, preface
from bot.chat.round_record import (
    RoundRecord,
    outcome_from_json,
    outcome_to_json,
    round_from_json,
    round_to_json,
    without_raw,
)
from bot.chat.tool_calls import Look, of_model, planned
from bot.domain.budget import NO_MODEL
from bot.domain.ids import ProposalId
from bot.domain.turn_events import (
    Evidence,
    Notice,
    ProposalRaised,
    RoundReplaced,
    RoundStarted,
    TextDelta,
    ToolProgress,
    TurnEnd,
    TurnEvent,
)
from bot.ports.durability import Journal
from tools.call_limits import Spent
from tools.records import CallEnded, CallEvent, ToolOutcome

PARALLEL_CALLS = 10  # of one round at once; the rest waits

Emit = Callable[[TurnEvent], None]


class RoundRunner(Protocol):
    """Asks a model once. Never raises but for cancellation."""

    async def __call__(
        self, request: CompleteRequest, number: int, emit: Emit, prefer: str, *, full: bool
    ) -> RoundRecord:
        """`prefer` is the provider that answered the turn's earlier rounds, or empty.

        `full`: a fast model has passed the turn on.
        """
        ...


class ToolExecutor(Protocol):
    """Runs one call through the one path. Never raises but for cancellation."""

    async def __call__(
        self,
        call: ToolCall,
        on_event: Callable[[CallEvent], None],
        *,
        untrusted_read: bool,
        spent: Spent,
    ) -> ToolOutcome:
        """`untrusted_read`: the turn has read tool output before this call. `spent`: before it."""
        ...


class Renew(Protocol):
    """What the conversation is asked with from this round on. Replayed, it answers the same."""

    async def __call__(self, request: CompleteRequest, number: int) -> CompleteRequest:
        """The request of round `number`, with the same messages."""
        ...


async def _unchanged(request: CompleteRequest, number: int) -> CompleteRequest:  # noqa: ARG001 - the protocol's
    return request


@dataclass(slots=True, eq=False, repr=False)
class Loop:
    """One turn's loop over one request. `talk` is what it has gathered, also when it is cut short.

    `fallback`: the provider that answers if a model called no tool; empty without one. `files`: the
    calls that read attachments. `look`: the overview calls if the question needs evidence.
    """

    ask: RoundRunner
    execute: ToolExecutor
    journal: Journal
    _: KW_ONLY
    max_tool_rounds: int
    renew: Renew = _unchanged
    fallback: str = ""
    files: Look | None = None
    look: Look | None = None
    talk: Conversation | None = field(init=False, default=None)

    async def run(
        self, request: CompleteRequest, emit: Emit, aside: Sequence[RoundRecord] = ()
    ) -> tuple[TurnEnd, Conversation]:
        """Until the model ends, a limit, a stop or a failure. `emit` gets everything but the end.

        With `require_tool` the question needs evidence: a model's answer without any is void.
        """
        talk = Conversation(request, aside=aside, needs_evidence=request.require_tool)
        self.talk = talk
        while True:
            talk.request = await self.renew(talk.request, len(talk.rounds) + 1)
            if not talk.rounds and await self._before_asking(talk, emit):
                return TurnEnd.STOPPED, talk
            record = await self._round(talk, emit)
            if record.stopped:
                return TurnEnd.STOPPED, talk
            if record.error is not None:
                return (TurnEnd.BUDGET if record.out_of_budget else TurnEnd.FAILED), talk
            if record.passed_on:
                continue
            if not record.tool_calls:
                return TurnEnd.ANSWERED, talk
            if talk.steps > self.max_tool_rounds:
                return TurnEnd.DEPTH_EXCEEDED, talk
            if await self._tools(talk, record.tool_calls, emit):
                return TurnEnd.STOPPED, talk

    async def _before_asking(self, talk: Conversation, emit: Emit) -> bool:
        if self.files is not None:
            calls = await planned("files", self.files, talk.request, self.journal)
            if calls and await self._looked(talk, calls, emit):
                return True
        return await self._first_look(talk, emit)

    async def _looked(self, talk: Conversation, calls: Sequence[ToolCall], emit: Emit) -> bool:
        calls = unique_ids(calls, talk.request)
        talk.looked += len(calls)
        self._say(talk, Message(Role.ASSISTANT, tool_calls=calls))
        return await self._tools(talk, calls, emit)

    async def _first_look(self, talk: Conversation, emit: Emit) -> bool:
        if self.look is None or not talk.needs_evidence:
            return False
        calls = await planned("look", self.look, talk.request, self.journal)
        if not calls:
            return False
        before = len(talk.outcomes)
        stopped = await self._looked(talk, calls, emit)
        looked = has_looked(talk.outcomes[before:])
        talk.request = replace(talk.request, require_tool=not looked)
        return stopped

    async def _round(self, talk: Conversation, emit: Emit) -> RoundRecord:
        number = len(talk.rounds) + 1
        asked: RoundRecord | None = None
        prefer = talk.rounds[-1].provider if talk.rounds else ""
        if talk.falls_back:
            prefer = self.fallback
        full = any(r.passed_on for r in talk.rounds)
        held = self._held(talk, emit)
        telling = held or emit

        async def run() -> JsonValue:
            nonlocal asked
            words = _preface(talk) if prefer == NO_MODEL else ""
            said = led_by(words, telling) if words else telling
            asked = await self.ask(talk.request, number, said, prefer, full=full)
            if asked.text and asked.provider == NO_MODEL:
                asked = _in_own_words(asked, words, talk)
            return round_to_json(asked)

        kept = await self.journal.step(f"round:{number}", run)
        live = asked is not None
        record = asked or round_from_json(kept)
        calls = record.tool_calls if record.provider == NO_MODEL else of_model(record.tool_calls)
        calls = unique_ids(calls, talk.request)
        if calls != record.tool_calls:
            record = replace(record, tool_calls=calls)
        if not live:
            _replay_round(record, telling)
        _let_go_of_tools(talk)
        if await self._is_void(talk, record):
            record = _void(talk, record, emit, has_fallback=self._answers_instead(talk))
        if held is not None:
            held.drop() if record.passed_on else held.release()
        talk.rounds.append(record)
        if record.passed_on:
            emit(RoundReplaced(number))
        elif record.error is None and not record.stopped:
            self._say(talk, record.as_message())
        return record

    def _held(self, talk: Conversation, emit: Emit) -> HeldWords | None:
        """None where what the model says will not be taken back."""
        own = talk.outcomes[talk.looked :]
        if not (talk.needs_evidence and self._answers_instead(talk)) or has_looked(own):
            return None
        return HeldWords(emit, may_cite=has_looked(talk.outcomes))

    def _answers_instead(self, talk: Conversation) -> bool:
        return bool(self.fallback) and can_investigate(talk.request.tools)

    async def _is_void(self, talk: Conversation, record: RoundRecord) -> bool:
        ends = not (record.error or record.stopped or record.passed_on or record.tool_calls)
        if not (ends and talk.needs_evidence) or record.provider in ("", NO_MODEL):
            return False
        if has_seen(record.notices):
            return False  # an image is nothing that could be cited
        if has_looked(talk.outcomes[talk.looked :]):
            return False
        # Milliseconds to a tenth of a second of work: not on the loop.
        asked = (record.text, question_of(talk.request), talk.evidence[: talk.looked])
        return not await asyncio.to_thread(may_answer, *asked)

    async def _tools(self, talk: Conversation, calls: Sequence[ToolCall], emit: Emit) -> bool:
        live: set[str] = set()
        done: dict[int, ToolOutcome] = {}
        first = len(talk.evidence) + 1
        untrusted = bool(talk.evidence)

        slots = asyncio.Semaphore(PARALLEL_CALLS)

        def step(
            call: ToolCall, number: int, spent: Spent
        ) -> tuple[str, Callable[[], Awaitable[JsonValue]]]:
            async def run() -> JsonValue:
                live.add(call.id)
                async with slots:
                    outcome = await self.execute(
                        call,
                        lambda event: emit(ToolProgress(event, number)),
                        untrusted_read=untrusted,
                        spent=spent,
                    )
                done[number] = outcome
                return outcome_to_json(outcome)

            return f"tool:{number}:{call.name[:64]}", run

        numbered = list(enumerate(calls, start=first))
        try:
            parts = [step(c, n, talk.spend(c)) for n, c in numbered]
            values = await self.journal.steps(parts)
        except Exception:
            # What people have seen is kept below the end, though the round as a whole is not.
            for number, call in numbered:
                if number in done:
                    self._answer(talk, call, done[number], number)
            raise
        outcomes = [
            without_raw(done[n]) if n in done else outcome_from_json(value)
            for (n, _), value in zip(numbered, values, strict=True)
        ]
        for (number, call), outcome in zip(numbered, outcomes, strict=True):
            if call.id not in live:
                emit(ToolProgress(CallEnded(outcome), number))
            self._answer(talk, call, outcome, number)
            if outcome.proposal_id:
                emit(ProposalRaised(ProposalId(outcome.proposal_id)))
        return any(_was_stopped(o) for o in outcomes)

    def _answer(
        self, talk: Conversation, call: ToolCall, outcome: ToolOutcome, number: int
    ) -> None:
        talk.outcomes.append(outcome)
        talk.evidence.append(Evidence.of(number, outcome))
        self._say(
            talk,
            Message(
                Role.TOOL,
                tool_result=ToolResult(
                    call_id=call.id,
                    name=call.name,
                    content=wrap_evidence(number, outcome.content),
                    is_error=not outcome.record.ok,
                ),
            ),
        )

    @staticmethod
    def _say(talk: Conversation, message: Message) -> None:
        talk.said.append(message)
        talk.request = replace(talk.request, messages=(*talk.request.messages, message))


def _in_own_words(record: RoundRecord, words: str, talk: Conversation) -> RoundRecord:
    """The round with `words` before its text, marked as Kortex's own.

    A round without tool calls reports our own records, so it makes no claim about a system.
    """
    text = words + record.text
    has_looked_at_nothing = not talk.outcomes and not record.tool_calls
    return replace(record, text=text, own_words=text.strip() if has_looked_at_nothing else words)


def _let_go_of_tools(talk: Conversation) -> None:
    if talk.request.require_tool:
        talk.request = replace(talk.request, require_tool=False)


def _preface(talk: Conversation) -> str:
    return preface(talk.rounds, datetime.now(UTC))


def _void(
    talk: Conversation, record: RoundRecord, emit: Emit, *, has_fallback: bool
) -> RoundRecord:
    """Take back the model's text if another provider answers; else mark it as unchecked."""
    if talk.outcomes and not has_fallback:
        return record  # what it read is there to be seen
    told = REPLACED if has_fallback else UNCHECKED
    emit(Notice(told))
    if has_fallback:
        talk.falls_back = True
        talk.rounds[:] = [replace(each, passed_on=True) for each in talk.rounds]
    return replace(record, passed_on=has_fallback, notices=(*record.notices, told))


def _was_stopped(outcome: ToolOutcome) -> bool:
    return outcome.record.error_code is not None and outcome.record.error_code.value == "cancelled"


def _replay_round(record: RoundRecord, emit: Emit) -> None:
    emit(RoundStarted(record.number, record.provider, record.model))
    for notice in record.notices:
        emit(Notice(notice))
    if record.text:
        emit(TextDelta(record.text))
