"""The textual forms of tool calls, as models write them when the wire has no field for them or
leaks it.

Each form names its source. Marks, which chat templates put around calls, carry no meaning of their
own. Parsing is linear in the text.
"""

import ast
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import orjson

from adapters.llm.brackets import NoCall, json_end, python_end
from adapters.llm.wire_json import is_shallow

Json = Mapping[str, object]

_MOST_DIGITS: Final = 18  # of a whole number that every reader keeps as it is
_MOST_PYTHON_CHARS: Final = 16 * 1024
_NAME: Final = r"[a-zA-Z0-9_.-]{1,64}"

_LANGUAGES: Final = (
    r"(?:json[lc5]?|tool(?:_calls?|_code|_use)?|function(?:_call)?|xml|text|python)?"
)
_TAGS: Final = r"(?:[a-z]{2,16}:|longcat_)?(?:tool_calls?|tool_use|function_calls?|tool_code|tool_request|tools?|toolcall|TOOLCALL|TOOL_CALLS?)"
ANY_FENCE: Final = r"```[ \t]{0,8}[\w.+-]{0,16}[ \t]{0,8}\r?\n\s{0,64}"
FENCE: Final = rf"```[ \t]{{0,8}}{_LANGUAGES}[ \t]{{0,8}}\r?\n\s{{0,64}}"
NAME_KEYS: Final = ("name", "tool", "tool_name", "function", "action", "recipient_name")
ARGUMENT_KEYS: Final = ("arguments", "parameters", "args", "input", "action_input")
# Every tool's id begins so. Code that begins so is therefore a call in any form.
TOOL_ID: Final = r"(?:core|plugin|mcp)__\w{1,64}"

# Only a chat template begins a line with these, so they are never shown.
TEMPLATE: Final = (
    rf"</?{_TAGS}>|</?use_mcp_tool>|<(?:function_call|tool_call|tool_use)\s|<tool\s|</?{TOOL_ID}[\s/>]|<<(?:function>>|TOOL\s)|<function=|</?(?:antml:)?invoke\b|<\|[a-z_A-Z/]{{1,40}}\|>|</?｜(?:tool|DSML)|\[TOOL_(?:CALLS|REQUEST)\]"
    rf"|<start_function_call>|(?:assistant[ \t]{{0,8}})?to=functions\."
    rf"|>>>{_NAME}\r?\n\s{{0,64}}\{{|functools\[|```tool_code\b"
    rf"|Action:[ \t]{{0,8}}{_NAME}[ \t]{{0,8}}\r?\nAction Input:"
)
# The same inside a line: models put their tokens right behind a sentence. Not in inline code.
INLINE: Final = (
    r"(?<!`)(?:<\|(?=[a-z_A-Z]{0,40}(?:tool|call|action|ACTION|plugin|channel|python|constrain))[a-z_A-Z]{1,40}\|>"
    r"|<｜(?:tool|DSML)|\[TOOL_(?:CALLS|REQUEST)\]|<(?:[a-z]{2,16}:|longcat_)?(?:tool_calls?|function_calls)>|<function=)"
)
# A prefix that may still become one of these, JSON or Python.
INLINE_BEGINNING: Final = (
    r"(?:`?(?:<[｜|]?[\w:]{0,44}\|?|\[[A-Z_]{0,12})|[\"'`]{0,3}(?:\[\s{0,64})?(?:\{\s{0,64}\\{0,3})?"
    r"|[\"']?(?<![\w.])(?:c|co|cor|core_?|p|pl|plu|plug|plugi|plugin_?|m|mc|mcp_?|(?:core|plugin|mcp)__\w{0,64}(?:\(\w{0,64}\s?|[\"'`”]?\s{0,3}(?:[,:]\s{0,3}(?:[\"'“]?\w{0,10}|\[\s{0,8}))?|[ \t]{1,4}[-\"']{1,2}|[ \t]{0,4}\\\r?(?:\n[ \t]{0,16}-{0,2})?)?"
    r"|k|ko|kor|kort|korte|kortex(?:[ \t]{1,4}(?:\w{1,64}[ \t]{1,4}){0,3}(?:\w{1,64}|-{1,2}|[\"'])?)?))\Z"
)
# Python, which an answer may hold as well. Calls inside a line are in `adapters.llm.named_calls`.
PYTHON: Final = rf"\[\s{{0,64}}\w{{1,64}}\(|(?:print\()?(?:functions\.|default_api\.)?{TOOL_ID}\("
# JSON anywhere: in a sentence, quotes or a list, or escaped. Most of it is data of an answer.
JSON: Final = r"[\"'`]{0,3}(?:\[\s{0,64})?\{\s{0,64}\\{0,3}[\"']"
# Before a call at the beginning of a line: the mark of a list, a quotation or a table.
LEAD: Final = r"[ \t]{0,3}(?:(?:[-*+•>|]|[0-9]{1,3}[.)])[ \t]{1,4}){0,3}"
# How a call begins at the beginning of a line. Bounded, so that no text is scanned twice.
BEGINS: Final = f"{TEMPLATE}|{PYTHON}"
# How a form begins in plain text, while it is still incomplete.
PLAIN_BEGINNINGS: Final = (
    "Action:", "functools[", ">>>", "<|", "<｜tool", "<｜DSML", "to=functions.", "assistant to=functions.",
    "core__", "plugin__", "mcp__", "print(", "functions.", "default_api.",
)  # fmt: skip

