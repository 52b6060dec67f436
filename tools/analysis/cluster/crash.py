"""The lines of a container's log that say why it ended."""

import re
from collections.abc import Sequence
from typing import Final

from tools.log_templates import without_clock

MOST_CHARS: Final = 400
_CAUSED: Final = re.compile(r"^\s*Caused by: (.+)")
_REASON: Final = re.compile(
    r"(?i)\b(?:panic|denied|refused|unauthorized|not found|no such|not set|already in use|"
    r"out of memory|segmentation fault|unknown host|unresolved|missing|is required|too many|"
    r"cannot|can't|could not|couldn't|unable to|failed to|timed? ?out|read-only|no space left)\b"
    r"|UnknownHost|ENOTFOUND|ECONNREFUSED|EADDRINUSE|EACCES"
)
_ERROR: Final = re.compile(
    r"(?i)\b(?:fatal|critical|uncaught|unhandled)\b|Error\b|Exception\b|ERROR\b"
)
# Frames, properties of an error object, and runtimes that fetch no log.
_NO_REASON: Final = re.compile(
    r"^\s*(?:at\s|\.{3} \d+|File \"|goroutine \d+|\S+\.go:\d+|(?!\w*(?:Error|Exception)\b)\w+: (?:true|false|null|\d+|'\w+'),?$)"
    r"|unable to retrieve container logs|^npm (?:notice|ERR! A complete log)"
)
_STAMP: Final = re.compile(r"^\S*\d{4}-\d\d-\d\dT\S+\s+")


def crash_reason(lines: Sequence[str]) -> str:
    """The deepest cause and the last errors, as one text; else the last line. Empty without lines."""
    said = [
        text
        for line in lines
        if (text := _STAMP.sub("", line).strip()) and not _NO_REASON.search(text)
    ]
    if not said:
        return ""
    causes = [found[1] for text in said if (found := _CAUSED.match(text))]
    own = [text for text in said if not _CAUSED.match(text)]
    reasons = [text for text in own if _REASON.search(text)]
    errors = [text for text in own if _ERROR.search(text)]
    parts = [*causes[-1:], *reasons[-1:], *errors[-1:]] or said[-1:]
    return "; ".join(map(_shortened, dict.fromkeys(parts)))[:MOST_CHARS]


def _shortened(text: str) -> str:
    """Without its time. A long line keeps its end, where the reason is."""
    words = " ".join(without_clock(text).split())
    return words if len(words) <= MOST_CHARS // 2 else "... " + words[-(MOST_CHARS // 2) :]
