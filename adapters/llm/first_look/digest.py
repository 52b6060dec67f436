"""The digest of a first look for the model: changes, sizes and times, new log errors, callers,
gaps.

Whole results remain for citation and verification. The same look gives the same text in every later
request: it is part of what providers cache.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Final

import orjson
from pydantic import JsonValue

from adapters.llm.first_look.calls import is_look
from adapters.llm.first_look.lines import Lines, by_rules, lines_of
from adapters.llm.first_look.tokens import cut_to, most_tokens_of
from adapters.llm.messages import CompleteRequest, Message, Meta, Role, ToolResult, ToolSpec
from adapters.llm.triage.case import Case, SeenResult, read_case
from adapters.llm.triage.evidence import SWEEPS
from adapters.llm.triage.judgement import Judgement, judged

MOST_TOKENS: Final = 1_500  # of the calls and their results together
_REMEMBERED: Final = 64  # looks of the turns under way; their results may have 64 KiB each
_OF_A_CALL: Final = 20  # what vendors put around a call and its result
_LONGEST_ERROR: Final = 100  # tokens of an error result
_FULL: Final = 8  # tokens; no line takes fewer
_MORE: Final = '"notes":[],"more":true'  # what may come on top of its lines


def as_read(request: CompleteRequest) -> CompleteRequest:
    messages = list(request.messages)
    question = Message(Role.USER)
    for at, message in enumerate(messages):
        if message.role is Role.USER:
            question = message
        elif is_look(message):
            end = at + 1
            while end < len(messages) and messages[end].tool_result is not None:
                end += 1
            tools = tuple(tool.name for tool in request.tools)
            look = (question.text, message, tuple(messages[at + 1 : end]))
            messages[at + 1 : end] = _shortened(*look, request.meta, tools)
    return replace(request, messages=tuple(messages))


@lru_cache(maxsize=_REMEMBERED)
def _shortened(
    question: str,
    calls: Message,
    results: tuple[Message, ...],
    meta: Meta,
    tools: tuple[str, ...],
) -> tuple[Message, ...]:
    case = _case(question, calls, results, meta, tools)
    judgement = judged(case)
    seen = {one.mark: one for one in case.seen}
    parts = [_Part(one, _lines(one, seen, judgement)) for one in results]
    first = next((part for part in parts if part.lines is not None), None)
    if first is not None:
        first.fixed["by_rules"] = by_rules(judgement)
    room = MOST_TOKENS - sum(part.tokens for part in parts)
    room -= sum(most_tokens_of(c.name + c.arguments) + _OF_A_CALL for c in calls.tool_calls)
    for part, told, line in _by_turns(parts):
        cost = most_tokens_of(orjson.dumps(line).decode()) + 1 if room > _FULL else room + 1
        if cost <= room:
            told.append(line)
            room -= cost
        else:
            part.has_more = True
    return tuple(part.message() for part in parts)


class _Part:
    """One result of the look, as far as there is room. `lines` None: pass it on unchanged."""

    def __init__(self, message: Message, lines: Lines | None) -> None:
        self._message = message
        self.lines = lines
        self.fixed: dict[str, JsonValue] = dict(lines.head) if lines else {}
        self.told: list[str] = []
        self.notes: list[str] = []
        self.has_more = False

    @property
    def tokens(self) -> int:
        return most_tokens_of(self._content() + _MORE)

    def message(self) -> Message:
        result = self._result
        short = ToolResult(result.call_id, result.name, self._content(), result.is_error)
        return replace(self._message, tool_result=short)

    @property
    def _result(self) -> ToolResult:
        result = self._message.tool_result
        assert result is not None  # noqa: S101 - as_read takes no other message
        return result

    def _content(self) -> str:
        if self.lines is None:
            return _cut(self._result.content)
        told: dict[str, JsonValue] = dict(self.fixed)
        told[self.lines.name] = list[JsonValue](self.told)
        if self.notes:
            told["notes"] = list[JsonValue](self.notes)
        if self.has_more:
            told["more"] = True
        body = {"evidence": self.lines.mark, "untrusted": True, "result": told}
        return orjson.dumps(body).decode()


def _by_turns(parts: Sequence[_Part]) -> Iterator[tuple[_Part, list[str], str]]:
    """Every result's most important lines, then all notes, then the rest; each with its position."""
    whole = [(part, part.lines) for part in parts if part.lines is not None]
    for part, of in reversed(whole):
        for line in of.lines[:1]:
            yield part, part.told, line
    for part, of in whole:
        for line in of.lines[1 : of.at_once]:
            yield part, part.told, line
    for part, of in whole:
        for note in of.notes:
            yield part, part.notes, note
    waiting = [(part, list(of.lines[of.at_once :]), of.at_once) for part, of in whole]
    while any(lines for _, lines, _ in waiting):
        for part, lines, at_once in waiting:
            for line in lines[:at_once]:
                yield part, part.told, line
            del lines[:at_once]


def _lines(message: Message, seen: Mapping[str, SeenResult], judgement: Judgement) -> Lines | None:
    """None for a failed result, which names its reason, and for other messages."""
    result = message.tool_result
    assert result is not None  # noqa: S101 - as_read takes no other message
    try:
        body = orjson.loads(result.content)
    except orjson.JSONDecodeError:
        return None
    mark = body.get("evidence") if isinstance(body, dict) else None
    found = seen.get(mark) if isinstance(mark, str) else None
    return lines_of(found, judgement) if found is not None and found.ok else None


def _cut(content: str) -> str:
    short = cut_to(content, _LONGEST_ERROR)
    if short == content:
        return content
    return orjson.dumps({"untrusted": True, "result": short}).decode()


def _case(
    question: str,
    calls: Message,
    results: tuple[Message, ...],
    meta: Meta,
    tools: tuple[str, ...],
) -> Case:
    request = CompleteRequest(
        system="",
        messages=(Message(Role.USER, question), calls, *results),
        tools=tuple(ToolSpec(name, "", {}) for name in tools),
        meta=Meta(products=meta.products, tables=meta.tables),
    )
    case = read_case(request)
    named = (str(seen.arguments.get("product", "")) for seen in case.seen if seen.tool in SWEEPS)
    subject = next((name for name in named if name), "")
    return replace(case, asked=replace(case.asked, subject=subject))