# Llama 3's and Phi-4's `<|python_tag|>` and `<|tool_call|>`, Llama 4's `<|python_start|>`, LFM2's
# `<|tool_call_start|>`, Cohere's `<|START_ACTION|>`, InternLM's `<|action_start|><|plugin|>`, Kimi's
# sections, Mistral's `[TOOL_CALLS]`, Firefunction's `functools`, the ends of messages.
_MARK: Final = re.compile(
    rf"</?{_TAGS}>|</arguments>|</use_mcp_tool>|<\|[a-z_A-Z/]{{1,40}}\|>|<｜tool▁(?:calls?|outputs?)▁(?:begin|end)｜>|\[(?:/?TOOL_CALLS|(?:END_)?TOOL_REQUEST)\]"
    r"|functools(?=\[)|```(?!\w)|</function>|</(?:antml:)?invoke>|Action:(?=\s*(?:```|\[))"
    # List marks and quotes. Text behind a quotation mark was written by another person.
    r"|(?:[-*+•]|[0-9]{1,3}[.)])[ \t]{1,4}|[\"'`]{1,3}(?!\w)|,(?=\s{0,64}[\[{])"
)
_FENCE: Final = re.compile(FENCE)


@dataclass(frozen=True, slots=True)
class Written:
    """A call as written. `is_text`: its values are text, of any type.

    `has_arguments` False: JSON with only a name, which may be other data.
    """

    name: str
    arguments: Json
    is_text: bool = False
    has_arguments: bool = True


