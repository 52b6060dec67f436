"""Whether a value looks random or written: rules by place check it before they mask.

A check gets the name of the value's field ("" if the rule has none) and the value.
"""

import base64
import math
import re
from collections import Counter
from functools import lru_cache
from typing import Final

from bot.privacy.lists import read_list

_WORDS: Final = frozenset(str(read_list("words")).split())
_UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_HEX_DIGEST = re.compile(r"(?:sha\d+:)?[0-9a-fA-F]+")
# What a template, a reference or code puts where the value would be.
_REFERENCE = re.compile(
    r"^(?:\$|%[({]|\{\{|\{[a-zA-Z_.]*\}|<|\*{2,}|x{4,}$|\.\.\.|…|env[.:(]|os\.|process\.|vault:|ref\+"
    r"|arn:|https?://[^\s:@]*$|file:|/(?:etc|var|run|usr|opt|home|tmp|mnt|secrets?|app|data|dev|proc)/"
    r"|\[redacted|[A-Za-z_][\w]*\.[A-Za-z_][\w.]*$|[A-Za-z_][\w.]*[(\[]|null\b|none\b|nil\b|true\b|false\b)",
    re.IGNORECASE,
)
# Names that say "key" or "token" and hold something people need to see.
_OPEN_NAME = re.compile(
    r"(?i)(?:public|page|next|continuation|resume|cursor|cache|partition|sort|primary|foreign|row|group"
    r"|routing|object|idempotency|dedup\w*|correlation|message|event|shard|lookup|map|json|yaml|dict"
    r"|storage|redis|index|hash|schema|label|metric|topology|annotation|sync|lock|ssh[_-]?host|host|git"
    r"|registry|hot|short|arrow|enter|translation|i18n|locale|csrf|xsrf|etag|trace|span|commit|revision"
    r"|s3|state|order|item|data|config|blind|kms|encryption|registry|tuple|context|feature|flag|image"
    r"|rate[_-]?limit|bucket|s3|blob|file|path|field|column|attribute|property|sticky|session[_-]?affinity"
    r"|key)[_.-]?(?:key|token|hash)$"
)
_PASSWORD_NAME = re.compile(r"(?i)pass|pwd")
_STRONG_NAME = re.compile(
    r"(?i)pass|pwd|secret|(?:api|access|auth)[_-]?key|private|credential|cvv|pin$"
)
_KEY_ONLY = re.compile(r"(?i)^(?:.*[^a-z])?key(?:[_-]?multi)?$|^[a-z]+key$")
_NOT_A_KEY = re.compile(
    r"(?i)commit|sha\d*|digest|hash|rev|version|image|tag|build|deploy|release|name|host|url|path|file"
    r"|trace|span|request|event|message|log|time|date|uid|[^a-z]id$|[a-z]id$|Id$|issue|pod|job|run\b"
)
_KEY_WORD = re.compile(r"(?i)key|token|secret|auth|api|pass|access|client|app")
# Words written together, as names in code are; chance seldom makes humps so long.
_CAMEL = re.compile(r"[A-Za-z][a-z]{1,15}(?:[A-Z][a-z]{1,15}){1,4}")
# A variable in code, where a value would be.
_VARIABLE = re.compile(r"(?:[a-z]+\.)?[a-z]+(?:_[a-z]+)+")
# The text after an empty value on its line.
_NEXT_PAIR = re.compile(
    r"(?:user(?:name)?|host(?:name)?|port|level|lvl|msg|message|err(?:or)?|status|path|method|code|ip|addr|db|database"
    r"|name|url|uri|duration|took|time|ts|id|request_?id|trace_?id|caller|component|service|namespace|pod|container)="
)
_SEPARATED = re.compile(r"[-_./:]")
_DIGIT = re.compile(r"[0-9]")
_LOWER = re.compile(r"[a-z]")
_UPPER = re.compile(r"[A-Z]")
_SYMBOL = re.compile(r"[^A-Za-z0-9._-]")


def entropy(text: str) -> float:
    """Shannon's, in bits per character."""
    total = len(text)
    return -sum(n / total * math.log2(n / total) for n in Counter(text).values()) if total else 0.0


def is_wordlike(text: str) -> bool:
    """Whether people named it: words, numbers and a Kubernetes suffix, joined by separators."""
    parts = [p for p in _SEPARATED.split(text) if p]
    return all(
        (p.isalpha() and (p.islower() or p.isupper() or p.istitle()) and len(p) <= 20)
        or (len(parts) > 1 and _CAMEL.fullmatch(p) is not None)
        or (p.isdigit() and len(p) <= 10)
        or (len(p) <= 10 and p.islower() and len(parts) > 1)
        or (len(p) <= 4)
        for p in parts
    )


