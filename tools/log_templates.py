"""Log lines folded into templates: what stays the same from one such line to the next. Pure.

Masks instead of a learned tree (drain3 and its likes): the same line gives the same template in any
order and in any process, nothing has to be trained or kept, and no dependency is added (drain3 0.9.11, the
newest, pins releases of jsonpickle and cachetools of January 2021).
"""

import re
from collections.abc import Collection
from typing import Final

MAX_CHARS: Final = 200
_READ_CHARS: Final = 4000  # of a line; a stack trace's cause is within it
_CLOCK: Final = re.compile(
    r"^\W*(\d{4}[-/]\d\d[-/]\d\d[T ])?\d\d:\d\d:\d\d([.,]\d+)?(Z|[+-]\d\d:?\d\d)?\W*"
)
# Where structured lines say what happened; their other fields are of one request.
_SAID: Final = (
    "msg|message|event|error|err|exception|exc_info|reason|cause|stack|stack_trace|detail"
)
_JSON_SAID: Final = re.compile(
    rf'(?i)"(?:[\w.]*[._])?(?:{_SAID})"\s*:\s*"((?:[^"\\]|\\.){{1,1000}})"'
)
_JSON_KEY: Final = re.compile(r'"([\w.@-]+)"\s*:')
_PAIR_SAID: Final = re.compile(rf"""(?i)\b(?P<key>{_SAID})=(["'])(?P<said>.{{0,1000}}?)\2""")
_MASKS: Final = (
    (re.compile(r"(?i)\b(trace|span|request|correlation)[_-]?id\W{1,3}[\w-]+"), ""),
    (re.compile(r"\b[\w.+-]+@[\w-]+(\.[\w-]+)+\b"), "<mail>"),
    (re.compile(r"\b\d{1,3}(\.\d{1,3}){3}(:\d+)?\b"), "<addr>"),
    (re.compile(r"""'[^']{0,200}'|"[^"]{0,200}\""""), "<text>"),
    (re.compile(r"(?i)\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b"), "<id>"),
    (re.compile(r"(?i)\b(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{7,}\b|\b\d{7,}\b"), "<id>"),
    (
        re.compile(
            r"(?<![\w.])-?\d+([.,:]\d+)*(?=(ms|s|us|µs|ns|m|h|kb|mb|gb|b|%)?\b)", re.IGNORECASE
        ),
        "<n>",
    ),
    (re.compile(r"\d+"), "<n>"),
    (re.compile(r"(<n>[\s,;:/|-]*){2,}"), "<n> "),
)
_CAUSE: Final = re.compile(r"^\s*Caused by: ([^\n]{1,300})", re.MULTILINE)


def template_of(line: str) -> str:
    """What stays the same from one such line to the next; of a stack trace also its last cause.

    Of a line in JSON only what it says happened, of `key="value"` lines that as it is.
    """
    text = _said(line[:_READ_CHARS])
    causes = _CAUSE.findall(text)
    first = _CLOCK.sub("", text.lstrip().partition("\n")[0])
    if causes:
        first = f"{first} ← {causes[-1]}"
    for pattern, mask in _MASKS:
        first = pattern.sub(mask, first)
    return " ".join(first.split())[:MAX_CHARS]


def named_in(text: str, names: Collection[str]) -> tuple[str, ...]:
    """Those that a text names as words of their own."""
    lowered = text[:_READ_CHARS].lower()
    return tuple(
        name
        for name in sorted(names)
        if name.lower() in lowered
        and re.search(rf"(?<![\w-]){re.escape(name.lower())}(?![\w-])", lowered)
    )


def _said(text: str) -> str:
    if text.lstrip().startswith("{"):
        found = _JSON_SAID.findall(text)
        parts = (part.replace("\\n", "\n").replace('\\"', '"') for part in found)
        return " | ".join(parts) or _JSON_KEY.sub(r"\1:", text)
    return _PAIR_SAID.sub(r"\g<key>=\g<said>", text)
