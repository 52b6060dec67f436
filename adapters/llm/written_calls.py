"""Tool calls that a model wrote into its text, on a wire where it could have made them.

`adapters.llm.call_forms` knows the forms. A text is a call only when it is nothing else: after a short
preface that quotes nothing come calls to its end. Each names an offered tool exactly, with arguments that
fit its schema. A text that a tool result holds is never a call, and a proposal is a call only without any
other word around it, because other words may refuse, quote or explain it.

As text streams, it is held back from where a call may have begun. At the end the held text becomes calls,
or is shown without what looks like a call. A call is executed or withheld, never displayed.
"""

import re
from collections.abc import Sequence
from itertools import islice
from typing import Final

from pydantic import JsonValue

from adapters.llm.call_forms import (
    BEGINS,
    FENCE,
    INLINE,
    INLINE_BEGINNING,
    PLAIN_BEGINNINGS,
    TEMPLATE,
    Json,
    NoCall,
    Written,
    calls_in,
    loaded,
)
from adapters.llm.framing import MAX_ARGUMENT_CHARS
from adapters.llm.messages import CompleteRequest, ToolCall, ToolSpec
from adapters.llm.wire_json import arguments_text
from tools.contract import PROPOSE_TOOL_ID
from tools.encoded_json import decoded
from tools.json_schema import JsonSchema, SchemaInvalid

CALLS_WRITTEN: Final = (
    "This model wrote its tool calls into its text; they were read from there, which is less "
    "reliable."
)
MOST_CHARS: Final = 2 * MAX_ARGUMENT_CHARS
MOST_CALLS: Final = 10  # as many as run at once
PREFACE_CHARS: Final = 300  # a sentence or two on what is about to be done

_START: Final = re.compile(rf"^[ \t]{{0,3}}(?:{FENCE})?(?:{BEGINS})|{INLINE}", re.MULTILINE)
_INLINE: Final = re.compile(INLINE)
_INLINE_BEGINNING: Final = re.compile(INLINE_BEGINNING)
_CALL: Final = re.compile(rf"[ \t]{{0,3}}(?:{FENCE})?(?:{BEGINS})")
_OF_TEMPLATE: Final = re.compile(rf"[ \t]{{0,3}}(?:{FENCE})?(?:{TEMPLATE})")
_THOUGHT: Final = re.compile(r"\s{0,64}<think>[^<]*</think>")
# A preface that says of what follows that it is shown, not asked for.
_QUOTES: Final = re.compile(
    r"\b(?:examples?|e\.g|for instance|such as|like this|looks? like|would be|could be|would look|format|syntax|"
    r"instead of|never|not|says|said|saying|reads|wrote|written|contains?|contained|holds?|found|"
    r"shows?|showed|shown|returned|returns|answered|output|result|results|responded|quote[sd]?|quoting|"
    r"log (?:line|entry|message)s?|evidence|according|asks? (?:me|you|us)|tells? (?:me|you|us)|instruct\w*|E\d{1,3})\b|n['’]t\b",
    re.IGNORECASE,
)
_WRAPPERS: Final = "function|function_call|tool_call|functionCall|toolUse"
# Of a call in JSON or Python that cannot be read, perhaps because it was cut.
_NAMED: Final = re.compile(
    rf"[ \t]{{0,3}}(?:{FENCE})?(?:\[\s{{0,64}})?\{{\s{{0,64}}(?:\"(?:{_WRAPPERS})\"\s{{0,8}}:\s{{0,8}}\{{\s{{0,64}})?"
    r"(?:\"(?:type|id|toolUseId)\"\s{0,8}:\s{0,8}\"[\w.-]{0,80}\"\s{0,8},\s{0,64}){0,2}"
    r"\"(?:name|tool|tool_name|function|action)\"\s{0,8}:\s{0,8}"
    r"\"([\w.-]{1,80})\""
)
_NAMED_IN_PYTHON: Final = re.compile(
    rf"[ \t]{{0,3}}(?:{FENCE})?(?:\[\s{{0,64}}|(?=[\w.(]{{1,160}}\((?:\w{{1,64}}\s?=|\{{|\))))"
    r"(?:print\()?(?:functions\.|default_api\.)?(\w{1,64})\("
)
_CLOSING: Final = re.compile(
    r"(?:\s*(?:```(?!\w)|</[\w:]{1,40}>|<\|[a-zA-Z_/]{1,40}\|>|<｜[^｜\n]{1,40}｜>|\[END_TOOL_REQUEST\]))*+"
)
_MOST_TRIES: Final = 16  # to read a call in one text: each looks for the end of a bracket
# How a line goes on that can no longer become the beginning of a call.
_NO_CALL: Final = re.compile(
    r"[ \t]{0,3}+(?:"
    r"\r?\n"
    r"|[^\s{\[<`]"
    r"|[ \t]"
    r"|`{1,2}[^`]"
    r"|`{4}"
    r"|(?:```[^\n`]*\n\s*+)?"
    r'(?:\{\s*+(?:[^"]|"[^"]*")|\[\s*+(?:[^{\w]|\w++[^\w(])|<[^\w|/｜<]|</?\w++[^\w:])'
    r"|```[^\n`]*(?:`|\n\s*+[^{\[<])"
    r")"
)
_FENCE_LINE: Final = re.compile(r"\A```[^\n`]*\n\s*+")
_UNDECIDED_CHARS: Final = 160
_ACTION: Final = re.compile(
    r"Action:[ \t]{0,8}[\w.-]{0,64}[ \t]{0,8}\r?(?:\n(?P<next>.*))?", re.DOTALL
)
_PYTHON_WORDS: Final = {"True": "true", "False": "false", "None": "null"}


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
    if len(preface) > PREFACE_CHARS or "```" in preface or _QUOTES.search(preface):
        return None
    try:
        found = [each for each, _ in islice(calls_in(text, start.start()), MOST_CALLS + 1)]
        if not 0 < len(found) <= MOST_CALLS:
            return None
        calls = tuple(_call(each, request) for each in found)
        if begin + len(preface) > 0 and any(call.name == PROPOSE_TOOL_ID for call in calls):
            return None
    except ValueError:  # JSON that is none included
        return None
    return None if _is_echo(calls, request) else calls


