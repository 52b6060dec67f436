"""What of a vendor's native blocks a person could read, and what only the vendor can.

Blocks go back to their vendor unchanged (a changed one is refused) and to nobody else. Opaque parts
are ciphertext and signatures: whatever they look like by chance, there is no secret in them that is
not the vendor's own.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from adapters.llm.wire_json import as_object, dump_text, parse

# Claude's signed and redacted thinking; OpenAI's reasoning and the ids of its items; Converse's.
_OPAQUE: Final[Sequence[Sequence[str]]] = (
    ("signature",),
    ("data",),
    ("encrypted_content",),
    ("id",),
    ("call_id",),
    ("reasoningContent", "redactedContent"),
    ("reasoningContent", "reasoningText", "signature"),
)


def readable(block: str) -> str:
    """A block (JSON text) without its opaque parts; all of it where it is no JSON."""
    try:
        value = as_object(parse(block))
    except ValueError:
        return block
    for path in _OPAQUE:
        value = _without(value, path)
    return dump_text(value)


def _without(value: Mapping[str, object], path: Sequence[str]) -> Mapping[str, object]:
    name, *inner = path
    if name not in value:
        return value
    if inner:
        return {**value, name: _without(as_object(value[name]), inner)}
    # What is no text is not what a vendor writes there.
    return {key: each for key, each in value.items() if key != name or not isinstance(each, str)}
