"""The final event of a turn, its stored state, and the messages for later turns."""

import asyncio
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import structlog

from adapters.llm.messages import CompleteRequest, Message, Role
from bot.chat.attachments import unread
from bot.chat.conversation import Conversation, stop_reason
from bot.chat.window import newest_note
from bot.domain.audit import AuditEvent, AuditKind
from bot.domain.claims import Claim
from bot.domain.session import Ask, Summary, TurnState
from bot.domain.turn_events import TurnEnd, TurnFinished
from bot.ports.failures import StepAbandoned, StorageUnavailable
from tools.redactor import RedactionFailed, Redactor

log = structlog.get_logger(__name__)
NOTHING_STARTED: Final = (
    "the database is not available, so nothing was started; ask again in a minute"
)
CUT_SHORT: Final = "the database is not available, so the answer ends here; ask again in a minute"
NOT_KEPT: Final = (
    "the database is not available, so this answer was not stored: later questions in this "
    "thread will not see it"
)
LOST: Final = "the answer is lost, because its process ended"
_GAVE_UP: Final = (
    "Kortex crashed repeatedly at the same step ({step}), so the answer ends here; "
    "its log names the cause as {reference}"
)
_NOT_SHOWN: Final = (
    "Kortex crashed repeatedly while it showed this answer, so charts and evidence are left out; "
    "its log names the cause as {reference}"
)
_BUG: Final = "internal error; an operator finds it in the log as {reference}"


@dataclass(frozen=True, slots=True)
class Investigated:
    """A turn's end, what later turns read of it, and a summary that is new."""

    final: TurnFinished
    said: Sequence[Message]
    summary: Summary | None = None


def finished(
    end: TurnEnd, talk: Conversation, text: str, notices: Sequence[str], claims: Sequence[Claim]
) -> TurnFinished:
    """The one final event, from what the loop gathered."""
    answered = next((r for r in reversed(talk.rounds) if r.provider), None)
    return TurnFinished(
        end=end,
        text=text,
        stop_reason=stop_reason(talk),
        provider=answered.provider if answered else "",
        model=answered.model if answered else "",
        rounds=len(talk.rounds),
        usage=talk.usage,
        cost_usd_micros=talk.cost_usd_micros,
        outcomes=tuple(talk.outcomes),
        evidence=tuple(talk.evidence),
        notices=tuple(dict.fromkeys(notices)),
        claims=tuple(claims),
        proposal_ids=talk.proposal_ids,
    )


def finished_without_round(end: TurnEnd, text: str, notices: Sequence[str] = ()) -> TurnFinished:
    """The end of a turn in which no provider was asked."""
    return finished(end, _nothing_asked(), text, notices, ())


def refused_turn(text: str) -> Investigated:
    """The end of a turn that was refused before its first round."""
    return Investigated(finished_without_round(TurnEnd.ANSWERED, text), ())


def lost() -> TurnFinished:
    """The end of a turn that no process can resume."""
    return finished_without_round(TurnEnd.FAILED, "", [LOST])


def _nothing_asked() -> Conversation:
    return Conversation(CompleteRequest("", ()))


def state_of(end: TurnEnd) -> TurnState:
    match end:
        case TurnEnd.ANSWERED | TurnEnd.DEPTH_EXCEEDED:
            return TurnState.ANSWERED
        case TurnEnd.STOPPED:
            return TurnState.STOPPED
        case TurnEnd.BUDGET | TurnEnd.FAILED:
            return TurnState.FAILED


def depth_finding(ask: Ask, session: str, final: TurnFinished) -> AuditEvent | None:
    """The audit row of a turn that reached `[llm] max_tool_depth`; else None."""
    if final.end is not TurnEnd.DEPTH_EXCEEDED:
        return None
    return AuditEvent(
        AuditKind.TOOL_DEPTH_EXCEEDED,
        ask.asker.user,
        {
            "turn": ask.turn_id,
            "rounds": final.rounds,
            "provider": final.provider,
            "model": final.model,
            "results": len(final.evidence),
        },
        session,
        key=f"{ask.turn_id}:depth",
    )


