"""What of the earlier turns a request carries, and how a conversation is made to fit a window."""

from collections.abc import Sequence
from dataclasses import replace

import orjson

from adapters.llm.messages import CompleteRequest, Message, Role, ToolResult

# Bytes per token on logs and JSON measured between 2.4 and 3.4; the low end never overflows.
BYTES_PER_TOKEN = 2.4
_FRAMING_TOKENS = 1024  # what a vendor adds of its own: roles, separators, how tools are called
FOLDED = (
    '{"folded":true,"note":"this earlier result was folded to fit; call the tool again if needed"}'
)


def estimate_tokens(messages: Sequence[Message], system: str = "") -> int:
    """An upper estimate, without a tokenizer."""
    size = len(system.encode()) + sum(_size(m) for m in messages)
    return round(size / BYTES_PER_TOKEN)


def _size(message: Message) -> int:
    result = message.tool_result
    calls = sum(len(c.arguments) + len(c.name) + 40 for c in message.tool_calls)
    blocks = sum(len(b) for b in message.provider_blocks)
    return len(message.text.encode()) + calls + blocks + (len(result.content) if result else 0) + 20


def tool_bytes(request: CompleteRequest) -> int:
    """What the tools' descriptions and schemas take."""
    return sum(
        len(t.name) + len(t.description.encode()) + len(orjson.dumps(t.input_schema))
        for t in request.tools
    )


def room_tokens(window_tokens: int, request: CompleteRequest) -> int:
    """What is left of a window for system text and messages, with room for the answer.

    At least half: a window too small for what is configured is the model's to refuse.
    """
    tools = round(tool_bytes(request) / BYTES_PER_TOKEN)
    return max(window_tokens // 2, window_tokens - request.max_tokens - tools - _FRAMING_TOKENS)


def fit(
    messages: Sequence[Message], system: str, max_tokens: int
) -> tuple[tuple[Message, ...], str | None]:
    """Fold the oldest tool results, then drop the oldest turns, until it fits.

    The last turn is never touched. Returns the messages and a note for people when anything was
    folded. A pair of call and result stays together, so the conversation remains well formed.
    """
    kept = list(messages)
    budget = max_tokens - round(len(system.encode()) / BYTES_PER_TOKEN)
    folded = 0
    for index, message in enumerate(kept):
        if estimate_tokens(kept) <= budget:
            break
        result = message.tool_result
        if result is not None and len(result.content) > len(FOLDED):
            kept[index] = replace(
                message,
                tool_result=ToolResult(result.call_id, result.name, FOLDED, result.is_error),
            )
            folded += 1
    dropped = 0
    while estimate_tokens(kept) > budget and (cut := _second_turn(kept)) is not None:
        kept = kept[cut:]
        dropped += 1
    return tuple(kept), _note(folded, dropped)


def _second_turn(messages: Sequence[Message]) -> int | None:
    starts = [i for i, m in enumerate(messages) if m.role is Role.USER]
    return starts[1] if len(starts) > 1 else None


def _note(folded: int, dropped: int) -> str | None:
    parts = []
    if folded:
        parts.append(f"{folded} earlier tool results were folded")
    if dropped:
        parts.append(f"the oldest {dropped} turns were left out")
    return f"To fit the model's window, {' and '.join(parts)}." if parts else None
