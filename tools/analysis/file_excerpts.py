"""The excerpt of a long text: its beginning, its end, and its kinds of error lines. Pure."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from tools.log_templates import template_of, without_clock

# What a model reads of a file at once; about 7,000 tokens.
HEAD_CHARS: Final = 12_000
TAIL_CHARS: Final = 12_000
PAGE_CHARS: Final = 20_000
MAX_ERRORS: Final = 12
_ERROR_CHARS: Final = 300
_ERROR: Final = re.compile(
    r"\b(?:error|errors|fatal|critical|severe|panic|exception|traceback|emerg|alert)\b"
    r"|(?:Error|Exception)\b|\bE[0-9]{4} ",
    re.IGNORECASE,
)
_NO_ERROR: Final = re.compile(
    r"\b(?:no|0|zero|without) errors?\b|\berrors?[\"']?[=:] ?0\b", re.IGNORECASE
)
_READ_CHARS: Final = 2_000  # of a line, for errors


@dataclass(frozen=True, slots=True)
class ErrorLine:
    """One kind of error in a text: how often, and where first (lines count from 1)."""

    line: int
    count: int
    text: str


def error_lines(lines: Sequence[str]) -> list[ErrorLine]:
    """The kinds of error lines in a text, most frequent first."""
    counts: Counter[str] = Counter()
    first: dict[str, tuple[int, str]] = {}
    for number, line in enumerate(lines, start=1):
        told = line[:_READ_CHARS]
        if _ERROR.search(told) is None or _NO_ERROR.search(told) is not None:
            continue
        template = template_of(told)
        counts[template] += 1
        first.setdefault(template, (number, told))
    return [
        ErrorLine(
            first[template][0], count, without_clock(first[template][1]).strip()[:_ERROR_CHARS]
        )
        for template, count in counts.most_common(MAX_ERRORS)
    ]


def head_of(text: str, most: int = HEAD_CHARS) -> str:
    """The beginning, cut between lines where there are any."""
    if len(text) <= most:
        return text
    at = text.rfind("\n", most // 2, most)
    return text[: at if at > 0 else most]


def tail_of(text: str, most: int = TAIL_CHARS) -> str:
    """The end, in the same way."""
    if len(text) <= most:
        return text
    at = text.find("\n", len(text) - most, len(text) - most // 2)
    return text[at + 1 if at > 0 else len(text) - most :]
