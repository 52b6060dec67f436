"""The common part of chat/completions: messages and tools as sent, tool calls as received.

OpenAI names a call once and then sends pieces under its index. Other servers reuse index 0 for
every call, begin at 1, omit the index, repeat id and name with each piece, send a new id with each
piece, send the pieces under another index than the name, or send arguments as null or as an object.
So the key of a call is (index, id). A new id at a used index is a new call, unless it brings no
name, or the same name while the arguments are still incomplete. A piece without id and name at an
unused index belongs to the last call. So does a piece without a name at an index that only had an
empty entry.
"""

from collections.abc import Callable, Mapping, Sequence

from adapters.llm.decoding import OpenCall
from adapters.llm.messages import Picture, ToolCall, ToolSpec
from adapters.llm.transcript import AssistantTurn, ResultsTurn, Turn, UserTurn
from adapters.llm.wire_json import (
    arguments_object,
    arguments_text,
    as_int,
    as_object,
    as_text,
    is_complete,
)


def chat_tool(tool: ToolSpec) -> dict[str, object]:
    function = {
        "name": tool.name,
        "description": tool.description,
        "parameters": tool.input_schema,
    }
    return {"type": "function", "function": function}


def chat_messages(system: str, conversation: Sequence[Turn]) -> list[dict[str, object]]:
    """The conversation under roles system, user, assistant and tool."""
    out: list[dict[str, object]] = []
    if system.strip():
        out.append({"role": "system", "content": system})
    for turn in conversation:
        match turn:
            case UserTurn(text, images):
                out.append({"role": "user", "content": _said(text, images)})
            case ResultsTurn(results):
                out.extend(
                    {"role": "tool", "tool_call_id": result.call_id, "content": result.content}
                    for result in results
                )
            case AssistantTurn():
                out.append(_assistant(turn))
    return out


def _said(text: str, images: Sequence[Picture]) -> object:
    if not images:
        return text
    shown = [{"type": "image_url", "image_url": {"url": data_url(each)}} for each in images]
    return [{"type": "text", "text": text}, *shown]


def data_url(picture: Picture) -> str:
    return f"data:{picture.media};base64,{picture.data}"


def _assistant(turn: AssistantTurn) -> dict[str, object]:
    message: dict[str, object] = {"role": "assistant", "content": turn.text or None}
    if turn.calls:
        message["tool_calls"] = [_call(call) for call in turn.calls]
    return message


def _call(call: ToolCall) -> dict[str, object]:
    return {
        "id": call.id,
        "type": "function",
        "function": {"name": call.name, "arguments": call_arguments(call)},
    }


def call_arguments(call: ToolCall) -> str:
    """Chat templates of compatible servers parse the arguments, so they must be an object."""
    return call.arguments if arguments_object(call.arguments) else "{}"


class ToolDeltas:
    """The calls of one answer, in the order in which they began."""

    __slots__ = ("_at", "_begin", "_calls")

    def __init__(self, begin: Callable[[str, str], OpenCall]) -> None:
        self._calls: list[OpenCall] = []
        self._begin = begin
        self._at: dict[int, OpenCall] = {}

    @property
    def calls(self) -> Sequence[OpenCall]:
        """Each with the arguments that came at an index of their own, in the order of both."""
        empty = [call for call in self._calls if call.name and not call.parts]
        tails = [call for call in self._calls if call.parts and not call.name]
        for head, tail in zip(empty[-len(tails) :] if tails else (), tails, strict=False):
            head.add(tail.arguments)
            tail.parts.clear()
        return [call for call in self._calls if _holds_something(call)]

    def add(self, delta: Mapping[str, object]) -> None:
        function = as_object(delta.get("function"))
        call = self._call(
            as_int(delta.get("index")), as_text(delta.get("id")), as_text(function.get("name"))
        )
        arguments = function.get("arguments")
        if isinstance(arguments, dict):
            call.add(arguments_text(arguments))
        else:
            call.add(as_text(arguments))

    def _call(self, index: int | None, call_id: str, name: str) -> OpenCall:
        known = self._known(index, call_id, name)
        is_tail = not (call_id or name or index is None or index in self._at)
        if is_tail and sum(bool(each.name) and not each.parts for each in self._calls) > 1:
            known = None  # which of them, is known at the end
        if known is None or _is_another(known, call_id, name):
            known = self._begin(call_id, name)
            self._calls.append(known)
            self._at[len(self._calls) - 1 if index is None else index] = known
        known.id = known.id or call_id
        known.name = known.name or name
        return known

    def _known(self, index: int | None, call_id: str, name: str) -> OpenCall | None:
        last = self._calls[-1] if self._calls else None
        same = [call for call in self._calls if call_id and call.id == call_id]
        if index is None:
            return same[-1] if same else last
        if not name and index in self._at and not _holds_something(self._at[index]):
            return last
        if index in self._at or not same or (same[-1].parts and is_complete(same[-1].arguments)):
            return self._at.get(index, None if name else last)
        return same[-1]


def _holds_something(call: OpenCall) -> bool:
    return bool(call.name or call.parts)


def _is_another(known: OpenCall, call_id: str, name: str) -> bool:
    if call_id and known.id:
        is_whole = bool(known.parts) and is_complete(known.arguments)
        goes_on = not is_whole and (not name or (bool(known.parts) and name == known.name))
        return call_id != known.id and not goes_on
    return bool(name and known.name) and is_complete(known.arguments) and not call_id
