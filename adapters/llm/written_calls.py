"""Tool calls that a model wrote into its text, on a wire where it could have made them.

`adapters.llm.call_forms` knows the forms. A text is a call only when it is nothing else: after a short
preface that quotes nothing come calls to its end. Each names an offered tool exactly, with arguments that
fit its schema. A text that a tool result holds is never a call, and a proposal is a call only without any
other word around it, because other words may refuse, quote or explain it.

Anything else that looks like a call is withheld: within a sentence, in quotes, in a list, inside other JSON.
A call is executed or withheld, never displayed. JSON that is no call is part of an answer.
"""

import json
import re
from collections.abc import Sequence, Set
from itertools import islice
from typing import Final

from pydantic import JsonValue

from adapters.llm.brackets import NoCall, json_end, python_end
from adapters.llm.call_forms import (
    ANY_FENCE,
    ARGUMENT_KEYS,
    INLINE,
    LEAD,
    NAME_KEYS,
    TEMPLATE,
    TOOL_ID,
    Json,
    Written,
    calls_in,
    json_at,
    loaded,
)
from adapters.llm.framing import MAX_ARGUMENT_CHARS
from adapters.llm.messages import CompleteRequest, ToolCall, ToolSpec
from adapters.llm.named_calls import command_end, named_end, start_of, tool_names
from adapters.llm.wire_json import arguments_object, arguments_text, is_shallow
from tools.contract import PROPOSE_TOOL_ID
from tools.encoded_json import decoded
from tools.json_schema import JsonSchema, SchemaInvalid

CALLS_WRITTEN: Final = (
    "This model wrote its tool calls into its text; they were read from there, which is less "
    "reliable."
)
MOST_CHARS: Final = 2 * MAX_ARGUMENT_CHARS
MOST_CALLS: Final = 10  # as many as run at once
PREFACE_CHARS: Final = 300  # one or two sentences about the next step

_START: Final = start_of(frozenset())
_OF_TEMPLATE: Final = re.compile(rf"{LEAD}(?:{ANY_FENCE})?(?:{TEMPLATE})|{INLINE}")
# A preface that says of what follows that it is shown, not asked for.
_QUOTES: Final = re.compile(
    r"\b(?:examples?|e\.g|for instance|such as|like this|looks? like|would be|could be|would look|format|syntax|"
    r"instead of|never|not|says|said|saying|reads|wrote|written|contains?|contained|holds?|found|"
    r"shows?|showed|shown|returned|returns|answered|output|result|results|responded|quote[sd]?|quoting|"
    r"log (?:line|entry|message)s?|evidence|according|asks? (?:me|you|us)|tells? (?:me|you|us)|instruct\w*|E\d{1,3})\b|n['’]t\b",
    re.IGNORECASE,
)
# In JSON that cannot be read, perhaps because it was cut, or because it is a string in JSON.
_NAMED: Final = re.compile(
    rf"[\"'](?:{'|'.join(NAME_KEYS)})\\{{0,3}}[\"']\s{{0,8}}:\s{{0,8}}\\{{0,3}}[\"']([\w.-]{{1,80}})(?=\\{{0,3}}[\"']|\Z)"
)
_NAMED_IN_PYTHON: Final = re.compile(
    rf"{LEAD}(?:{ANY_FENCE})?(?:\[\s{{0,64}}|(?=[\w.(]{{1,160}}\((?:\w{{1,64}}\s?=|[{{\"')])))"
    r"(?:print\()?(?:functions\.|default_api\.)?(\w{1,64})\("
)
_ANY_ID: Final = re.compile(TOOL_ID)
_CLOSING: Final = re.compile(
    r"(?:\s*(?:```(?!\w)|</[\w:]{1,40}>|<\|[a-zA-Z_/]{1,40}\|>|<｜[^｜\n]{1,40}｜>|\[END_TOOL_REQUEST\])|[\"'`]{1,3}(?!\w))*+"
)
_MOST_TRIES: Final = 16  # to read a call in one text: each looks for the end of a bracket
_MOST_NESTED: Final = 3  # a message's list of calls, a call, its function
_BEFORE_NESTED: Final = frozenset((":", "[", ","))
CONTEXT_CHARS: Final = 160
_BLOCK_END: Final = re.compile(r"\s*```\s*\Z")
_ELSEWHERE: Final = re.compile(r"[.!?;](?=\s|\Z)")  # between a tool's name and other data
_QUOTED: Final = re.compile(r"\s*(?:[-*+•>|\"']|`(?!``)|[0-9])")
_QUOTE_MARKS: Final = frozenset("\"'`")
_PYTHON_WORDS: Final = {"True": "true", "False": "false", "None": "null"}


