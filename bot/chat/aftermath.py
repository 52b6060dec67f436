"""What a turn leaves behind: its stored state, and what of it the next turn may read."""

from collections.abc import Sequence
from dataclasses import replace

from adapters.llm.messages import Message, Role
from bot.chat.loop import Conversation, stop_reason
from bot.domain.audit import AuditEvent, AuditKind
from bot.domain.claims import Claim
from bot.domain.session import Ask, TurnState
from bot.domain.turn_events import TurnEnd, TurnFinished


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


def state_of(end: TurnEnd) -> TurnState:
    """The stored state of a turn that ended so."""
    match end:
        case TurnEnd.ANSWERED | TurnEnd.DEPTH_EXCEEDED:
            return TurnState.ANSWERED
        case TurnEnd.STOPPED:
            return TurnState.STOPPED
        case TurnEnd.BUDGET | TurnEnd.FAILED:
            return TurnState.FAILED


def depth_finding(ask: Ask, session: str, final: TurnFinished) -> AuditEvent | None:
    """The row of a turn that reached `[llm] max_tool_depth` without a conclusion; None of others."""
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


def said_of(end: TurnEnd, talk: Conversation) -> Sequence[Message]:
    """What the next turn may read: no call without its result, and what was shown of a cut round."""
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
    """A round of tools that was not answered to its end is left out, but for its text."""
    answered = {m.tool_result.call_id for m in said if m.tool_result}
    at = next(
        (i for i, m in enumerate(said) if any(c.id not in answered for c in m.tool_calls)), None
    )
    return said if at is None else [*said[:at], replace(said[at], tool_calls=())]
