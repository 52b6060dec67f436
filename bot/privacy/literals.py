"""Configured secrets, found literally in every encoding that text about them comes in."""

import base64
import json
from collections.abc import Iterable
from typing import Any, Final
from urllib.parse import quote, quote_plus

from bot.privacy.matching import compiled

# Masking shorter values would eat ordinary words.
SHORTEST_CHARS: Final = 6
# Shorter than this, a value counts only as a whole word.
SHORTEST_INSIDE_WORDS_CHARS: Final = 8
# Fewer characters of an encoding than this are met by chance.
SHORTEST_ENCODED: Final = 8
# As `html.escape` writes it; that module brings every entity's name, a third of a MB.
_HTML: Final = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#x27;"})


def matcher(secrets: Iterable[str]) -> Any | None:
    """A compiled pattern of all forms, the longest first; None when there are no secrets."""
    inside: set[bytes] = set()
    whole: set[bytes] = set()
    for secret in secrets:
        if len(secret) >= SHORTEST_INSIDE_WORDS_CHARS:
            inside |= forms(secret)
        elif len(secret) >= SHORTEST_CHARS:
            whole |= forms(secret)
    parts = [_escaped(f) for f in sorted(inside, key=lambda f: (-len(f), f))]
    parts += [rb"\b" + _escaped(f) + rb"\b" for f in sorted(whole, key=lambda f: (-len(f), f))]
    return compiled(b"|".join(parts)) if parts else None


def forms(secret: str) -> set[bytes]:
    """The secret as it is, in URLs, JSON, HTML, Base64 at any offset, and hexadecimal."""
    raw = secret.encode()
    escaped = json.dumps(secret)[1:-1]
    texts = {
        secret,
        secret.strip(),
        quote(secret, safe=""),
        quote(secret),
        quote_plus(secret),
        quote(quote(secret, safe=""), safe=""),
        escaped,
        json.dumps(secret, ensure_ascii=False)[1:-1],
        json.dumps(escaped)[1:-1],
        secret.translate(_HTML),
        repr(secret)[1:-1],
        raw.hex(),
        raw.hex().upper(),
        raw.hex(":"),
    }
    texts |= {_lower_escapes(t) for t in tuple(texts) if "%" in t}
    encoded = {e for e in _base64_forms(raw) if len(e) >= SHORTEST_ENCODED}
    return {t.encode() for t in texts if t} | encoded


def _base64_forms(raw: bytes) -> set[bytes]:
    """The part of the secret's Base64 that is independent of the bytes around it."""
    found = set()
    for offset in range(3):
        padded = base64.b64encode(b"\0" * offset + raw)
        first = (0, 2, 3)[offset]  # these characters hold bits of the bytes before
        last = len(padded) - (0, 3, 2)[(offset + len(raw)) % 3]
        stable = padded[first:last]
        found |= {stable, stable.translate(bytes.maketrans(b"+/", b"-_"))}
    return found


def _lower_escapes(text: str) -> str:
    pieces = text.split("%")
    return "%".join([pieces[0], *(p[:2].lower() + p[2:] for p in pieces[1:])])


def _escaped(form: bytes) -> bytes:
    return b"".join(
        bytes([b]) if bytes([b]).isalnum() and b < 0x80 else b"\\x%02x" % b for b in form
    )
