"""What a delivery says of itself, before anybody judges what it asks for."""

from collections.abc import Mapping
from typing import TypeVar

import structlog
from pydantic import BaseModel, JsonValue, ValidationError
from slack_bolt.async_app import AsyncBoltRequest

_log = structlog.stdlib.get_logger(__name__)
_P = TypeVar("_P", bound=BaseModel)
_MESSAGES = frozenset({"app_mention", "message"})


def parsed(model: type[_P], body: Mapping[str, JsonValue]) -> _P | None:
    """The payload, or None for one we cannot read: a redelivery would not help."""
    try:
        return model.model_validate(body)
    except ValidationError as error:
        where = [".".join(map(str, each["loc"])) for each in error.errors(include_input=False)]
        _log.warning("slack.payload.unreadable", model=model.__name__, fields=where)
        return None


def retry_number(request: AsyncBoltRequest) -> int:
    """Slack's count of deliveries before this one; 0 when it names none."""
    found = request.headers.get("x-slack-retry-num", ["0"])[0]
    return int(found) if found.isascii() and found.isdigit() and len(found) < 4 else 0


def is_message(body: Mapping[str, object]) -> bool:
    """Whether it is an event that tells what somebody wrote."""
    event = body.get("event") if body.get("type") == "event_callback" else None
    return isinstance(event, Mapping) and event.get("type") in _MESSAGES
