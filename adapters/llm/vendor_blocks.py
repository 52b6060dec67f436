"""The readable parts of a vendor's native blocks, and the opaque ones.

Blocks go back unchanged to their own vendor only (it refuses a changed one). Opaque parts are
ciphertext and signatures: any secret in them is the vendor's own.
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
    # The vendor writes only text there.
    return {key: each for key, each in value.items() if key != name or not isinstance(each, str)}
