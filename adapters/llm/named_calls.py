"""Calls that a tool's name gives away: Python, options and commands with its short name, and YAML.

They are withheld and never executed, because their values have no certain types.
"""

import re
from functools import lru_cache
from typing import Final

from adapters.llm.call_forms import (
    ANY_FENCE,
    ARGUMENT_KEYS,
    BEGINS,
    INLINE,
    JSON,
    LEAD,
    NAME_KEYS,
    TOOL_ID,
)
from adapters.llm.messages import CompleteRequest

_ANY_ID: Final = re.compile(TOOL_ID)
_LINE: Final = r"[ \t]{0,16}(?:-[ \t]{1,3})?[\"']?"
_YAML_KEY: Final = rf"(?i:{'|'.join(NAME_KEYS)})[\"']?:[ \t]{{1,4}}[\"']?"
# `call_tool("core__get_logs", {`, or in JSON that no reader takes: `{name: core__get_logs, arguments: {`.
_PASSED: Final = rf"(?:(?<=\([\"'])|(?<![\w\"'\\])){TOOL_ID}[\"'`”]?\s{{0,3}}[,:]\s{{0,3}}(?:[\"'“]?(?:{'|'.join(ARGUMENT_KEYS)})\b|\{{|\[\s{{0,8}}[{{\"'])"
# What follows a tool's name in a shell: options, or JSON.
_OPTION: Final = r"(?:[ \t]{1,4}|[ \t]{0,4}\\\r?\n[ \t]{0,16})(?:--?[a-zA-Z]|[\"']?\{)"
_KORTEX: Final = r"kortex[ \t]{1,4}(?:[a-z]{1,16}[ \t]{1,4}){0,2}"
_SHELL: Final = r"```(?:bash|sh|shell|zsh|console|shell-session|terminal)[ \t]{0,8}\r?\n\s{0,64}"
# To the end of its line, or of the code that it is in; with lines that it continues in.
_COMMAND: Final = re.compile(
    r"(?:\\\r?\n|(?<=[\s=])'[^']*+'|(?<=[\s=])\"(?:[^\"\\]|\\.)*+\"|[^\n`])*+", re.DOTALL
)
_YAML_ARGUMENTS: Final = re.compile(
    rf"\s{{0,64}}(?:[\"']?(?:{'|'.join(ARGUMENT_KEYS)})[\"']?:|(?<=:)\s{{1,64}}[\"']?\w{{1,64}}[\"']?:[ \t])",
    re.IGNORECASE,
)
# The lines below that belong to it: indented, or its arguments beside its name.
_YAML_BLOCK: Final = re.compile(
    rf"(?:[^\n]*(?:\r?\n[ \t]*(?=\r?\n[ \t]))*\r?\n(?:[ \t]+\S|[\"']?(?:{'|'.join(ARGUMENT_KEYS)})[\"']?:))*[^\n]*",
    re.IGNORECASE,
)
_LONGEST_WORD: Final = 65  # one more than a name has
_YAML_BEGINNING: Final = re.compile(
    rf"{_LINE}(?P<key>\w{{0,64}})[\"']?(?::[ \t]{{0,4}}[\"']?(?P<name>[\w.-]{{0,80}})[\"']?[ \t]{{0,8}}\r?)?"
)
_OPTION_BEGINNING: Final = re.compile(
    r"(?P<name>\w{1,64})(?:[ \t]{1,4}(?:-{0,2}\w{0,64}|[\"'])|[ \t]{0,4}\\\r?(?:\n[ \t]{0,16}-{0,2})?)"
)
_COMMAND_BEGINNING: Final = re.compile(rf"(?:[$%][ \t]{{0,3}}|[/@])?(?:{_KORTEX})?(?P<rest>.*)")


def tool_names(request: CompleteRequest) -> frozenset[str]:
    """The tools' ids and short names, and those of the calls that were made before."""
    ids = [tool.name for tool in request.tools]
    ids += [call.name for message in request.messages for call in message.tool_calls]
    return frozenset(name for each in ids for name in (each, each.split("__")[-1]))


