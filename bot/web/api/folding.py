"""A conversation's log, folded into its questions and answers."""

from collections.abc import Sequence
from typing import assert_never

from pydantic import JsonValue

from bot.domain.chats import ChatEvent
from bot.web.api import models


def messages_of(events: Sequence[tuple[ChatEvent, JsonValue]], last: int) -> models.Messages:
    """Oldest first. A question whose beginning is not kept any more is left out."""
    found: dict[str, models.Message] = {}
    notices: list[str] = []
    for event, data in events:
        told = models.EVENTS[event.kind].model_validate(data)
        if isinstance(told, models.QuestionEvent):
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
            found[told.message_id] = message.model_copy(update=_changes(message, told))
    return models.Messages(messages=list(found.values()), notices=notices, last_event_id=last)


def _changes(message: models.Message, told: models.Event) -> dict[str, object]:
    match told:
        case models.TextEvent():
            return {"text": message.text + told.text}
        case models.ResetEvent():
            return {"text": told.text}
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
            return {"text": told.text or message.text, "done": told}
        case models.ToolStartEvent() | models.QuestionEvent():
            return {}
        case _:
            assert_never(told)