# A name, then JSON. `name` is the tool.
_NAMED_JSON: Final = (
    # Mistral v11 and later: https://github.com/mistralai/mistral-common (tokens/tokenizers/tekken.py)
    re.compile(rf"\[TOOL_CALLS\]\s{{0,8}}(?P<name>{_NAME})(?:\[CALL_ID\]\w{{1,64}})?(?:\[ARGS\])?\s{{0,8}}(?=\{{)"),
    # DeepSeek V3 and R1, V3.1: chat_template of https://huggingface.co/deepseek-ai/DeepSeek-V3.1
    re.compile(rf"<｜tool▁call▁begin｜>(?:function<｜tool▁sep｜>)?(?P<name>{_NAME})(?:<｜tool▁sep｜>|\s{{0,8}}```json)\s{{0,8}}(?=\{{)"),
    # Kimi K2: https://huggingface.co/moonshotai/Kimi-K2-Instruct/blob/main/docs/tool_call_guidance.md
    re.compile(r"<\|tool_call_begin\|>\s{0,8}(?:functions\.)?(?P<name>[\w-]{1,64})(?::\d{1,6})?\s{0,8}<\|tool_call_argument_begin\|>\s{0,8}(?=\{)"),
    # gpt-oss: https://cookbook.openai.com/articles/openai-harmony
    re.compile(rf"(?:<\|start\|>assistant)?<\|channel\|>(?:commentary|analysis)\s{{1,8}}to=(?:functions\.)?(?P<name>{_NAME})\s{{0,8}}(?:<\|constrain\|>\s?json\s{{0,8}}|json\s{{0,8}})?<\|message\|>\s{{0,8}}(?=\{{)"),
    re.compile(rf"(?:<\|start\|>)?(?:assistant)?[ \t]{{0,8}}to=functions\.(?P<name>{_NAME})\s{{0,8}}<\|channel\|>(?:commentary|analysis)\s{{0,8}}(?:<\|constrain\|>\s?)?(?:(?:json|code)\s{{0,8}})?<\|message\|>\s{{0,8}}(?=\{{)"),
    # ReAct: https://arxiv.org/abs/2210.03629, as LangChain's agents word it
    re.compile(rf"Action:[ \t]{{0,8}}(?P<name>{_NAME})[ \t]{{0,8}}\r?\nAction Input:\s{{0,8}}(?=\{{)"),
    # Cline's prompt: https://github.com/cline/cline (src/core/prompts, "use_mcp_tool")
    re.compile(rf"<use_mcp_tool>\s{{0,64}}(?:<server_name>[^<]{{0,80}}</server_name>\s{{0,64}})?<tool_name>\s{{0,8}}(?P<name>{_NAME})\s{{0,8}}</tool_name>\s{{0,64}}<arguments>\s{{0,64}}(?=\{{)"),
    # Tags with the name as an attribute, as models mix the forms above.
    re.compile(rf"<(?:function_call|tool_call|tool_use)\s{{1,8}}name=[\"'](?P<name>{_NAME})[\"']>\s{{0,64}}(?=\{{)"),
    # Functionary v3.2: https://github.com/MeetKai/functionary
    re.compile(rf">>>(?P<name>{_NAME})\r?\n\s{{0,8}}(?=\{{)"),
    # Llama 3.1's custom tools: https://www.llama.com/docs/model-cards-and-prompt-formats/llama3_1
    re.compile(rf"<function=(?P<name>{_NAME})>\s{{0,8}}(?=\{{)"),
)  # fmt: skip
# A name, then values as text: how it begins, one value, how it ends.
_NAMED_TEXT: Final = (
    # Qwen3-Coder, Seed-OSS: chat_template of https://huggingface.co/Qwen/Qwen3-Coder-30B-A3B-Instruct
    (
        re.compile(rf"<function=(?P<name>{_NAME})>\s{{0,64}}"),
        re.compile(rf"<parameter=(?P<key>{_NAME})>(?P<value>(?:(?!</parameter>).)*+)</parameter>\s{{0,64}}", re.DOTALL),
        re.compile(r"</function>|\Z"),
    ),
    # Claude before its tools, MiniMax M2: https://docs.claude.com, https://huggingface.co/MiniMaxAI/MiniMax-M2
    (
        re.compile(rf"<(?:antml:)?invoke name=\"(?P<name>{_NAME})\">\s{{0,64}}"),
        re.compile(rf"<(?:antml:)?parameter name=\"(?P<key>{_NAME})\"[^>\n]{{0,40}}>(?P<value>(?:(?!</(?:antml:)?parameter>).)*+)</(?:antml:)?parameter>\s{{0,64}}", re.DOTALL),
        re.compile(r"</(?:antml:)?invoke>|\Z"),
    ),
    # GLM 4.5 and later: chat_template of https://huggingface.co/zai-org/GLM-4.5. LongCat's tags have a prefix:
    # https://huggingface.co/meituan-longcat/LongCat-Flash-Chat
    (
        re.compile(rf"<(?:longcat_)?tool_call>\s{{0,8}}(?P<name>{_NAME})\s{{0,64}}(?=<(?:longcat_)?arg_key>|</(?:longcat_)?tool_call>)"),
        re.compile(rf"<(?:longcat_)?arg_key>(?P<key>{_NAME})</(?:longcat_)?arg_key>\s{{0,64}}<(?:longcat_)?arg_value>(?P<value>(?:(?!</(?:longcat_)?arg_value>).)*+)</(?:longcat_)?arg_value>\s{{0,64}}", re.DOTALL),
        re.compile(r"</(?:longcat_)?tool_call>|\Z"),
    ),
)  # fmt: skip
# Llama 3.2 and 4, LFM2, OLMo 3, Gemma (https://ai.google.dev/gemma/docs/capabilities/function-calling):
# a list of Python calls, or one call within a mark.
_PYTHON: Final = re.compile(r"\[\s{0,64}(?=\w{1,64}\()|(?=(?:print\()?[\w.]{1,80}\()")


