"""Log severities in order, and the spellings that backends use for them."""

import re
from typing import Final

from tools.errors import InvalidArguments

LEVELS = ("debug", "info", "warn", "error", "fatal")
_SPELLINGS = {
    "trace": "debug",
    "notice": "info",
    "warning": "warn",
    "err": "error",
    "critical": "fatal",
    "crit": "fatal",
    "emerg": "fatal",
    "panic": "fatal",
    "alert": "fatal",
    "severe": "error",
    "d": "debug",  # klog and Android write the first letter
    "i": "info",
    "w": "warn",
    "e": "error",
    "f": "fatal",
    "10": "debug",  # pino and bunyan write numbers
    "20": "debug",
    "30": "info",
    "40": "warn",
    "50": "error",
    "60": "fatal",
}

_HEAD_CHARS: Final = 512
_WORDS: Final = (
    "TRACE|DEBUG|INFO|NOTICE|WARNING|WARN|ERROR|ERR|SEVERE|FATAL|CRITICAL|CRIT|PANIC|EMERG|ALERT"
)
# As RE2 and as Python read them. A key (`"level":"error"`, `level=error`) counts before a word in
# capitals or brackets near the beginning, and that before klog's letter (`E1122 10:00:00`).
KEYED: Final = (
    r"""(?i)\b(?:level|severity|lvl|log_?level|levelname|severity_text)["']?\s*[:=]\s*["']?"""
    r"""(?P<level>[a-z]+|[1-6]0)\b"""
)
_AFTER_WORD: Final = r"(?:[\s\]|)>:,]|$)"
WORD: Final = (
    rf"^(?:.{{0,120}}?[\s|(<])?(?P<level>{_WORDS}|\[(?:{_WORDS}|{_WORDS.lower()})\]){_AFTER_WORD}"
)
KLOG: Final = r"^(?P<level>[DIWEF])[0-9]{4} [0-9]{2}:"


def normalized(level: str) -> str:
    """One of LEVELS; any other level is returned in lower case."""
    lowered = level.strip().lower()
    return _SPELLINGS.get(lowered, lowered)


def level_in(line: str) -> str:
    """The level that a line itself states, one of LEVELS; empty when it states none."""
    head = line[:_HEAD_CHARS]
    for pattern in (KEYED, WORD, KLOG):
        found = re.search(pattern, head)
        level = normalized(found["level"].strip("[]")) if found else ""
        if level in LEVELS:
            return level
    return ""


def at_least(minimum: str) -> frozenset[str]:
    """Every spelling of the levels from a minimum up. Raises InvalidArguments on an unknown one."""
    lowest = normalized(minimum)
    if lowest not in LEVELS:
        raise InvalidArguments(f"unknown level {minimum!r}; levels are: {', '.join(LEVELS)}")
    wanted = frozenset(LEVELS[LEVELS.index(lowest) :])
    return wanted | {spelling for spelling, level in _SPELLINGS.items() if level in wanted}


def stated_in_lines(minimum: str) -> list[tuple[str, str]]:
    """Patterns (RE2) for lines that state a level from a minimum up; the first that matches counts.

    Each pair is the pattern of those levels, and that of any level. Raises as `at_least`.
    """
    wanted, known = at_least(minimum), at_least(LEVELS[0])
    return [(_stating(one, wanted), _stating(one, known)) for one in (KEYED, WORD, KLOG)]


def _stating(pattern: str, levels: frozenset[str]) -> str:
    before, _, rest = pattern.partition("(?P<level>")
    any_case = pattern is KEYED
    words = sorted(level if any_case else level.upper() for level in levels)
    if pattern is KEYED:
        return f"{before}(?:{'|'.join(words)}){rest.partition(')')[2]}"
    if pattern is KLOG:
        letters = "".join(word for word in words if len(word) == 1)
        return f"{before}[{letters}]{rest.partition(')')[2]}"
    named = [word for word in words if word in _WORDS.split("|")]
    either = "|".join([*named, rf"\[(?:{'|'.join([*named, *(word.lower() for word in named)])})\]"])
    return f"{before}(?:{either}){_AFTER_WORD}"
