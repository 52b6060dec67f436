"""Log lines folded into templates, the constant part of similar lines. Pure.

Masks instead of a learned tree (drain3 and its likes): the same line gives the same template in any
order and in any process, it needs neither training nor state, nor a further dependency (drain3
0.9.11, the newest, pins releases of jsonpickle and cachetools of January 2021).
"""

import re
from collections.abc import Collection
from typing import Final

MAX_CHARS: Final = 200
_READ_CHARS: Final = 4000  # of a line; a stack trace's cause is within it
_CLOCK: Final = re.compile(
    r"^\W*(\d{4}[-/]\d\d[-/]\d\d[T ])?\d\d:\d\d:\d\d([.,]\d+)?(Z|[+-]\d\d:?\d\d)?\W*"
)
_MESSAGE_KEY: Final = re.compile(r"^(?:level=\w+\s+)?msg=", re.IGNORECASE)
# Where structured lines say what happened; their other fields are of one request.
_SAID: Final = (
    "msg|message|event|error|err|exception|exc_info|reason|cause|stack|stack_trace|detail"
)
_JSON_SAID: Final = re.compile(
    rf'(?i)"(?:[\w.]*[._])?(?:{_SAID})"\s*:\s*"((?:[^"\\]|\\.){{1,1000}})"'
)
_JSON_KEY: Final = re.compile(r'"([\w.@-]+)"\s*:')
_PAIR_SAID: Final = re.compile(rf"""(?i)\b(?P<key>{_SAID})=(["'])(?P<said>.{{0,1000}}?)\2""")
_REQUESTS: Final = ("trace", "span", "request", "correlation")
_REQUEST_ID: Final = re.compile(rf"\b({'|'.join(_REQUESTS)})[_-]?id\W{{1,3}}[\w-]+", re.IGNORECASE)
_MAIL: Final = re.compile(r"\b[\w.+-]+@[\w-]+(\.[\w-]+)+\b")
_ADDRESS: Final = re.compile(r"\b\d{1,3}(\.\d{1,3}){3}(:\d+)?\b")
_QUOTED: Final = re.compile(r"""'[^']{0,200}'|"[^"]{0,200}\"""")
_UUID: Final = re.compile(r"\b[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\b")
_HEX: Final = re.compile(r"[0-9a-fA-F]{7,}")
# Begins with a set of characters, so that text between numbers is skipped fast.
_NUMBER: Final = re.compile(r"[-0-9](?:[0-9]|[.,:][0-9])*")
_DIGITS: Final = re.compile(r"\d+")
_UNIT: Final = re.compile(r"(ms|s|us|µs|ns|m|h|kb|mb|gb|b|%)?\b", re.IGNORECASE)
_NUMBERS: Final = re.compile(r"<n>(?:[\s,;:/|-]*<n>)+[\s,;:/|-]*")
_CAUSE: Final = re.compile(r"^\s*Caused by: ([^\n]{1,300})", re.MULTILINE)


def template_of(line: str) -> str:
    """What stays the same from one such line to the next; of a stack trace also its last cause.

    Of a line in JSON only what it says happened, of `key="value"` lines that as it is.
    """
    text = _said(line[:_READ_CHARS])
    causes = _CAUSE.findall(text) if "Caused by" in text else ()
    first = _CLOCK.sub("", text.lstrip().partition("\n")[0])
    if causes:
        first = f"{first} ← {causes[-1]}"
    return " ".join(_masked(first).split())[:MAX_CHARS]


def _masked(text: str) -> str:
    lowered = text.lower()
    if "id" in lowered and any(word in lowered for word in _REQUESTS):
        text = _REQUEST_ID.sub("", text)
    if "@" in text:
        text = _MAIL.sub("<mail>", text)
    if text.count(".") >= 3:
        text = _ADDRESS.sub("<addr>", text)
    if "'" in text or '"' in text:
        text = _QUOTED.sub("<text>", text)
    if text.count("-") >= 4:
        text = _UUID.sub("<id>", text)
    text = _NUMBER.sub(_number, _HEX.sub(_id, text))
    return _NUMBERS.sub("<n> ", text) if text.count("<n>") > 1 else text


def _id(found: re.Match[str]) -> str:
    """An identifier is a word of its own with a digit in it; other such words are words."""
    text, word, (start, end) = found.string, found[0], found.span()
    is_part = (start > 0 and _is_letter(text[start - 1])) or (
        end < len(text) and _is_letter(text[end])
    )
    return word if is_part or word.isalpha() else "<id>"


def _number(found: re.Match[str]) -> str:
    """A number with its sign, points and colons as one; in names each run of digits."""
    text, word, start = found.string, found[0], found.start()
    if word == "-":
        return word
    before = text[start - 1] if start else " "
    sign = ""
    if word[0] == "-" and (_is_letter(before) or before == "."):
        sign, before = "-", "-"
    if _is_letter(before) or before == "." or not _UNIT.match(text, found.end()):
        return _DIGITS.sub("<n>", word)
    return f"{sign}<n>"


def _is_letter(character: str) -> bool:
    return character.isalnum() or character == "_"


def without_clock(line: str) -> str:
    """A line without its time and request ids, which are noise in a quotation."""
    told = _REQUEST_ID.sub("", _CLOCK.sub("", line.lstrip()[:_READ_CHARS]))
    return _MESSAGE_KEY.sub("", told)


def named_in(text: str, names: Collection[str]) -> tuple[str, ...]:
    """The names that a text contains as whole words."""
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
    if '="' not in text and "='" not in text:
        return text
    return _PAIR_SAID.sub(r"\g<key>=\g<said>", text)
