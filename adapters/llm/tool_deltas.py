"""Assembling tool calls from chat/completions deltas, as many servers send them.

OpenAI names a call once and then sends pieces under its index. Others reuse index 0 for every
call, begin at 1, omit the index, repeat id and name with each piece, or send arguments as null or
as an object. So a call is known by (index, id), and a new id at a used index is a new call.
"""

from collections.abc import Callable, Mapping

from adapters.llm.decoding import OpenCall
from adapters.llm.wire_json import arguments_text, as_int, as_object, as_text, is_complete


class ToolDeltas:
    """The calls of one answer, in the order in which they began."""

    __slots__ = ("_at", "_begin", "calls")

    def __init__(self, begin: Callable[[str, str], OpenCall]) -> None:
        self.calls: list[OpenCall] = []
        self._begin = begin
        self._at: dict[int, OpenCall] = {}

    def add(self, delta: Mapping[str, object]) -> None:
        """One entry of `delta.tool_calls`."""
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
        known = self._known(index, call_id)
        if known is None or _is_another(known, call_id, name):
            known = self._begin(call_id, name)
            self.calls.append(known)
            self._at[len(self.calls) - 1 if index is None else index] = known
        known.id = known.id or call_id
        known.name = known.name or name
        return known

    def _known(self, index: int | None, call_id: str) -> OpenCall | None:
        if index is not None:
            return self._at.get(index)
        same = [call for call in self.calls if call.id == call_id]
        return same[-1] if call_id and same else self.calls[-1] if self.calls else None


def _is_another(known: OpenCall, call_id: str, name: str) -> bool:
    """Whether a delta at a used index begins a new call."""
    if call_id and known.id:
        return call_id != known.id
    return bool(name and known.name) and is_complete(known.arguments) and not call_id