def random(_: str, value: str) -> bool:
    """Letters and digits, not a name."""
    lower, upper = _LOWER.search(value), _UPPER.search(value)
    has_both = _DIGIT.search(value) and (lower or upper)
    if not has_both and not (len(value) >= 20 and lower and upper):
        return False
    return not is_wordlike(value) and not _REFERENCE.match(value)


def assigned_quoted(name: str, value: str) -> bool:
    """A quoted value: spaces and short ones are possible, prose and code are not."""
    text = value.strip()
    if len(text) < 4 or _is_open(name, text):
        return False
    if _STRONG_NAME.search(name):
        return _strong(name, text)
    return len(text) >= 8 and " " not in text and _under_a_weak_name(name, text)


def assigned_plain(name: str, value: str) -> bool:
    """An unquoted value, which ends at the first space."""
    text = value.rstrip(".,;:!?")
    if len(text) < 6 or _is_open(name, text) or _NEXT_PAIR.match(text):
        return False
    if _PASSWORD_NAME.search(name):
        return _strong(name, text)
    return len(text) >= 8 and _under_a_weak_name(name, text)


def header_value(_: str, value: str) -> bool:
    """After a header's name: anything but a word that says how things are, or code."""
    return value.lower().rstrip(".") not in _WORDS and _VARIABLE.fullmatch(value) is None


def spoken(name: str, value: str) -> bool:
    """After the name and a space: only what cannot be a word or a name."""
    return _mixed(value) and random(name, value) and not _OPEN_NAME.search(name)


def vendor_value(name: str, value: str) -> bool:
    """With a vendor's name: random, and not excluded by the rest of the name.

    An id or a digest counts if the name mentions a key, or is only the vendor's.
    """
    if _NOT_A_KEY.search(name) or not random(name, value) or len(set(value)) < 8:
        return False
    if _UUID.fullmatch(value) or _HEX_DIGEST.fullmatch(value):
        return not name or _KEY_WORD.search(name) is not None
    return entropy(value) > 3.0


def is_reference(value: str) -> bool:
    """Whether the value is a template, a path or a word instead."""
    return value.lower() in _WORDS or _REFERENCE.match(value) is not None


def _is_open(name: str, value: str) -> bool:
    return _is_open_name(name) or is_reference(value) or len(set(value)) <= 2


@lru_cache(maxsize=256)  # names repeat themselves
def _is_open_name(name: str) -> bool:
    return _OPEN_NAME.search(name) is not None


@lru_cache(maxsize=256)
def _is_key_name(name: str) -> bool:
    return _KEY_ONLY.search(name) is not None and not _STRONG_NAME.search(name)


def _strong(name: str, text: str) -> bool:
    """Under a password's name nearly everything is one; a name that repeats its key is code."""
    if " " in text:
        return len(text) <= 64 and not re.match(
            r"(?i)(?:must|is|was|should|cannot|can|has|not)\b", text
        )
    if "pass" in name.lower() or "pwd" in name.lower():
        return text.lower().strip("_-") != name.lower().strip("_-") and not text.isspace()
    return _mixed(text) and (not is_wordlike(text) or not _SEPARATED.search(text))


def _under_a_weak_name(name: str, text: str) -> bool:
    if _is_key_name(name):
        return _mixed(text) and _keylike(name, text)
    if _UUID.fullmatch(text):
        return True
    return _mixed(text) and not is_wordlike(text)


def _keylike(name: str, text: str) -> bool:
    """A bare `key` holds cache keys, digests and paths as well."""
    if _UUID.fullmatch(text):
        return "_" in name
    is_digest = _HEX_DIGEST.fullmatch(text) is not None
    is_path = text.startswith("/") or text.count("/") + text.count(":") + text.count(".") > 3
    return (
        len(text) >= 16
        and not is_digest
        and not is_path
        and not is_wordlike(text)
        and entropy(text) > 3.0
    )


def _mixed(text: str) -> bool:
    lower, upper, digit = _LOWER.search(text), _UPPER.search(text), _DIGIT.search(text)
    if digit:
        return bool(lower or upper)
    return bool(lower and upper and (len(text) >= 20 or _SYMBOL.search(text)))


def artifactory(_: str, value: str) -> bool:
    """`AP` with a digit or at least a mixture behind it."""
    return any(c.isdigit() for c in value) and any(c.islower() for c in value)


def base64_pair(_: str, value: str) -> bool:
    """`user:password` behind base64; what does not decode is judged by its look."""
    try:
        decoded = base64.b64decode(value + "=" * (-len(value) % 4))
    except ValueError:
        return random("", value)
    return b":" in decoded or (_mixed(value) and not value.isalpha())
