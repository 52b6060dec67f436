"""A conversation's log, folded into its questions and answers."""

from collections.abc import Sequence
from typing import assert_never

from pydantic import JsonValue

from bot.domain.chats import ChatEvent
from bot.web.api import models


def messages_of(events: Sequence[tuple[ChatEvent, JsonValue]], last: int) -> models.Messages:
    """Oldest first. A question without a stored beginning is left out."""
    found: dict[str, models.Message] = {}
    texts: dict[str, list[str]] = {}  # joined later: an answer may have thousands of pieces
    notices: list[str] = []
    for event, data in events:
        told = models.EVENTS[event.kind].model_validate(data)
        if isinstance(told, models.QuestionEvent):
            texts[told.message_id] = []
            found[told.message_id] = models.Message(
                id=told.message_id,
                asked_at=event.at,
                asker=told.asker,
                question=told.text,
                text="",
                tools=[],
                notices=[],
                proposals=[],
                claims=[],
                done=None,
            )
        elif isinstance(told, models.NoticeEvent) and not told.message_id:
            notices.append(told.text)
        elif (message := found.get(told.message_id)) is not None:
            _gather(texts[told.message_id], told)
            if changes := _changes(message, told):
                found[told.message_id] = message.model_copy(update=changes)
    whole = [each.model_copy(update={"text": "".join(texts[ts])}) for ts, each in found.items()]
    return models.Messages(messages=whole, notices=notices, last_event_id=last)


def _gather(pieces: list[str], told: models.Event) -> None:
    if isinstance(told, models.ResetEvent) or (isinstance(told, models.DoneEvent) and told.text):
        pieces.clear()
    if isinstance(told, models.TextEvent | models.ResetEvent | models.DoneEvent):
        pieces.append(told.text)


def _changes(message: models.Message, told: models.Event) -> dict[str, object]:
    match told:
        case models.ToolEndEvent():
            others = [each for each in message.tools if each.tool_call_id != told.tool_call_id]
            return {"tools": [*others, told]}
        case models.NoticeEvent():
            return {"notices": [*message.notices, told.text]}
        case models.ProposalEvent():
            return {"proposals": list(dict.fromkeys([*message.proposals, told.proposal_id]))}
        case models.ClaimsEvent():
            return {"claims": told.claims}
        case models.DoneEvent():
            return {"done": told}
        case (
            models.ToolStartEvent()
            | models.QuestionEvent()
            | models.TextEvent()
            | models.ResetEvent()
        ):
            return {}
        case _:
            assert_never(told)
