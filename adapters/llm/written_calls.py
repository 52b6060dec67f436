"""Tool calls that a model wrote into its text, on a wire where it could have made them.

Small models answer with fenced or bare JSON, or the tags of the templates they were trained on
(Hermes and Qwen `<tool_call>`, Llama `<function=…>` and `<|python_tag|>`, Mistral `[TOOL_CALLS]`).
Such a text is a call only when it is nothing else: after a short preface that quotes nothing come
calls to its end, each naming an offered tool exactly, with arguments that fit its schema. What any
tool result holds is never a call, whoever repeats it. What asks people for something is called by
nothing but itself: around it stand the words of who refuses, quotes or explains it. Whatever else it
is stays text.

As text streams, it is held back from where a call may have begun: nobody should watch one grow as if
it were an answer. What is held is given at the end: as calls, or as the text that it was.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Final

import orjson

from adapters.llm.framing import MAX_ARGUMENT_CHARS
from adapters.llm.messages import CompleteRequest, ToolCall, ToolSpec
from adapters.llm.wire_json import arguments_text, is_shallow
from tools.contract import PROPOSE_TOOL_ID
from tools.json_schema import JsonSchema, SchemaInvalid

CALLS_WRITTEN: Final = (
    "This model wrote its tool calls into its text; they were read from there, which is less "
    "reliable."
)
MOST_CHARS: Final = 2 * MAX_ARGUMENT_CHARS
MOST_CALLS: Final = 10  # as many as run at once
PREFACE_CHARS: Final = 300  # a sentence or two on what is about to be done

_LANGUAGES: Final = r"(?:json[lc5]?|tool(?:_calls?|_code|_use)?|function(?:_call)?|xml|text)?"
_TAGS: Final = r"tool_calls?|function_calls?|tools?|toolcall"
_KEYS: Final = r"name|tool|tool_name|tool_calls?|function|function_call|type|id|index|arguments|parameters|args|input"
# What a call begins with, at the beginning of a line. Bounded, so that no text is read twice over.
BEGINS: Final = (
    rf'\{{\s{{0,64}}"(?:{_KEYS})"|\[\s{{0,64}}\{{|<(?:{_TAGS})>|<function=|<\|(?:python_tag|tool_call)\|>'
    r"|\[TOOL_CALLS\]"
)
FENCE: Final = rf"```[ \t]{{0,8}}{_LANGUAGES}[ \t]{{0,8}}\r?\n\s{{0,64}}"
_START: Final = re.compile(rf"^[ \t]{{0,3}}(?:{FENCE})?(?:{BEGINS})", re.MULTILINE)
_FENCE: Final = re.compile(FENCE)
_TAG: Final = re.compile(rf"<({_TAGS})>")
_NAMED_TAG: Final = re.compile(r"<function=([a-zA-Z0-9_-]{1,64})>")
_MARK: Final = re.compile(r"<\|(?:python_tag|tool_call)\|>|\[TOOL_CALLS\]")
_THOUGHT: Final = re.compile(r"\s{0,64}<think>[^<]*</think>")
_STEP: Final = re.compile(r'"(?:[^"\\]|\\.)*+(?:"|\Z)|[\[{\]}]', re.DOTALL)
# A preface that says of what follows that it is shown, not asked for.
_QUOTES: Final = re.compile(
    r"\b(?:examples?|e\.g|for instance|such as|like this|looks? like|would be|could be|would look|format|syntax|"
    r"instead of|never|not|says|said|saying|reads|wrote|written|contains?|contained|holds?|found|"
    r"shows?|showed|shown|returned|returns|answered|output|result|results|responded|quote[sd]?|quoting|"
    r"log (?:line|entry|message)s?|evidence|according|asks? (?:me|you|us)|tells? (?:me|you|us)|instruct\w*|E\d{1,3})\b|n['’]t\b",
    re.IGNORECASE,
)
_MOST_DIGITS: Final = 18  # of a whole number that every reader keeps as it is

Json = Mapping[str, object]

# How a line goes on that can no longer become the beginning of a call.
_NO_CALL: Final = re.compile(
    r"[ \t]{0,3}+(?:"
    r"\r?\n"
    r"|[^\s{\[<`]"
    r"|[ \t]"
    r"|`{1,2}[^`]"
    r"|`{4}"
    r"|(?:```[^\n`]*\n\s*+)?"
    r'(?:\{\s*+(?:[^"]|"[^"]*")|\[\s*+[^{T]|\[T[^O]|<[^\w|]|<\|[^pt]|<\w++.)'
    r"|```[^\n`]*(?:`|\n\s*+[^{\[<])"
    r")"
)
_UNDECIDED_CHARS: Final = 160


_CALL: Final = re.compile(rf"[ \t]{{0,3}}(?:{FENCE})?(?:{BEGINS})")


class _NoCall(ValueError):
    """The text, or a part of it, is no call after all."""


def written_calls(text: str, request: CompleteRequest) -> tuple[ToolCall, ...] | None:
    """The calls of a whole text; None when it is not one that calls. Never raises.

    Time is linear in the text. The calls have no ids.
    """
    if not request.tools or len(text) > MOST_CHARS:
        return None
    thought = _THOUGHT.match(text)
    begin = thought.end() if thought else 0
    start = _START.search(text, begin)
    if start is None:
        return None
    preface = text[begin : start.start()].strip()
    if len(preface) > PREFACE_CHARS or _QUOTES.search(preface):
        return None
    try:
        found = islice(_objects(text, start.start()), MOST_CALLS + 1)
        asked = [_asked(each) for each in found]
        if not 0 < len(asked) <= MOST_CALLS:
            return None
        calls = tuple(_call(name, arguments, request) for name, arguments in asked)
        if begin + len(preface) > 0 and any(call.name == PROPOSE_TOOL_ID for call in calls):
            return None
    except ValueError:  # JSON that is none included
        return None
    return None if _is_echo(calls, request) else calls


def looks_written(text: str) -> bool:
    """Whether a text is a call by its form, though perhaps of no tool: no answer for people."""
    start = _START.match(text.lstrip())
    if start is None or len(text) > MOST_CHARS:
        return False
    try:
        return all(_asked(each)[0] for each in islice(_objects(text.lstrip(), 0), MOST_CALLS))
    except ValueError:
        return False


def _objects(text: str, at: int) -> Iterator[Json]:
    """Every object from there to the end of the text. Raises ValueError for anything else."""
    while (at := _past_space(text, at)) < len(text):
        if fence := _FENCE.match(text, at):
            inner, at = _until(text, fence.end(), "```")
            yield from _objects_within(inner)
        elif tag := _TAG.match(text, at):
            inner, at = _until(text, tag.end(), f"</{tag[1]}>")
            yield from _objects_within(inner)
        elif named := _NAMED_TAG.match(text, at):
            inner, at = _until(text, named.end(), "</function>")
            yield {"name": named[1], "arguments": _loaded(inner.strip() or "{}")}
        elif mark := _MARK.match(text, at):
            at = mark.end()
        else:
            end = _json_end(text, at)
            yield from _flat(_loaded(text[at:end]))
            at = end


def _objects_within(inner: str) -> Iterator[Json]:
    """The objects of a fence or a tag, which hold tags and JSON, and no fence again."""
    if "```" in inner:
        raise _NoCall("a fence within a fence")
    at = 0
    while (at := _past_space(inner, at)) < len(inner):
        if tag := _TAG.match(inner, at):
            content, at = _until(inner, tag.end(), f"</{tag[1]}>")
            yield from _flat(_loaded(content.strip()))
        else:
            end = _json_end(inner, at)
            yield from _flat(_loaded(inner[at:end]))
            at = end


def _past_space(text: str, at: int) -> int:
    while at < len(text) and text[at].isspace():
        at += 1
    return at


def _until(text: str, start: int, closing: str) -> tuple[str, int]:
    """What stands before the closing mark, which a model that stops early leaves out."""
    end = text.find(closing, start)
    return (text[start:], len(text)) if end < 0 else (text[start:end], end + len(closing))


def _json_end(text: str, at: int) -> int:
    """Behind the array or object that begins there. Raises ValueError."""
    if text[at] not in "{[":
        raise _NoCall("neither an object nor an array")
    depth = 0
    for step in _STEP.finditer(text, at):
        if step[0] in ("{", "["):
            depth += 1
        elif step[0] in ("}", "]"):
            depth -= 1
            if depth == 0:
                return step.end()
    raise _NoCall("it does not end")


def _loaded(text: str) -> object:
    """Strict JSON that every reader takes for the same. Raises ValueError."""
    if not is_shallow(orjson.loads(text)):  # NaN, surrogates and a thousand brackets end here
        raise _NoCall("nested too deep")
    value: object = json.loads(text, object_pairs_hook=_once, parse_int=_whole)
    return value


def _once(pairs: Sequence[tuple[str, object]]) -> dict[str, object]:
    value = dict(pairs)
    if len(value) != len(pairs):
        raise _NoCall("a key is there twice")
    return value


def _whole(digits: str) -> int:
    if len(digits) > _MOST_DIGITS:
        raise _NoCall("a number of more digits than all readers keep")
    return int(digits)


def _flat(value: object) -> Iterator[Json]:
    """One call, a list of them, or OpenAI's message with `tool_calls`."""
    for each in value if isinstance(value, list) else [value]:
        if not isinstance(each, dict):
            raise _NoCall("no object")
        listed = each.get("tool_calls")
        if set(each) == {"tool_calls"} and isinstance(listed, list):
            yield from (_object(one) for one in listed)
        elif set(each) == {"tool_call"} or set(each) == {"function_call"}:
            yield _object(next(iter(each.values())))
        else:
            yield each