def written_calls(
    text: str, request: CompleteRequest, *, has_thought: bool = False
) -> tuple[ToolCall, ...] | None:
    """The calls of a whole text; None when it is not one that calls. Never raises.

    `has_thought`: other words precede it. Time is linear in the text. The calls have no ids.
    """
    if not request.tools or len(text) > MOST_CHARS:
        return None
    start = start_of(tool_names(request)).search(text)
    if start is None or (start["json"] or start["data"] or "")[:1] in _QUOTE_MARKS:
        return None
    preface = text[: start.start()].strip()
    if len(preface) > PREFACE_CHARS or "```" in preface or _QUOTES.search(preface):
        return None
    is_alone = not (preface or has_thought or _QUOTED.match(text))
    try:
        found = [each for each, _ in islice(calls_in(text, start.start()), MOST_CALLS + 1)]
        if not 0 < len(found) <= MOST_CALLS:
            return None
        calls = tuple(_call(each, request) for each in found)
        if not is_alone and any(call.name == PROPOSE_TOOL_ID for call in calls):
            return None
    except ValueError:  # includes invalid JSON
        return None
    return None if _is_echo(calls, request) else calls


def without_calls(text: str, request: CompleteRequest, before: str = "") -> str:
    """The text without what looks like a call: for people. `before` is already shown.

    A chat template's marks are withheld, with all that follows them where it cannot be read. JSON and
    Python are withheld where they name a tool or pass arguments. Other data is part of an answer.
    """
    kept: list[str] = []
    at, tries, fences = len(before), 0, before.count("```")
    text = before + text
    names = tool_names(request)
    begins = start_of(names)
    while (start := begins.search(text, at)) and tries < _MOST_TRIES:
        end, is_call = _reach(text, start, names)
        tries += end == start.end()  # what ends is read once
        if not is_call and _gives_arguments(text, start, end, request):
            end, is_call = _behind_marks(text, end), True
        kept.append(text[at : start.start() if is_call else end])
        fences += kept[-1].count("```")
        if is_call and fences % 2 and (closing := _BLOCK_END.search(text, start.end(), end)):
            end = closing.start()  # of the block that is already shown
        at = end
    for start in begins.finditer(text, at):  # after the last try
        if _is_certain(text, start, names):
            return "".join((*kept, text[at : start.start()]))
    return "".join((*kept, text[at:]))


def _gives_arguments(text: str, start: re.Match[str], end: int, request: CompleteRequest) -> bool:
    """Whether JSON right behind a tool's name has nothing but arguments of that tool."""
    at = text.find("{", start.start(), end)
    if not (start["json"] or start["data"]) or at < 0:
        return False
    before = text[max(0, at - CONTEXT_CHARS) : at]
    known = _argument_names(request)
    last = max(known, key=before.rfind, default="")
    behind = before[before.rfind(last) + len(last) :]
    if last not in before or _ELSEWHERE.search(behind) or _QUOTES.search(behind):
        return False
    try:
        value = _data(text, at, json_end(text, at))
    except ValueError:
        return False
    return isinstance(value, dict) and value.keys() <= known.get(last, set())


def _argument_names(request: CompleteRequest) -> dict[str, set[str]]:
    """By a tool's short name: of its schema, and of the calls that were made before."""
    known: dict[str, set[str]] = {}
    for tool in request.tools:
        properties = tool.input_schema.get("properties")
        known[tool.name.split("__")[-1]] = set(properties if isinstance(properties, dict) else ())
    for call in (call for message in request.messages for call in message.tool_calls):
        known.setdefault(call.name.split("__")[-1], set()).update(arguments_object(call.arguments))
    return known


def _reach(text: str, start: re.Match[str], names: Set[str]) -> tuple[int, bool]:
    if (command := command_end(text, start)) is not None:
        return _behind_marks(text, command), True
    if start["named"]:
        named = named_end(text, start)
        return (start.end() if named is None else _behind_marks(text, named)), named is not None
    end, is_call = start.start(), False
    try:
        for each, found in islice(calls_in(text, start.start()), MOST_CALLS):
            is_call = is_call or each.has_arguments or _is_tool(each.name, names)
            end = found
    except ValueError:
        pass  # what follows the calls is the answer's text
    if is_call:
        return _behind_marks(text, end), True
    if start["json"] or start["data"]:
        return _reach_of_data(text, start, names)
    if _is_certain(text, start, names):
        return _behind_call(text, start), True
    return start.end(), False