def without_calls(text: str, request: CompleteRequest) -> str:
    """The text without what looks like a call: for people.

    A chat template's marks are withheld, with all that follows them where it cannot be read. JSON and
    Python are withheld where they name a tool or pass arguments. Other data is part of an answer.
    """
    kept: list[str] = []
    at = tries = 0
    names = {name for tool in request.tools for name in (tool.name, tool.name.split("__")[-1])}
    while (start := _START.search(text, at)) and tries < _MOST_TRIES:
        tries += 1
        end, is_call = _reach(text, start.start(), names)
        if not is_call and not _is_certain(text, start.start(), names):
            kept.append(text[at : start.end()])
            at = start.end()
            continue
        kept.append(text[at : start.start()])
        at = end if is_call else len(text)
    for start in _START.finditer(text, at):  # after the last try
        if _is_certain(text, start.start(), names):
            return "".join((*kept, text[at : start.start()]))
    return "".join((*kept, text[at:]))


def _is_certain(text: str, at: int, names: set[str]) -> bool:
    """Whether what begins there is meant as a call, though it cannot be read as one."""
    named = _NAMED.match(text, at) or _NAMED_IN_PYTHON.match(text, at)
    return bool(_OF_TEMPLATE.match(text, at)) or (named is not None and named[1] in names)


def _reach(text: str, at: int, names: set[str]) -> tuple[int, bool]:
    """Where the calls that begin there end, and whether there is any."""
    end, is_call = at, False
    try:
        for each, found in islice(calls_in(text, at), MOST_CALLS):
            is_call = is_call or each.has_arguments or each.name in names
            end = found
    except ValueError:
        pass  # what follows the calls is the answer's text
    closing = _CLOSING.match(text, end)
    return closing.end() if closing else end, is_call


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
    """Values that came as text, as the types that the tool's schema names."""
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


def _may_become_call(line: str) -> bool:
    """Whether the beginning of a line can still become the beginning of a call."""
    head = line.lstrip(" \t")
    if len(line) - len(head) > 3:
        return False
    code = _FENCE_LINE.sub("", head) or head
    if any(code.startswith(word) or word.startswith(code) for word in PLAIN_BEGINNINGS[1:]):
        return True
    action = _ACTION.fullmatch(head)
    if action or "Action:".startswith(head):
        following = action["next"] if action else None
        return following is None or "Action Input:".startswith(following)
    return not _NO_CALL.match(line)


class HeldText:
    """One answer's text. `feed` gives what may be shown now, `close` the rest."""

    __slots__ = (
        "_begun",
        "_edge",
        "_held",
        "_held_chars",
        "_passes",
        "_request",
        "_shown",
        "is_withheld",
    )

    def __init__(self, request: CompleteRequest) -> None:
        self._request = request
        self._passes = False
        self._begun: str | None = ""  # of a line that may become a call; None: within another line
        self._edge = ""  # the end of what was read, which may become a token within a line
        self._held: list[str] = []
        self._held_chars = 0
        self._shown: list[str] = []
        self.is_withheld = False

    def feed(self, text: str) -> str:
        """The part of it, and of what came before, that is no call."""
        if self._passes:
            return text
        if self._held:
            return self._hold(text)
        within = self._begun is None and "\n" not in text
        shown = self._apart(text if within else self._read(text))
        if shown:
            self._shown.append(shown)
        return shown

    def close(self, *, may_call: bool) -> tuple[str, tuple[ToolCall, ...]]:
        """What is left to show, and the calls that it was instead.

        `may_call`: the answer is whole, and the model made no call of its own.
        """
        rest = self._edge + "".join(self._held) + (self._begun or "")
        self._edge, self._held, self._begun, self._passes = "", [], None, True
        if may_call and rest:
            found = written_calls("".join([*self._shown, rest]), self._request)
            if found is not None:
                return "", found
        return self._without_calls(rest), ()

    def _apart(self, text: str) -> str:
        """What may be shown of it, up to a token within a line that begins a call."""
        text, self._edge = self._edge + text, ""
        if found := _INLINE.search(text):
            rest = text[found.start() :] + "".join(self._held) + (self._begun or "")
            self._begun, self._held, self._held_chars = None, [], 0
            return text[: found.start()] + self._hold(rest)
        if self._begun is None and not self._held and (found := _INLINE_BEGINNING.search(text)):
            self._edge = text[found.start() :]
            return text[: found.start()]
        return text

    def _without_calls(self, text: str) -> str:
        left = without_calls(text, self._request)
        self.is_withheld = self.is_withheld or left != text
        return left

    def _hold(self, text: str) -> str:
        self._held.append(text)
        self._held_chars += len(text)
        if self._held_chars <= MOST_CHARS:
            return ""
        self._passes = True
        shown, self._held = self._without_calls("".join(self._held)), []
        return shown

    def _read(self, text: str) -> str:
        at = 0 if self._begun is not None else text.find("\n") + 1
        text = (self._begun or "") + text
        while True:
            if _CALL.match(text, at):
                self._begun = None
                return text[:at] + self._hold(text[at:])
            if len(text) - at <= _UNDECIDED_CHARS and _may_become_call(text[at:]):
                self._begun = text[at:]
                return text[:at]
            at = text.find("\n", at) + 1
            if not at:
                self._begun = None
                return text
