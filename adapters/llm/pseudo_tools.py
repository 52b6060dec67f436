"""Tools for models that have none: `<<TOOL name="..." args='{...}'>>` written into the answer.

Text is passed on as it comes, but held back from a `<<` on until it is known whether a marker
follows. Small models write apostrophes and even `'>>` unescaped inside the JSON, so its end is
found by reading JSON, not by looking for a quote.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from adapters.llm.decoding import OpenCall
from adapters.llm.messages import CompleteRequest, Message, Role, ToolCall, ToolResult, ToolSpec
from adapters.llm.transcript import AssistantTurn, ResultsTurn, Turn, UserTurn, turns
from adapters.llm.wire_json import dump_text

_OPEN: Final = "<<TOOL"
_HEAD: Final = re.compile(
    r"""<<TOOL[ \t]+name=(["'])([^"'<>\n]*)\1(?:[ \t]+args=(["'])[ \t]*|[ \t]*>>)"""
)
# Longer than any sensible call; a marker that never ends is text after all.
_MAX_HELD_CHARS: Final = 64 * 1024
_JSON: Final = json.JSONDecoder(strict=False)


def instructions(tools: Sequence[ToolSpec]) -> str:
    """The part of the system prompt that teaches the markers."""
    catalogue = "\n".join(
        f"- {tool.name}: {tool.description}\n  arguments schema: {dump_text(tool.input_schema)}"
        for tool in tools
    )
    example = '<<TOOL name="TOOL_NAME" args=\'{"key": "value"}\'>>'
    return (
        "You can use the tools below. To use one, write a line of exactly this form and then "
        f"stop:\n{example}\n"
        "`args` is one JSON object that fits the tool's schema; write {} when there are none. "
        "The result comes in the next message. Never invent a result. When you know enough, "
        f"answer without any such line.\n\nTools:\n{catalogue}"
    )


def emulated(request: CompleteRequest) -> CompleteRequest:
    """The same request for a model without tools: they are described in the instructions, and the
    past shows calls and results as text.
    """
    system = f"{request.system}\n\n{instructions(request.tools)}".strip()
    messages = tuple(_shown(turn) for turn in turns(request.messages))
    return replace(request, system=system, messages=messages, tools=())


def _shown(turn: Turn) -> Message:
    match turn:
        case UserTurn(text):
            return Message(Role.USER, text)
        case AssistantTurn():
            said = [turn.text] if turn.text else []
            return Message(Role.ASSISTANT, "\n".join([*said, *map(shown_call, turn.calls)]))
        case ResultsTurn(results):
            return Message(Role.USER, "\n".join(map(shown_result, results)))


def shown_call(call: ToolCall) -> str:
    """A past call, in the form the model is asked to use."""
    return f"<<TOOL name=\"{call.name}\" args='{call.arguments}'>>"


def shown_result(result: ToolResult) -> str:
    """A past result, as something the model reads."""
    word = "failed with" if result.is_error else "answered"
    return f"Tool {result.name} {word}:\n{result.content}"


class MarkerReader:
    """Splits answer text into plain text and calls. Unknown tool names stay text."""

    def __init__(self, names: frozenset[str]) -> None:
        self._names = names
        self._held = ""
        self.calls: list[OpenCall] = []

    def feed(self, text: str) -> str:
        """The plain text that is safe to show now."""
        self._held += text
        shown: list[str] = []
        while True:
            start = self._held.find("<")
            if start < 0:
                shown.append(self._held)
                self._held = ""
                break
            shown.append(self._held[:start])
            self._held = self._held[start:]
            taken = self._taken()
            if taken is None:
                break
            shown.append(taken)
        return "".join(shown)

    def close(self) -> str:
        """The rest: a marker whose arguments never became JSON is a call with bad arguments."""
        rest, self._held = self._held, ""
        head = _HEAD.match(rest)
        if head and head[3] and head[2] in self._names:
            arguments, ended, after = rest[head.end() :].rpartition(f"{head[3]}>>")
            if ended:
                self.calls.append(OpenCall("", head[2], [arguments]))
                return after
        return rest

    def _taken(self) -> str | None:
        """Take one marker or one character from the front; None when more text must come first."""
        held = self._held
        if not held.startswith(_OPEN):
            return None if _OPEN.startswith(held) else self._release(1)
        head = _HEAD.match(held)
        if head is None:
            is_open = len(held) < _MAX_HELD_CHARS and "\n" not in held and ">>" not in held
            return None if is_open else self._release(1)
        if head[2] not in self._names:
            return self._release(1)
        if not head[3]:
            return self._call(head[2], "{}", head.end())
        return self._with_arguments(head[2], head[3], head.end())

    def _with_arguments(self, name: str, quote: str, start: int) -> str | None:
        if f"{quote}>>" not in self._held[start:] and len(self._held) < _MAX_HELD_CHARS:
            return None
        try:
            _, end = _JSON.raw_decode(self._held, start)
        except ValueError:
            return None if len(self._held) < _MAX_HELD_CHARS else self._release(1)
        after = self._held[end:].lstrip(" ")
        closing = f"{quote}>>"
        if after.startswith(closing):
            arguments = self._held[start:end]
            return self._call(name, arguments, len(self._held) - len(after) + len(closing))
        return None if closing.startswith(after) else self._release(1)

    def _call(self, name: str, arguments: str, end: int) -> str:
        self.calls.append(OpenCall("", name, [arguments]))
        self._held = self._held[end:]
        return ""

    def _release(self, chars: int) -> str:
        text, self._held = self._held[:chars], self._held[chars:]
        return text
