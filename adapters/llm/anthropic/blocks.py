"""One content block of a Messages API answer while it is being received."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from adapters.llm.wire_json import arguments_object, as_object, as_text, dump_text


@dataclass(slots=True, init=False, eq=False)
class Block:
    """A block begun with `content_block_start`; `parts` are its text, arguments or thinking."""

    kind: str
    call_id: str
    name: str
    closed: bool
    parts: list[str] = field(default_factory=list)
    signature: list[str] = field(default_factory=list)
    _start: Mapping[str, object] = field(default_factory=dict)
    _has_input: bool = False

    def __init__(self, start: Mapping[str, object]) -> None:
        self.kind = as_text(start.get("type"))
        self.call_id = as_text(start.get("id"))
        self.name = as_text(start.get("name"))
        self.closed = False
        given = as_object(start.get("input"))
        first = as_text(start.get("thinking" if self.kind == "thinking" else "text"))
        self.parts = [dump_text(given)] if given else [first] if first else []
        self.signature = [as_text(start.get("signature"))]
        self._start = start
        self._has_input = bool(given)

    def add_arguments(self, piece: str) -> None:
        """A piece of the arguments; pieces replace those that came whole with the start."""
        if piece and self._has_input:
            self.parts.clear()
            self._has_input = False
        self.parts.append(piece)

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
                arguments = arguments_object(whole)
                return dump_text(
                    {"type": self.kind, "id": self.call_id, "name": self.name, "input": arguments}
                )
            case "text":
                return dump_text({"type": self.kind, "text": whole})
            case _:
                return dump_text(self._start)
