"""Messages and evidence as rows, and back."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import sqlalchemy as sa
from pydantic import TypeAdapter

from adapters.llm.messages import Message
from bot.domain.ids import TurnId
from bot.domain.turn_events import Evidence
from bot.store import json_text

_MESSAGE = TypeAdapter(Message)
_BLOCKS = TypeAdapter(tuple[str, ...])


def of_messages(turn: TurnId, messages: Sequence[Message], first: int) -> list[dict[str, Any]]:
    """Rows numbered from `first`."""
    return [
        {
            "turn_id": turn,
            "n": n,
            "body": json_text.dumps(replace(message, provider_blocks=())),
            "blocks": json_text.dumps(message.provider_blocks) if message.provider_blocks else "",
        }
        for n, message in enumerate(messages, first)
    ]


def to_message(body: str, blocks: str = "") -> Message:
    """The message in a row's JSON; the release before kept the blocks in `body`."""
    message = _MESSAGE.validate_json(body)
    return replace(message, provider_blocks=_BLOCKS.validate_json(blocks)) if blocks else message


def of_evidence(turn: TurnId, evidence: Evidence) -> dict[str, Any]:
    """The row of one numbered result."""
    return {
        "turn_id": turn,
        "number": evidence.number,
        "tool_call_id": evidence.tool_call_id,
        "tool": evidence.tool,
        "summary": evidence.summary,
        "ok": evidence.ok,
        "latency_ms": evidence.latency_ms,
        "truncated": evidence.truncated,
        "content": evidence.content,
    }


def to_evidence(row: sa.Row[Any]) -> Evidence:
    """The evidence in a row."""
    return Evidence(
        number=row.number,
        tool_call_id=row.tool_call_id,
        tool=row.tool,
        summary=row.summary,
        ok=row.ok,
        latency_ms=row.latency_ms,
        truncated=row.truncated,
        content=row.content,
    )