def _object(value: object) -> Json:
    if not isinstance(value, dict):
        raise _NoCall("no object")
    return value


def _asked(call: Json) -> tuple[str, Json]:
    """Name and arguments in any of the usual spellings, with nothing beside them."""
    own = {key: value for key, value in call.items() if key not in ("id", "index", "type")}
    if call.get("type", "function") not in ("function", "tool_call", "tool_use", "function_call"):
        raise _NoCall("of another type")
    inner = own.get("function")
    if set(own) == {"function"} and isinstance(inner, dict):
        own = dict(inner)
    names = [own.pop(key) for key in ("name", "tool", "tool_name", "function") if key in own]
    given = [own.pop(key) for key in ("arguments", "parameters", "args", "input") if key in own]
    if own or len(names) != 1 or len(given) > 1 or not isinstance(names[0], str):
        raise _NoCall("more or less than a name and arguments")
    arguments = given[0] if given else {}
    if isinstance(arguments, str):
        arguments = _loaded(arguments or "{}")
    return names[0], _object({} if arguments is None else arguments)


def _call(name: str, arguments: Json, request: CompleteRequest) -> ToolCall:
    tool = next((tool for tool in request.tools if tool.name == name), None)
    if tool is None or not _fits(tool, arguments):
        raise _NoCall("no offered tool takes this")
    return ToolCall("", name, arguments_text(arguments))


