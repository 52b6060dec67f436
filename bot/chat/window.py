"""What a request takes of a model's window, and how its messages are made to fit it."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Final, Generic, TypeVar

import orjson

from adapters.llm.messages import CompleteRequest, Message, Role, ToolResult, ToolSpec

K = TypeVar("K")
V = TypeVar("V")

MOST = 64


class IdentityCache(Generic[K, V]):
    """For immutable inputs, compared by `is` and not by value."""

    __slots__ = ("_made", "_make")

    def __init__(self, make: Callable[[K], V]) -> None:
        self._make = make
        # Each is kept with its result, so that no other value gets its identity.
        self._made: dict[int, tuple[K, V]] = {}

    def __call__(self, value: K) -> V:
        kept = self._made.get(id(value))
        if kept is None:
            if len(self._made) >= MOST:
                self._made.clear()
            kept = self._made[id(value)] = value, self._make(value)
        return kept[1]


# Bytes per token on logs and JSON measured between 2.4 and 3.4; the low end never overflows.
BYTES_PER_TOKEN = 2.4
# The most that a vendor counts of one image (Claude Opus 4.7 and later: 2576 px, 4784 tokens).
IMAGE_TOKENS = 4_784
TOO_LARGE = (
    '{"folded":true,"note":"this result is too large for your window; ask for a shorter time, '
    'fewer lines or one product"}'
)
FITTED = "To fit the model's window"
_FRAMING_TOKENS = 1024  # what a vendor adds of its own: roles, separators, how tools are called
FOLDED = (
    '{"folded":true,"note":"this earlier result was folded to fit; call the tool again if needed"}'
)


def estimate_tokens(messages: Sequence[Message], system: str = "") -> int:
    """An upper estimate, without a tokenizer."""
    size = utf8_bytes(system) + sum(size_of(m) for m in messages)
    return round(size / BYTES_PER_TOKEN)


def folded_tokens(turns: Iterable[Sequence[Message]], beside_bytes: int = 0) -> int:
    size = beside_bytes
    for turn in turns:
        for message in turn:
            size += size_of(message)
            if (result := message.tool_result) is not None:
                size -= max(0, utf8_bytes(result.content) - len(FOLDED))
    return round(size / BYTES_PER_TOKEN)


def size_of(message: Message) -> int:
    """Of one message, in bytes, as far as they are many."""
    size = utf8_bytes(message.text) + utf8_bytes(message.told) + 20
    for call in message.tool_calls:
        size += len(call.arguments) + len(call.name) + 40
    for block in message.provider_blocks:
        size += len(block)
    if (result := message.tool_result) is not None:
        size += utf8_bytes(result.content)
    if message.images:
        size += round(len(message.images) * IMAGE_TOKENS * BYTES_PER_TOKEN)
    return size


def utf8_bytes(text: str) -> int:
    """How many, without making them of plain ASCII, as nearly all is."""
    return len(text) if text.isascii() else len(text.encode(errors="surrogatepass"))


def tool_bytes(request: CompleteRequest) -> int:
    return _bytes_of(request.tools)


def _size_of(tools: Sequence[ToolSpec]) -> int:
    return sum(
        len(t.name) + utf8_bytes(t.description) + len(orjson.dumps(t.input_schema)) for t in tools
    )


_bytes_of: Final = IdentityCache(_size_of)


def room_tokens(window_tokens: int, request: CompleteRequest) -> int:
    """The window's room for system text and messages, after the answer's.

    At least half: the model itself refuses a request that is too large for a small window.
    """
    tools = round(tool_bytes(request) / BYTES_PER_TOKEN)
    return max(window_tokens // 2, window_tokens - request.max_tokens - tools - _FRAMING_TOKENS)


def fit(
    messages: Sequence[Message], system: str, max_tokens: int
) -> tuple[tuple[Message, ...], str | None]:
    """Fold the oldest tool results, then drop the oldest turns, until it fits.

    The question and the newest results stay; only results that are too large for the window by
    themselves are folded at last. Returns the messages and a note for people when anything was
    folded. A pair of call and result stays together, so the conversation remains well formed.
    """
    room = max_tokens * BYTES_PER_TOKEN - utf8_bytes(system)
    sizes = [size_of(message) for message in messages]
    if sum(sizes) <= room:
        return tuple(messages), None
    kept = list(messages)
    folded = _fold(kept, sizes, range(_newest_results(kept)), room, FOLDED)
    dropped = 0
    while sum(sizes) > room and (cut := _second_turn(kept)) is not None:
        kept, sizes = kept[cut:], sizes[cut:]
        dropped += 1
    too_large = _fold(kept, sizes, range(_newest_results(kept), len(kept)), room, TOO_LARGE)
    return tuple(kept), _note(folded, dropped, too_large)


def turns_of(messages: Sequence[Message]) -> list[tuple[Message, ...]]:
    """Parted before every question."""
    starts = [i for i, m in enumerate(messages) if m.role is Role.USER]
    return [tuple(messages[a:b]) for a, b in pairwise([*starts, len(messages)])]


def folded(message: Message, notice: str = FOLDED) -> Message:
    """The message with a notice in place of a longer result."""
    result = message.tool_result
    if result is None or len(result.content) <= len(notice):
        return message
    short = ToolResult(result.call_id, result.name, notice, result.is_error)
    return replace(message, tool_result=short)


def _fold(kept: list[Message], sizes: list[int], at: range, room: float, notice: str) -> int:
    count, size = 0, sum(sizes)
    for index in at:
        if size <= room:
            break
        short = folded(kept[index], notice)
        if short is not kept[index]:
            kept[index] = short
            size -= sizes[index]
            sizes[index] = size_of(short)
            size += sizes[index]
            count += 1
    return count


def _newest_results(messages: Sequence[Message]) -> int:
    index = len(messages)
    while index and messages[index - 1].role is Role.TOOL:
        index -= 1
    return index


def _second_turn(messages: Sequence[Message]) -> int | None:
    starts = [i for i, m in enumerate(messages) if m.role is Role.USER]
    return starts[1] if len(starts) > 1 else None


def _note(folded: int, dropped: int, too_large: int) -> str | None:
    parts = []
    if folded:
        parts.append(f"{folded} earlier tool results were folded")
    if dropped:
        parts.append(f"the oldest {dropped} turns were left out")
    if too_large:
        parts.append(f"{too_large} results were too large to read")
    return f"{FITTED}, {' and '.join(parts)}." if parts else None


def newest_note(notices: Sequence[str]) -> list[str]:
    """Of the notes that each round made about what it had to fold, the last one; all else."""
    last = next((n for n in reversed(notices) if n.startswith(FITTED)), None)
    return [n for n in notices if n == last or not n.startswith(FITTED)]
