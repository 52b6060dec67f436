"""Events of a turn as they go into a conversation's log, and so over the wire: the one place that maps them."""

from collections.abc import Sequence

from bot.domain.change import named
from bot.domain.chats import ChatEventKind, NewChatEvent
from bot.domain.findings import findings_of
from bot.domain.ids import TurnId
from bot.domain.phone_screen import screen_of
from bot.domain.proposal import Proposal, status
from bot.domain.turn_events import Evidence, Notice, ToolProgress, TurnFinished
from bot.store.columns import json_text
from bot.web.api import models
from tools.records import CallEnded, CallEvent, CallSlow, CallStarted

_QUESTION_CHARS = 200  # of a conversation in a list
SLOW = "{tool} is taking longer than usual"


def message_of(turn: TurnId) -> str:
    """The question's number in its session, of `Ask.turn_id`."""
    return turn.rpartition(":")[2]


def kept(
    kind: ChatEventKind, event: models.Event, key: str | None = None, to: str = ""
) -> NewChatEvent:
    """An event of the log, of the message it names."""
    data = json_text(event.model_dump(mode="json"))
    return NewChatEvent(kind, data, event.message_id, key, to)


def question(message: str, text: str, asker: str) -> NewChatEvent:
    told = models.QuestionEvent(message_id=message, text=text, asker=asker)
    return kept(ChatEventKind.QUESTION, told)


def first_question(data: str) -> str:
    """The beginning of a question event's text, on one line; empty without one."""
    asked = models.QuestionEvent.model_validate_json(data).text if data else ""
    return " ".join(asked.split())[:_QUESTION_CHARS]


def text(message: str, piece: str) -> NewChatEvent:
    return kept(ChatEventKind.TEXT, models.TextEvent(message_id=message, text=piece))


def reset(message: str, whole: str) -> NewChatEvent:
    return kept(ChatEventKind.RESET, models.ResetEvent(message_id=message, text=whole))


def notice(message: str, words: str, key: str | None = None, to: str = "") -> NewChatEvent:
    """A notice; `to` is its only reader."""
    told = models.NoticeEvent(message_id=message, text=words)
    return kept(ChatEventKind.NOTICE, told, key, to)


def progress(message: str, event: ToolProgress | Notice) -> NewChatEvent:
    if isinstance(event, Notice):
        return notice(message, event.text)
    return _of_call(message, event.event, event.evidence)


def _of_call(message: str, event: CallEvent, evidence: int | None) -> NewChatEvent:
    match event:
        case CallStarted():
            started = models.ToolStartEvent(
                message_id=message,
                tool_call_id=event.tool_call_id,
                tool=event.name,
                arguments=event.arguments,
            )
            return kept(ChatEventKind.TOOL_START, started)
        case CallSlow():
            return notice(message, SLOW.format(tool=event.name))
        case CallEnded():
            return kept(ChatEventKind.TOOL_END, _ended(message, event, evidence))


def _ended(message: str, event: CallEnded, evidence: int | None) -> models.ToolEndEvent:
    record = event.outcome.record
    return models.ToolEndEvent(
        message_id=message,
        tool_call_id=record.tool_call_id,
        tool=record.name,
        ok=record.ok,
        evidence=f"E{evidence}" if evidence is not None else None,
        summary=event.outcome.summary,
        latency_ms=record.latency_ms,
        truncated=record.truncated,
        error_code=record.error_code.value if record.error_code else None,
        message=record.message,
    )


def proposed(row: Proposal) -> NewChatEvent:
    """The state of a proposal; written once for each state and vote."""
    told = models.ProposalEvent(
        message_id=message_of(row.turn_id),
        proposal_id=row.id,
        state=row.state.value,
        status=status(row),
        effect=named(row),
        action=row.action,
        product=row.product,
    )
    return kept(ChatEventKind.PROPOSAL, told, f"{row.id}:{row.state.value}:{len(row.votes)}")


def ending(message: str, final: TurnFinished, products: Sequence[str]) -> Sequence[NewChatEvent]:
    """The claims and the end of an answer; written once. `products` are the channel's."""
    claims = models.ClaimsEvent(
        message_id=message,
        claims=[
            models.Claim(
                text=claim.text,
                evidence=[f"E{number}" for number in claim.evidence],
                state=claim.state.value,
                note=claim.note,
            )
            for claim in final.claims
        ],
    )
    return (
        kept(ChatEventKind.CLAIMS, claims, f"claims:{message}"),
        kept(ChatEventKind.DONE, _done(message, final, products), f"done:{message}"),
    )


def _done(message: str, final: TurnFinished, products: Sequence[str]) -> models.DoneEvent:
    findings, usage = findings_of(final, products).as_json(), final.usage
    suspects, screen = findings["suspects"], screen_of(final)
    return models.DoneEvent(
        message_id=message,
        end=final.end.value,
        text=final.text,
        provider=final.provider,
        model=final.model,
        rounds=final.rounds,
        usage=models.Usage(
            input_tokens=usage.input,
            input_uncached_tokens=usage.input_uncached,
            cache_read_tokens=usage.cache_read,
            cache_write_tokens=usage.cache_write,
            output_tokens=usage.output,
        ),
        cost_usd_micros=final.cost_usd_micros,
        notices=[*final.notices, *filter(None, (final.changes,))],
        evidence=[evidence_line(each) for each in final.evidence],
        verdict=str(findings["verdict"]),
        suspects=suspects if isinstance(suspects, list) else [],
        coverage=findings["coverage"],
        screen=screen.text if screen.more else "",
        more=screen.more,
    )


def evidence_line(found: Evidence) -> models.EvidenceLine:
    """Without its content, which is asked for by number."""
    return models.EvidenceLine(
        number=f"E{found.number}",
        tool_call_id=found.tool_call_id,
        tool=found.tool,
        summary=found.summary,
        ok=found.ok,
        latency_ms=found.latency_ms,
        truncated=found.truncated,
    )