def calls_in(text: str, at: int) -> Iterator[tuple[Written, int]]:
    """Every call from `at` to the end of the text, with its end position.

    Raises NoCall, or another ValueError, for anything else. The closing mark may be missing: models
    that stop early leave it out.
    """
    while (at := _past_marks(text, at)) < len(text):
        found, at = _one(text, at)
        yield from ((each, at) for each in found)


def _past_marks(text: str, at: int) -> int:
    while at < len(text):
        if text[at].isspace():
            at += 1
        elif any(form.match(text, at) for form in _NAMED_JSON) or any(
            begin.match(text, at) for begin, _, _ in _NAMED_TEXT
        ):
            break
        elif mark := _FENCE.match(text, at) or _MARK.match(text, at):
            at = mark.end()
        else:
            break
    return at


def _one(text: str, at: int) -> tuple[Sequence[Written], int]:
    for form in _NAMED_JSON:
        if head := form.match(text, at):
            end = json_end(text, head.end())
            return [Written(head["name"], _object(loaded(text[head.end() : end])))], end
    for begin, value, closing in _NAMED_TEXT:
        if head := begin.match(text, at):
            return _with_text(text, head, value, closing)
    if text[at] in "{[" and not _PYTHON.match(text, at):
        data, end = json_at(text, at)
        return [asked_in(each) for each in _flat(data)], end
    if _PYTHON.match(text, at):
        end = python_end(text, at if text[at] == "[" else text.index("(", at))
        return _python_calls(text[at:end]), end
    raise NoCall("neither JSON nor any known form")


def json_at(text: str, at: int) -> tuple[object, int]:
    """The value that begins at `at` (also escaped or in Python's quotes), and its end.

    Raises NoCall if it does not end, and otherwise ValueError.
    """
    end = json_end(text, at)
    found = text[at:end]
    try:
        return loaded(found), end
    except NoCall:
        raise
    except ValueError:
        if '\\"' in found:
            return loaded(found.replace('\\"', '"').replace("\\\\", "\\")), end
        return _literal(found), end


def _literal(code: str) -> object:
    if len(code) > _MOST_PYTHON_CHARS:
        raise NoCall("too long")
    try:
        tree = ast.parse(code, mode="eval")
        value = orjson.dumps(ast.literal_eval(tree))
    except (TypeError, SyntaxError, RecursionError, MemoryError):
        raise NoCall("values that JSON cannot say") from None
    for node in ast.walk(tree):
        if isinstance(node, ast.Dict) and len(set(map(ast.dump, filter(None, node.keys)))) < len(
            node.keys
        ):
            raise NoCall("a key is there twice")
    return loaded(value.decode())