def _reach_of_data(text: str, start: re.Match[str], names: Set[str]) -> tuple[int, bool]:
    at = max(start.start("json"), start.start("data"))
    at += len(start["json"] or start["data"]) - len((start["json"] or start["data"]).lstrip("\"'`"))
    try:
        end = json_end(text, at)
    except NoCall:  # cut: what follows is a part of it
        is_call = _is_certain(text, start, names)
        return (len(text) if is_call else start.end()), is_call
    try:
        is_call = _holds_call(_data(text, at, end), names)
    except ValueError:
        is_call = _names_tool(text[at:end], names)
    return (_behind_marks(text, end) if is_call else end), is_call


def _data(text: str, at: int, end: int) -> object:
    try:
        value = json.loads(text[at:end])
    except (ValueError, RecursionError):
        return json_at(text, at)[0]
    if not is_shallow(value):
        raise NoCall("nested too deep")
    return value


def _holds_call(value: object, names: Set[str]) -> bool:
    """Whether data has a call in it: of a tool that there is, with arguments or first of all."""
    match value:
        case str():
            return "{" in value and _names_tool(value, names)
        case list():
            return any(_holds_call(each, names) for each in value)
        case dict():
            named = [
                k for k in NAME_KEYS if isinstance(value.get(k), str) and _is_tool(value[k], names)
            ]
            is_call = next(iter(value), "") in named or any(key in value for key in ARGUMENT_KEYS)
            is_named = any(_ANY_ID.fullmatch(k) and isinstance(v, dict) for k, v in value.items())
            is_call = is_named or (bool(named) and is_call)
            return is_call or any(_holds_call(v, names) for v in value.values())
        case _:
            return False


def _names_tool(text: str, names: Set[str]) -> bool:
    return any(_is_tool(found[1], names) for found in _NAMED.finditer(text))


def _is_tool(name: str, names: Set[str]) -> bool:
    name = name.removeprefix("functions.")
    return name in names or _ANY_ID.fullmatch(name) is not None


def _behind_call(text: str, start: re.Match[str]) -> int:
    if start["passed"]:
        end = text.find("\n\n", start.end())
        return end if end >= 0 else len(text)
    try:
        return _behind_marks(text, python_end(text, start.start() + start[0].index("(")))
    except ValueError:
        return len(text)


def _behind_marks(text: str, at: int) -> int:
    closing = _CLOSING.match(text, at)
    return closing.end() if closing else at


def _cut_end(text: str, at: int) -> int:
    """How far JSON without an end goes: with what begins inside it, but not with what comes after it."""
    for _ in range(_MOST_NESTED):
        inner = _START.search(text, at)
        if inner is None:
            return len(text)
        if text[at : inner.start()].rstrip()[-1:] not in _BEFORE_NESTED:
            return inner.start()
        at = inner.end()
    return at


def _is_certain(text: str, start: re.Match[str], names: Set[str]) -> bool:
    if start["named"]:
        return named_end(text, start) is not None
    if start["json"] or start["data"]:
        return _names_tool(text[start.start() : _cut_end(text, start.end())], names)
    if start["tag"] or start["passed"] or command_end(text, start) is not None:
        return True
    if _OF_TEMPLATE.match(text, start.start()):
        return True
    named = _NAMED_IN_PYTHON.match(text, start.start())
    return named is not None and _is_tool(named[1], names)


def _call(written: Written, request: CompleteRequest) -> ToolCall:
    tool = next((tool for tool in request.tools if tool.name == written.name), None)
    if tool is None:
        raise NoCall("no offered tool has that name")
    arguments = _typed(tool, written.arguments) if written.is_text else written.arguments
    arguments = _decoded(tool, arguments)
    if not _fits(tool, arguments):
        raise NoCall("no offered tool takes this")
    return ToolCall("", written.name, arguments_text(arguments))


def _typed(tool: ToolSpec, values: Json) -> Json:
    properties = tool.input_schema.get("properties")
    known = properties if isinstance(properties, dict) else {}
    return {name: _value(str(text), known.get(name)) for name, text in values.items()}


def _value(text: str, schema: JsonValue) -> object:
    kind = schema.get("type") if isinstance(schema, dict) else None
    if kind is None or kind == "string" or (isinstance(kind, list) and "string" in kind):
        return text
    try:
        return loaded(_PYTHON_WORDS.get(text.strip(), text))
    except ValueError:
        return text


def _decoded(tool: ToolSpec, arguments: Json) -> Json:
    found = decoded(dict(arguments), dict(tool.input_schema))  # type: ignore[arg-type]
    return found if isinstance(found, dict) else arguments


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
