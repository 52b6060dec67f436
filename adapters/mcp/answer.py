"""What a call answered, as data. Everything in it is the server's word: untrusted text.

Pictures, sounds and links are named, never followed or shown.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import orjson
from pydantic import JsonValue

from tools.contract import ToolOutput
from tools.errors import UpstreamFailed
from tools.output import NotStrictJson, clean_value

_MAX_TEXT_CHARS: Final = 16_000
_MAX_WORDS: Final = 300


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer. `left_out` holds the kind of each part that is not text."""

    texts: tuple[str, ...] = ()
    structured: JsonValue = None
    left_out: tuple[str, ...] = ()
    failed: bool = False


class McpOutput(ToolOutput):
    """`data` is JSON, structured or in the text; other text comes as `text`."""

    data: JsonValue = None
    text: str | None = None
    note: str | None = None


def output_of(answer: Answer) -> McpOutput:
    """Raises UpstreamFailed for an answer that says it is a failure, or cannot be used."""
    text = "\n".join(answer.texts).strip()
    if answer.failed:
        raise UpstreamFailed(
            " ".join(text.split())[:_MAX_WORDS] or "failed without an error message"
        )
    notes = [f"{number} {kind} left out" for kind, number in _counted(answer.left_out)]
    try:
        data = clean_value(answer.structured)
        if data is None:
            data = _json(text)
    except NotStrictJson as error:
        raise UpstreamFailed(f"the answer cannot be used: {error}") from error
    if data is not None:
        return McpOutput(data=data, note="; ".join(notes) or None)
    if len(text) > _MAX_TEXT_CHARS:
        notes.insert(0, f"cut: {len(text)} characters of text")
    return McpOutput(text=text[:_MAX_TEXT_CHARS] or None, note="; ".join(notes) or None)


def _json(text: str) -> JsonValue:
    if not text.startswith(("{", "[")):
        return None
    try:
        return clean_value(orjson.loads(text))
    except orjson.JSONDecodeError:
        return None


def _counted(kinds: Iterable[str]) -> list[tuple[str, int]]:
    return sorted(Counter(kinds).items())