def history_of(end: TurnEnd, talk: Conversation) -> Sequence[Message]:
    """The messages for the next turn: no call without its result; the shown part of a cut round."""
    said = list(talk.said)
    last = talk.rounds[-1] if talk.rounds else None
    if end is TurnEnd.DEPTH_EXCEEDED and said:
        said[-1] = replace(said[-1], tool_calls=())
    elif end in (TurnEnd.STOPPED, TurnEnd.FAILED):
        said = list(_without_open_calls(said))
    if last is not None and last.text and (last.stopped or last.error):
        said.append(Message(Role.ASSISTANT, text=last.text + "\n(cut off here)"))
    return [m for m in said if m.text or m.tool_calls or m.tool_result]


def _without_open_calls(said: Sequence[Message]) -> Sequence[Message]:
    answered = {m.tool_result.call_id for m in said if m.tool_result}
    at = next(
        (i for i, m in enumerate(said) if any(c.id not in answered for c in m.tool_calls)), None
    )
    return said if at is None else [*said[:at], replace(said[at], tool_calls=())]


def broken(
    ask: Ask, error: Exception, talk: Conversation | None, redactor: Redactor
) -> TurnFinished:
    """The end, which is logged; text that cannot be redacted is left out."""
    gathered = talk or _nothing_asked()
    notice = _notice(ask, error, gathered)
    try:
        text: str = redactor.redact(gathered.text)
    except RedactionFailed:
        text = ""
    return finished(TurnEnd.FAILED, gathered, text, [notice], ())


def without_extras(ask: Ask, final: TurnFinished, error: StepAbandoned) -> TurnFinished:
    """The same end without charts, evidence and marks, for an answer that could not be shown whole."""
    reference = _reference(ask)
    log.error("answer.abandoned", turn=ask.turn_id, reference=reference, step=str(error))
    notices = (*final.notices, _NOT_SHOWN.format(reference=reference))
    return replace(final, outcomes=(), evidence=(), claims=(), notices=notices)


def not_kept(ask: Ask, error: Exception) -> str:
    """The notice on a whole answer that could not be stored."""
    if isinstance(error, StorageUnavailable):
        return NOT_KEPT
    return _notice(ask, error, _nothing_asked())


def _reference(ask: Ask) -> str:
    return hashlib.sha256(ask.turn_id.encode()).hexdigest()[:8]


def _notice(ask: Ask, error: Exception, gathered: Conversation) -> str:
    if isinstance(error, StorageUnavailable):
        log.warning("turn.not_stored", turn=ask.turn_id, error=str(error))
        return CUT_SHORT if gathered.rounds else NOTHING_STARTED
    reference = _reference(ask)
    if isinstance(error, StepAbandoned):
        log.error("turn.abandoned", turn=ask.turn_id, reference=reference, step=str(error))
        return _GAVE_UP.format(step=error, reference=reference)
    log.error("turn.failed", turn=ask.turn_id, reference=reference, exc_info=error)
    return _BUG.format(reference=reference)


async def final_of(
    ask: Ask, end: TurnEnd, talk: Conversation, before: Sequence[str], redactor: Redactor
) -> TurnFinished:
    """From what the loop gathered; `before` was to be known already. Raises RedactionFailed."""
    text = redactor.redact(talk.text)
    rounds = (*talk.aside, *talk.rounds)
    notices = newest_note([*before, *(n for r in rounds for n in r.notices)])
    notices += unread(ask.files, talk.evidence, talk.request)
    if end is TurnEnd.FAILED:
        notices.append(talk.rounds[-1].error_message)
    asked = {o.record.tool_call_id: o.record.arguments or {} for o in talk.outcomes}

    # What people said in the thread is theirs, and may be repeated as such.
    # Milliseconds to a tenth of a second of work: not on the loop.
    def check() -> tuple[str, Sequence[Claim]]:
        from bot.chat.claims.answer import checked  # 1 MB that waits for the first answer

        people = talk.people_said or ask.text
        return checked(text, talk.evidence, asked, people, talk.own_words)

    marked, claims = await asyncio.to_thread(check)
    before = _marked_beginning(marked, redactor.redact(talk.narration), text)
    return replace(finished(end, talk, marked, notices, claims), narration=before)


def _marked_beginning(marked: str, narration: str, text: str) -> str:
    """The same paragraphs with their marks, which never stand between two paragraphs."""
    if not narration or not text.startswith(narration):
        return ""
    pieces = marked.split("\n\n")
    count = narration.count("\n\n")
    return "".join(f"{each}\n\n" for each in pieces[:count]) if count < len(pieces) else ""
