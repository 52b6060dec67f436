"""A conversation made fit for any wire: every call answered once, right after it, under a valid id.

History may have been folded, interrupted, or begun with another provider; vendors answer 400 to
any of: a call without its result, a result without its call, an id they do not like, an id used
twice, a conversation that begins with the assistant.
"""

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from adapters.llm.messages import Message, Picture, Role, ToolCall, ToolResult
from adapters.llm.wire_json import dump_text

# Anthropic takes [A-Za-z0-9_-]; OpenAI at most 40 characters.
_WIRE_ID: Final = re.compile(r"[A-Za-z0-9_-]{1,40}")
_ID_CHARS: Final = 32
# What all vendors accept in a tool's name; models also invent other characters.
_NOT_OF_A_NAME: Final = re.compile(r"[^A-Za-z0-9_-]")
_NAME_CHARS: Final = 64
_LOST: Final = dump_text({"error": "no result was recorded for this call"})
EARLIER_OMITTED: Final = "(the beginning of this conversation is omitted)"


@dataclass(frozen=True, slots=True)
class UserTurn:
    """Something a person said; never blank."""

    text: str
    images: tuple[Picture, ...] = ()


@dataclass(frozen=True, slots=True)
class AssistantTurn:
    """Something a model said and the calls it made; never both empty."""

    text: str
    calls: tuple[ToolCall, ...]
    provider: str
    provider_blocks: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ResultsTurn:
    """The answers to all calls of the assistant turn before it, in call order."""

    results: tuple[ToolResult, ...]


Turn = UserTurn | AssistantTurn | ResultsTurn


def turns(messages: Sequence[Message]) -> list[Turn]:
    """The conversation with the guarantees of this module; a prefix stays equal as it grows."""
    out: list[Turn] = []
    used: set[str] = set()
    for position, message in enumerate(messages):
        match message.role:
            case Role.USER:
                said = [text for text in (message.text, message.told) if text.strip()]
                if said:
                    out.append(UserTurn("\n\n".join(said), message.images))
            case Role.ASSISTANT:
                out.extend(_assistant(message, _results_after(messages, position), used))
            case Role.TOOL:
                pass  # taken with its assistant message; without one it answers nothing
    if out and not isinstance(out[0], UserTurn):
        out.insert(0, UserTurn(EARLIER_OMITTED))
    return out


def _results_after(messages: Sequence[Message], position: int) -> Mapping[str, ToolResult]:
    found: dict[str, ToolResult] = {}
    for message in messages[position + 1 :]:
        if message.role is Role.ASSISTANT:
            break
        if message.tool_result is not None:
            found.setdefault(message.tool_result.call_id, message.tool_result)
    return found


def _assistant(
    message: Message, results: Mapping[str, ToolResult], used: set[str]
) -> Iterable[Turn]:
    text = message.text if message.text.strip() else ""
    calls: list[ToolCall] = []
    answers: list[ToolResult] = []
    for call in message.tool_calls:
        wire_id = _wire_id(call.id, used)
        name = _wire_name(call.name)
        answer = results.get(call.id)
        if wire_id == call.id and name == call.name and answer is not None and answer.name == name:
            calls.append(call)  # as nearly all are, and their answers with them
            answers.append(answer)
            continue
        answer = answer or ToolResult(call.id, call.name, _LOST, is_error=True)
        calls.append(replace(call, id=wire_id, name=name))
        answers.append(replace(answer, call_id=wire_id, name=name))
    if text or calls:
        yield AssistantTurn(text, tuple(calls), message.provider, message.provider_blocks)
    if answers:
        yield ResultsTurn(tuple(answers))


def _wire_name(name: str) -> str:
    return _NOT_OF_A_NAME.sub("_", name)[:_NAME_CHARS] or "unknown"


def _wire_id(call_id: str, used: set[str]) -> str:
    """The id itself where every vendor takes it and it is new, else one derived from it."""
    wire_id = call_id
    attempt = 0
    while not _WIRE_ID.fullmatch(wire_id) or wire_id in used:
        seed = f"{call_id}\0{attempt}".encode()
        wire_id = f"call_{hashlib.sha256(seed).hexdigest()[:_ID_CHARS]}"
        attempt += 1
    used.add(wire_id)
    return wire_id