@lru_cache(maxsize=32)
def start_of(names: frozenset[str]) -> re.Pattern[str]:
    """Where a call may begin. `json` and `data` are JSON, `named` is one of the forms of this module."""
    short = sorted((name for name in names if not _ANY_ID.fullmatch(name)), key=len, reverse=True)
    tool = "|".join((TOOL_ID, *map(re.escape, short)))
    python = rf"(?:{tool})\((?:\w{{1,64}}\s?=(?!=)|[{{\"'])"
    yaml = rf"{_LINE}(?:{_YAML_KEY}(?:{tool})[\"']?|{TOOL_ID}[\"']?:)[ \t]{{0,8}}\r?$"
    options = rf"[/@]?(?:{tool})[ \t]{{1,4}}(?:--)?\w{{1,64}}="
    tag = rf"</?(?:{'|'.join(map(re.escape, short)) or tool})[\s/>]"
    word = "|".join((TOOL_ID, *(re.escape(name) for name in short if "_" in name)))
    line = rf"[/@]?(?:{word}){_OPTION}|(?:[$%][ \t]{{1,3}})?{_KORTEX}(?:{word})\b|[$%/][ \t]{{0,3}}(?:{word})\b"
    inline = rf"(?<![\w\"'\\])(?:{TOOL_ID}|{_KORTEX}(?:{word})){_OPTION}"
    return re.compile(
        rf"^{LEAD}(?P<shell>{_SHELL}(?:[$%][ \t]{{1,3}})?(?:{_KORTEX})?(?:{word})\b)"
        rf"|^{LEAD}(?:{ANY_FENCE})?(?:(?P<json>{JSON})|{BEGINS}|{python}|(?P<named>{yaml}|{options})|(?P<tag>{tag})|(?P<line>{line}))"
        rf"|{INLINE}|(?P<data>{JSON})|(?<!\w){python}|(?P<passed>{_PASSED})|(?P<inline>{inline})",
        re.MULTILINE,
    )


def named_end(text: str, start: re.Match[str]) -> int | None:
    """Behind a call in YAML or with options; None where it has no arguments."""
    if start["named"].endswith("="):
        end = text.find("\n", start.end())
        return end if end >= 0 else len(text)
    if not _YAML_ARGUMENTS.match(text, start.end()):
        return None
    block = _YAML_BLOCK.match(text, start.end())
    return block.end() if block else start.end()


def command_end(text: str, start: re.Match[str]) -> int | None:
    """Behind a command of a shell that names a tool; None for other forms."""
    if not (start["shell"] or start["line"] or start["inline"]):
        return None
    command = _COMMAND.match(text, start.end())
    return command.end() if command else start.end()


def begins_word(text: str, at: int, names: frozenset[str]) -> int | None:
    """Where the last word begins, if it may still become a call in Python."""
    end = len(text)
    start = _word_before(text, at, end)
    if text[start:end] in _beginnings(names):
        return start
    if start == end > at and text[-1] == " ":
        start = _word_before(text, at, end - 1)
    if start > at and text[start - 1] == "(":
        first = _word_before(text, at, start - 1)
        return first if text[first : start - 1] in names else None
    return None


def _word_before(text: str, at: int, end: int) -> int:
    start = end
    while (
        start > at
        and end - start < _LONGEST_WORD
        and (text[start - 1] == "_" or text[start - 1].isalnum())
    ):
        start -= 1
    return start


@lru_cache(maxsize=32)
def _beginnings(names: frozenset[str]) -> frozenset[str]:
    return frozenset(name[:size] for name in names for size in range(1, len(name) + 1))


def begins_line(line: str, names: frozenset[str]) -> bool:
    """Whether the line may still become a call in one of these forms."""
    command = _COMMAND_BEGINNING.fullmatch(line)
    if command and command.start("rest"):
        line = command["rest"]
    if "kortex".startswith(line) or begins_word(line, 0, names) == 0:
        return True
    if option := _OPTION_BEGINNING.fullmatch(line):
        return option["name"] in names
    found = _YAML_BEGINNING.fullmatch(line)
    if found is None:
        return False
    key = found["key"].lower()
    if found["name"] is None:
        return any(each.startswith(key) for each in NAME_KEYS)
    return key in NAME_KEYS and (not found["name"] or found["name"] in _beginnings(names))