def _with_text(
    text: str, head: re.Match[str], value: re.Pattern[str], closing: re.Pattern[str]
) -> tuple[Sequence[Written], int]:
    at, values = head.end(), dict[str, object]()
    while each := value.match(text, at):
        if each["key"] in values:
            raise NoCall("a key is there twice")
        values[each["key"]] = each["value"].removeprefix("\n").removesuffix("\n")
        at = each.end()
    end = closing.match(text, at)
    if end is None:
        raise NoCall("more than a name and parameters")
    return [Written(head["name"], values, is_text=True)], end.end()


def _python_calls(code: str) -> Sequence[Written]:
    if len(code) > _MOST_PYTHON_CHARS:
        raise NoCall("too long")
    try:
        tree = ast.parse(code, mode="eval").body
    except (SyntaxError, RecursionError, MemoryError):
        raise NoCall("not Python") from None
    return [_python_call(each) for each in (tree.elts if isinstance(tree, ast.List) else [tree])]


def _python_call(node: ast.expr) -> Written:
    match node:
        case ast.Call(func=ast.Name(id="print"), args=[inner], keywords=[]):
            return _python_call(inner)
        case ast.Call(func=ast.Name(id=name), args=[], keywords=keywords):
            pass
        case ast.Call(
            func=ast.Attribute(value=ast.Name(id="default_api" | "functions"), attr=name),
            args=[],
            keywords=keywords,
        ):
            pass
        case _:
            raise NoCall("more than a call with named arguments")
    try:
        values = {each.arg: ast.literal_eval(each.value) for each in keywords if each.arg}
        text = orjson.dumps(values).decode()
    except (TypeError, SyntaxError, RecursionError, MemoryError):
        raise NoCall("values that JSON cannot say") from None
    if len(values) != len(keywords):
        raise NoCall("more than named arguments")
    return Written(name, _object(loaded(text)))


def loaded(text: str) -> object:
    """Strict JSON that every parser reads the same way. Raises ValueError."""
    if not is_shallow(orjson.loads(text)):  # NaN, surrogates and a thousand brackets end here
        raise NoCall("nested too deep")
    value: object = json.loads(text, object_pairs_hook=_once, parse_int=_whole)
    return value


def _once(pairs: Sequence[tuple[str, object]]) -> dict[str, object]:
    value = dict(pairs)
    if len(value) != len(pairs):
        raise NoCall("a key is there twice")
    return value


def _whole(digits: str) -> int:
    if len(digits) > _MOST_DIGITS:
        raise NoCall("a number of more digits than all readers keep")
    return int(digits)


def _flat(value: object) -> Iterator[Json]:
    for each in value if isinstance(value, list) else [value]:
        if not isinstance(each, dict):
            raise NoCall("no object")
        listed = each.get("tool_calls")
        if set(each) == {"tool_calls"} and isinstance(listed, list):
            yield from (_object(one) for one in listed)
        elif len(each) == 1 and set(each) < {
            "tool_call",
            "function_call",
            "functionCall",
            "toolUse",
        }:
            yield _object(next(iter(each.values())))
        else:
            yield each


def _object(value: object) -> Json:
    if not isinstance(value, dict):
        raise NoCall("no object")
    return value


def asked_in(call: Json) -> Written:
    """Name and arguments in any of the usual spellings, without other keys. Raises NoCall."""
    own = {
        k: v
        for k, v in call.items()
        if k not in ("id", "index", "type", "tool_call_id", "toolUseId")
    }
    if call.get("type", "function") not in ("function", "tool_call", "tool_use", "function_call"):
        raise NoCall("of another type")
    inner = own.get("function")
    if set(own) == {"function"} and isinstance(inner, dict):
        own = dict(inner)
    names = [own.pop(key) for key in NAME_KEYS if key in own]
    given = [own.pop(key) for key in ARGUMENT_KEYS if key in own]
    if own or len(names) != 1 or len(given) > 1 or not isinstance(names[0], str):
        raise NoCall("more or less than a name and arguments")
    arguments = given[0] if given else {}
    if isinstance(arguments, str):
        arguments = loaded(arguments or "{}")
    value = _object({} if arguments is None else arguments)
    return Written(names[0], value, has_arguments=bool(given))
