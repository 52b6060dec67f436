"""Tools for models that have none: `<<TOOL name="..." args='{...}'>>` written into the answer.

Text is passed on as it comes, but held back from a `<<` on until it is known whether a marker
follows. Small models write apostrophes and even `'>>` unescaped inside the JSON, so its end is
found by reading JSON, not by looking for a quote.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

from adapters.llm.chat_completions import call_arguments
from adapters.llm.decoding import OpenCall, whole_call
from adapters.llm.framing import MAX_ARGUMENT_CHARS
from adapters.llm.messages import CompleteRequest, Message, Role, ToolCall, ToolResult, ToolSpec
from adapters.llm.transcript import AssistantTurn, ResultsTurn, Turn, UserTurn, turns
from adapters.llm.wire_json import dump_text

_OPEN: Final = "<<TOOL"
_HEAD: Final = re.compile(
    r"""<<TOOL[ \t]+name=(["'])([^"'<>\n]*)\1(?:[ \t]+args=(["'])[ \t]*|[ \t]*>>)"""
)
_MAX_HEAD_CHARS: Final = 1024
_STEP: Final = re.compile(r'"(?:[^"\\]|\\.)*+(?:"|\Z)|[\[{\]}]', re.DOTALL)


def instructions(tools: Sequence[ToolSpec]) -> str:
    """The part of the system prompt that explains the markers."""
    catalogue = "\n".join(
        f"- {tool.name}: {tool.description}\n  arguments schema: {dump_text(tool.input_schema)}"
        for tool in tools
    )
    example = '<<TOOL name="TOOL_NAME" args=\'{"key": "value"}\'>>'
    return (
        "You can use the tools below. To use one, write a line of exactly this form and then "
        f"stop:\n{example}\n"
        "`args` is one JSON object that fits the tool's schema; write {} for no arguments. "
        "The result comes in the next message. Never invent a result. When you know enough, "
        f"answer without any such line.\n\nTools:\n{catalogue}"
    )


def emulated(request: CompleteRequest) -> CompleteRequest:
    """The request for a model without tools: the instructions describe them, and past calls and
    results become text.
    """
    system = f"{request.system}\n\n{instructions(request.tools)}".strip()
    messages = tuple(_shown(turn) for turn in turns(request.messages))
    return replace(request, system=system, messages=messages, tools=())


def _shown(turn: Turn) -> Message:
    match turn:
        case UserTurn(text, images):
            return Message(Role.USER, text, images=images)
        case AssistantTurn():
            said = [turn.text] if turn.text else []
            return Message(Role.ASSISTANT, "\n".join([*said, *map(shown_call, turn.calls)]))
        case ResultsTurn(results):
            return Message(Role.USER, "\n".join(map(shown_result, results)))


def shown_call(call: ToolCall) -> str:
    """A past call, in the form the model is asked to use."""
    return f"<<TOOL name=\"{call.name}\" args='{call_arguments(call)}'>>"


def shown_result(result: ToolResult) -> str:
    word = "failed with" if result.is_error else "answered"
    return f"Tool {result.name} {word}:\n{result.content}"


class MarkerReader:
    """Split answer text into plain text and calls. Unknown tool names stay text.

    `begin` creates a counted call; see `EventDecoder.begin`.
    """

    def __init__(
        self, names: frozenset[str], begin: Callable[[str, str, str], OpenCall] = whole_call
    ) -> None:
        self._names = names
        self._begin = begin
        self._held = ""
        self._skips_to = ""
        self.calls: list[OpenCall] = []

    def feed(self, text: str) -> str:
        """The plain text that is safe to show now."""
        held, at = self._held + text, 0
        shown: list[str] = []
        while True:
            if self._skips_to:
                at = self._skipped(held, at)
                if self._skips_to:
                    break
            start = held.find(_OPEN, at)
            if start < 0:
                start = len(held) - _begun(held[at:])
                shown.append(held[at:start])
                at = start
                break
            shown.append(held[at:start])
            at = start
            end = self._taken(held, at)
            if end is None:
                break
            if end == at:  # no marker after all
                shown.append(held[at])
                end += 1
            at = end
        self._held = held[at:]
        return "".join(shown)

    def close(self) -> str:
        """The remaining text: a marker with arguments that never became JSON is a call with bad
        arguments.
        """
        rest, self._held = self._held, ""
        if self._skips_to:
            return ""
        head = _HEAD.match(rest)
        if head and head[3] and head[2] in self._names:
            arguments, ended, after = rest[head.end() :].rpartition(f"{head[3]}>>")
            if ended:
                self._call(head[2], arguments)
                return after
        return rest

    def _taken(self, held: str, at: int) -> int | None:
        """Where the marker at `at` ends; `at` itself if it is not one, None if more text must come."""
        head = _HEAD.match(held, at)
        if head is None:
            rest = held[at : at + _MAX_HEAD_CHARS]
            is_open = len(rest) < _MAX_HEAD_CHARS and "\n" not in rest and ">>" not in rest
            return None if is_open else at
        if head[2] not in self._names:
            return at
        if not head[3]:
            self._call(head[2], "{}")
            return head.end()
        return self._with_arguments(held, at, head)

    def _with_arguments(self, held: str, at: int, head: re.Match[str]) -> int | None:
        start, closing = head.end(), f"{head[3]}>>"
        limit = start + MAX_ARGUMENT_CHARS
        closed = held.find(closing, start, limit)
        end = _json_end(held, start, limit) if closed >= 0 else None
        if closed >= 0 and held[start] not in '{["':  # no apostrophe in it is its own
            end = closed
        if end is None:
            return None if len(held) < limit else self._too_long(held, head, limit)
        after = end
        while held[after : after + 1] == " ":
            after += 1
        if held.startswith(closing, after):
            self._call(head[2], held[start:end])
            return after + len(closing)
        return None if closing.startswith(held[after : after + len(closing)]) else at

    def _too_long(self, held: str, head: re.Match[str], limit: int) -> int:
        self._call(head[2], held[head.end() : limit])
        self._skips_to = f"{head[3]}>>"
        return limit

    def _skipped(self, held: str, at: int) -> int:
        end = held.find(self._skips_to, at)
        if end < 0:
            return max(at, len(held) - len(self._skips_to) + 1)
        end += len(self._skips_to)
        self._skips_to = ""
        return end

    def _call(self, name: str, arguments: str) -> None:
        self.calls.append(self._begin("", name, arguments))


def _begun(text: str) -> int:
    most = min(len(_OPEN) - 1, len(text))
    return next((n for n in range(most, 0, -1) if text.endswith(_OPEN[:n])), 0)


def _json_end(text: str, start: int, limit: int) -> int | None:
    """Where the JSON value that begins at `start` ends; None while it is incomplete.

    Only brackets and strings count, so that arguments nested too deep for a parser end too.
    """
    if text[start] == '"':
        string = _STEP.match(text, start, limit)
        return (
            string.end()
            if string and string[0].endswith('"') and string.end() > start + 1
            else None
        )
    depth = 0
    for step in _STEP.finditer(text, start, limit):
        if step[0] in "{[":
            depth += 1
        elif step[0] in "}]":
            depth -= 1
            if depth == 0:
                return step.end()
    return None
