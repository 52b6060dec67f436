"""The filter of a log query: plain text, or a LogQL pipeline such as `|= "timeout" != "probe"`.

Checks that a pipeline cannot leave its place behind the selector, and evaluates line filters for
backends that cannot.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from json import JSONDecodeError, loads
from typing import Any

import re2

from tools.errors import InvalidArguments

_OPERATORS = ("|=", "|~", "!=", "!~")
_MAX_CHARS = 2000
_MAX_REGEX_BYTES = 8 << 20  # RE2's own default budget for one compiled pattern

LineTest = Callable[[str], bool]


@dataclass(frozen=True, slots=True)
class Stage:
    """One of `|=`, `!=`, `|~`, `!~`, and the text or RE2 pattern that it is about."""

    operator: str
    operand: str

    @property
    def wanted(self) -> bool:
        return self.operator.startswith("|")

    @property
    def is_pattern(self) -> bool:
        return self.operator.endswith("~")


def as_pipeline(text: str) -> str:
    """The filter as LogQL stages to append to a selector; plain text becomes `|= "text"`.

    Raises InvalidArguments for a pipeline that contains a selector, a range or an open string.
    """
    stripped = _checked_length(text)
    if not stripped:
        return ""
    if not _is_pipeline(stripped):
        return f"|= {quoted(stripped)}"
    for char in _outside_strings(stripped):
        if char in "{}[]#":
            raise InvalidArguments(
                f"{char!r} is not allowed in a filter: write stages only, such as "
                '|= "timeout"; the product and the time range are set by their own arguments'
            )
    return stripped


def line_test(text: str) -> LineTest:
    """Evaluates plain text and line filters, case-sensitive as LogQL's.

    Raises InvalidArguments for other stages, and for a pattern RE2 cannot compile.
    """
    tests = [_stage_test(stage) for stage in stages_of(text)]
    return lambda line: all(test(line) for test in tests)


def stages_of(text: str) -> Sequence[Stage]:
    """The filter as stages, for backends with a language of their own; plain text is one.

    Raises as `line_test`.
    """
    stripped = _checked_length(text)
    if stripped and not _is_pipeline(stripped):
        return [Stage("|=", stripped)]
    stages = [Stage(operator, operand) for operator, operand in _stages(stripped)]
    for stage in stages:
        if stage.is_pattern:
            _compiled(stage.operand)
    return stages


def pattern_of(stage: Stage) -> str:
    """The stage as an RE2 pattern, to be looked for anywhere in a line."""
    return stage.operand if stage.is_pattern else re.escape(stage.operand)


def quoted(text: str) -> str:
    """A LogQL (Go) string literal."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(char if char >= " " else f"\\x{ord(char):02x}" for char in escaped) + '"'


def _checked_length(text: str) -> str:
    if len(text) > _MAX_CHARS:
        raise InvalidArguments(f"the filter is longer than {_MAX_CHARS} characters")
    if any("\ud800" <= char <= "\udfff" for char in text):
        raise InvalidArguments("the filter holds half a character; write it whole")
    stripped = text.strip()
    if stripped.startswith("{"):
        raise InvalidArguments(
            'leave the selector out: the product is selected already; write |= "text" only'
        )
    return stripped


def _is_pipeline(text: str) -> bool:
    return text.startswith(("|", "!=", "!~"))


def _outside_strings(text: str) -> Iterator[str]:
    index = 0
    while index < len(text):
        if text[index] in "\"`'":
            index = _string_end(text, index)
        else:
            yield text[index]
            index += 1


def _string_end(text: str, start: int) -> int:
    quote, index = text[start], start + 1
    while index < len(text):
        if text[index] == "\\" and quote != "`":
            index += 2
            continue
        if text[index] == quote:
            return index + 1
        index += 1
    raise InvalidArguments(f"a string in the filter is never closed: {text[start : start + 40]}")


def _stages(text: str) -> Iterator[tuple[str, str]]:
    rest = text
    while rest:
        operator, operand = rest[:2], rest[2:].lstrip()
        if operator not in _OPERATORS or operand[:1] not in {'"', "`"}:
            raise InvalidArguments(
                f"cannot filter by {rest[:40]!r}: here only plain text and "
                '|= "text", != "text", |~ "regex", !~ "regex" are understood'
            )
        end = _string_end(operand, 0)
        yield operator, _unquoted(operand[:end])
        rest = operand[end:].lstrip()


def _unquoted(literal: str) -> str:
    if literal.startswith("`"):
        return literal[1:-1]
    try:
        return str(loads(literal))
    except JSONDecodeError as error:
        raise InvalidArguments(
            f"invalid string {literal}: double the backslashes or use backticks"
        ) from error


def _stage_test(stage: Stage) -> LineTest:
    operand, wanted = stage.operand, stage.wanted
    if not stage.is_pattern:
        return lambda line: (operand in line) is wanted
    pattern = _compiled(operand)
    return lambda line: (pattern.search(line) is not None) is wanted


def _compiled(pattern: str) -> Any:
    options = re2.Options()
    options.log_errors = False  # RE2 would print to stderr
    options.max_mem = _MAX_REGEX_BYTES
    try:
        return re2.compile(pattern, options)
    except re2.error as error:
        raise InvalidArguments(f"invalid regular expression {pattern!r}: {error}") from error