def _fits(tool: ToolSpec, arguments: Json) -> bool:
    """By the schema that the model was shown; the runner checks again, and more."""
    try:
        schema = JsonSchema(tool.input_schema)
    except SchemaInvalid:
        return False
    return not schema.problems(dict(arguments))


def _is_echo(calls: Sequence[ToolCall], request: CompleteRequest) -> bool:
    """Whether what a tool returned names the tool too: then the words may be a log line's."""
    read = [m.tool_result.content for m in request.messages if m.tool_result is not None]
    read += [m.told for m in request.messages if m.told]
    return any(call.name in content for call in calls for content in read)


class HeldText:
    """One answer's text. `feed` gives what may be shown now, `close` the rest."""

    __slots__ = ("_begun", "_held", "_held_chars", "_passes", "_request", "_shown")

    def __init__(self, request: CompleteRequest) -> None:
        self._request = request
        self._passes = not request.tools
        self._begun: str | None = ""  # of a line that may become a call; None: within another line
        self._held: list[str] = []
        self._held_chars = 0
        self._shown: list[str] = []

    def feed(self, text: str) -> str:
        """The part of it, and of what came before, that is no call."""
        if self._passes:
            return text
        if self._held:
            return self._hold(text)
        within = self._begun is None and "\n" not in text
        shown = text if within else self._read(text)
        if shown:
            self._shown.append(shown)
        return shown

    def close(self, *, may_call: bool) -> tuple[str, tuple[ToolCall, ...]]:
        """What is left to show, and the calls that it was instead.

        `may_call`: the answer is whole, and the model made no call of its own.
        """
        rest = "".join(self._held) + (self._begun or "")
        self._held, self._begun, self._passes = [], None, True
        if may_call and rest:
            found = written_calls("".join([*self._shown, rest]), self._request)
            if found is not None:
                return "", found
        return rest, ()

    def _hold(self, text: str) -> str:
        self._held.append(text)
        self._held_chars += len(text)
        if self._held_chars <= MOST_CHARS:
            return ""
        self._passes = True
        shown, self._held = "".join(self._held), []
        return shown

    def _read(self, text: str) -> str:
        at = 0 if self._begun is not None else text.find("\n") + 1
        text = (self._begun or "") + text
        while True:
            if _CALL.match(text, at):
                self._begun = None
                return text[:at] + self._hold(text[at:])
            if len(text) - at <= _UNDECIDED_CHARS and not _NO_CALL.match(text, at):
                self._begun = text[at:]
                return text[:at]
            at = text.find("\n", at) + 1
            if not at:
                self._begun = None
                return text
