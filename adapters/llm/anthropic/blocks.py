"""One content block of a Messages API answer while it is being received."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from adapters.llm.decoding import OpenCall
from adapters.llm.wire_json import arguments_object, arguments_text, as_object, as_text, dump_text


@dataclass(slots=True, init=False, eq=False)
class Block:
    """A block begun with `content_block_start`; `parts` are its text or thinking.

    `call` of a tool's block is the call.
    """

    kind: str
    call: OpenCall
    closed: bool
    parts: list[str] = field(default_factory=list)
    signature: list[str] = field(default_factory=list)
    _start: Mapping[str, object] = field(default_factory=dict)
    _has_input: bool = False

    def __init__(self, start: Mapping[str, object]) -> None:
        self.kind = as_text(start.get("type"))
        self.call = OpenCall(as_text(start.get("id")), as_text(start.get("name")))
        self.closed = False
        given = as_object(start.get("input"))
        if given:
            self.call.add(arguments_text(given))
        first = as_text(start.get("thinking" if self.kind == "thinking" else "text"))
        self.parts = [first] if first else []
        self.signature = [as_text(start.get("signature"))]
        self._start = start
        self._has_input = bool(given)

    def add_arguments(self, piece: str) -> None:
        """A piece of the arguments; pieces replace those that came whole with the start."""
        if piece and self._has_input:
            self.call = OpenCall(self.call.id, self.call.name)
            self._has_input = False
        self.call.add(piece)

    @property
    def chars(self) -> int:
        """How much it began with."""
        return len(dump_text(self._start))

    @property
    def is_thinking(self) -> bool:
        """Whether the block is reasoning, readable or not."""
        return self.kind in {"thinking", "redacted_thinking"}

    def native(self) -> str:
        """The block as JSON text, as the API wants it back."""
        whole = "".join(self.parts)
        match self.kind:
            case "thinking":
                signature = "".join(self.signature)
                return dump_text({"type": self.kind, "thinking": whole, "signature": signature})
            case "tool_use":
                call = self.call
                arguments = arguments_object(call.arguments)
                return dump_text(
                    {"type": self.kind, "id": call.id, "name": call.name, "input": arguments}
                )
            case "text":
                return dump_text({"type": self.kind, "text": whole})
            case _:
                return dump_text(self._start)
