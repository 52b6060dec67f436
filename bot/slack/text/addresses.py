"""Whether a word could be read as a host or an address, by any client, now or later.

New top-level domains appear every year and clients differ in which they link, so no list is kept:
a name, a dot and a word of letters is a host, a name before an `@` and one after it an address.
What passes unchanged is what no registry can delegate: numbers, versions, `p99.9`, `e.g.`
(RFC 3696 section 2, RFC 5890: a top-level domain begins with two letters, as `xn--` does).
"""

import html
import itertools
import re
import unicodedata
from functools import lru_cache

# Dots that IDNA takes for a full stop (RFC 3490 section 3.1); NFKC folds most other look-alikes.
_DOTS = {ord(sign): "." for sign in "\u3002\uff0e\uff61\u2024\ufe52"}
# What a name is made of: everything but space, dot, and the punctuation no name may hold.
_NAME = r"[^\s.!-,/:-@\[-^`{-~\u00ab\u00bb\u2010-\u2027\u2030-\u205e\u3001\u3008-\u3011]"
_RUN = re.compile(rf"(?:{_NAME}|\.)+")
_AT = re.compile(rf"{_NAME}@{_NAME}")
_LETTER = r"[^\W\d_]"
# However it goes on: where a client ends the name is not known.
_TOP_LEVEL = re.compile(
    rf"{_LETTER}(?:{_LETTER}|[\u0300-\u036f\u0900-\u0dff\u200c\u200d\ufe00-\ufe0f])"
)
_IPV4 = re.compile(r"(?<![\d.])(?:\d{1,3}\.){3}\d{1,3}(?![\d.]*\d)")
# Schemes that clients act on without `//` behind them.
SCHEME = (
    r"\b(?:mailto|tel|sms|javascript|vbscript|data|file|blob|slack|callto|facetime(?:-audio)?|skype"
    r"|sips?|xmpp|im|geo|maps|magnet|market|intent|view-source|about):(?=\S)"
)
_SCHEME = re.compile(SCHEME, re.IGNORECASE)
_EMPHASIS = re.compile(r"[*~]")


def folded(text: str) -> str:
    """The text as a lenient reader sees it, sign for sign: full-width forms and odd dots as ASCII."""
    if text.isascii():
        return text
    return "".join(_folded(sign) for sign in text)


def reads_as_address(word: str) -> bool:
    """Whether the word (no spaces, folded) holds a host, an address or a scheme."""
    if word.isalnum():
        return False
    plain = html.unescape(word) if "&" in word else word
    return any(_is_address(each) for each in {plain, _EMPHASIS.sub("", plain)})


def _is_address(word: str) -> bool:
    if any(sign.search(word) for sign in (_AT, _IPV4, _SCHEME)):
        return True
    return any(_is_host(run.group()) for run in _RUN.finditer(word))


def _is_host(run: str) -> bool:
    labels = run.split(".")
    return any(name and _TOP_LEVEL.match(top) for name, top in itertools.pairwise(labels))


@lru_cache(maxsize=4_096)
def _folded(sign: str) -> str:
    if ord(sign) in _DOTS:
        return "."
    alike = unicodedata.normalize("NFKC", sign)
    return alike if len(alike) == 1 else sign
