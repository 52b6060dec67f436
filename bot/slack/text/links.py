"""Which links of an answer stay clickable: http(s) to allowed hosts. All else is inert code.

A link a model writes can carry data out, so the default allows no host at all. Images never stay:
showing one is a request to its host. What is not allowed is not looked up in a list of names: new
top-level domains appear every year and clients differ in which they link. A name, a dot and a word of
letters is a host, a name before an `@` and one after it an address. What passes unchanged is what no
registry can delegate: numbers, versions, `p99.9`, `e.g.` (RFC 3696 section 2, RFC 5890: a top-level
domain begins with two letters, as `xn--` does).
"""

import html
import itertools
import re
import unicodedata
from dataclasses import dataclass
from functools import lru_cache
from typing import Final
from urllib.parse import urlsplit

from bot.domain.ids import MessageTs, Place
from bot.slack.text.mrkdwn import INERT_BACKTICK, clean, escape

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
# Every host, address or scheme has one; an entity may replace any of them.
_ADDRESS_SIGN = re.compile(r"[.@:&]")

_TOKEN = re.compile(
    rf"""
    !?\[(?P<label>[^\[\]\n]{{0,300}})\]\([ \t]*<?(?P<dest>[^\s<>()]{{0,2000}}(?:\([^\s<>()]{{0,500}}\)[^\s<>()]{{0,500}}){{0,4}})>?
        (?:[ \t]+(?:"[^"\n]{{0,300}}"|'[^'\n]{{0,300}}'))?[ \t]*\)
    | <(?P<auto>[A-Za-z][A-Za-z0-9+.-]{{1,30}}:[^\s<>]{{0,4000}})>
    | (?P<url>(?:(?<![A-Za-z0-9])[A-Za-z][A-Za-z0-9+.-]{{0,30}})?://[^\s<>`|\[\]]*)
    | (?P<scheme>{SCHEME}[^\s<>`\[\]]+)
    | (?P<word>(?:(?!(?:[A-Za-z][A-Za-z0-9+.-]{{0,30}})?://)[^\s<>`|\[\]()"]|\(\))+)
    """,
    re.VERBOSE | re.IGNORECASE,
)
_ESCAPED_PUNCTUATION = re.compile(r"\\(?=[:/.@])")
# The rest of a link that the grammar above did not recognise.
_LINK_JOINT = re.compile(r"\](?=[(\[])")
# Of where a link leads, also in a quote or a list.
_DEFINITION = re.compile(r"^((?:\s|>|[-*+]\s|\d{1,9}[.)]\s)*\[[^\]\n]*\]):")
# An address that stayed, and the text that a reader takes for more of it.
_OPEN_ADDRESS = re.compile(r"https?://[^\s<>]*$", re.IGNORECASE)
_LEADING = "*_~'"
_TRAILING = ".,;:!?)'\"*_~"


def folded(text: str) -> str:
    """The text as a lenient reader sees it, sign for sign: full-width forms and odd dots as ASCII."""
    if text.isascii():
        return text
    return "".join(_folded(sign) for sign in text)


def reads_as_address(word: str) -> bool:
    """Whether the word (no spaces, folded) holds a host, an address or a scheme."""
    if _ADDRESS_SIGN.search(word) is None:
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


_PERMALINK = re.compile(
    r"/archives/[A-Z0-9]{2,30}/p[0-9]{10,21}"
    r"(?:\?thread_ts=[0-9]{1,12}\.[0-9]{1,9}&cid=[A-Z0-9]{2,30})?",
    re.ASCII,
)


# One is itself alone: each remembered line of an answer is looked up by its text and its policy.
@dataclass(frozen=True, slots=True, eq=False)
class LinkPolicy:
    """Hosts that answers may link to, in lower case, matched whole.

    Of the workspace's own `site` only links to messages: they hold ids, and lead nowhere else.
    """

    hosts: frozenset[str] = frozenset()
    site: str = ""

    def allows(self, url: str) -> bool:
        """An http(s) URL with an allowed host, no user part, nothing a reader may parse twice."""
        if (
            self.site
            and url.startswith(f"{self.site}/")
            and _PERMALINK.fullmatch(url, len(self.site))
        ):
            return True
        if not self.hosts or not url.isascii() or "\\" in url:
            return False
        try:
            parts = urlsplit(url)
            host = parts.hostname or ""
            port_is_sane = parts.port is None or parts.port > 0
        except ValueError:
            return False
        return (
            parts.scheme in {"http", "https"}
            and "@" not in parts.netloc
            and host in self.hosts
            and port_is_sane
        )


NO_LINKS = LinkPolicy()


def code(text: str, before: str = "") -> str:
    """Inline code; `before` is what precedes it, lest a backslash or backtick there undo it.

    Nor may an address run into it: readers take all up to the next space for the address, and the
    code's first mark with it.
    """
    space = " " if before.endswith(("`", "\\")) or _OPEN_ADDRESS.search(before) else ""
    return f"{space}`{escape(text.replace('`', INERT_BACKTICK))}`"


def safe_links(text: str, policy: LinkPolicy) -> str:
    """One line outside code: escaped, its links inert unless the policy allows them."""
    text = _DEFINITION.sub(r"\1 :", _ESCAPED_PUNCTUATION.sub("", text))
    probe = folded(text)
    out = ""
    position = 0
    for match in _TOKEN.finditer(probe):
        if match["word"] is not None and not reads_as_address(match["word"]):
            continue
        out += _joints(text[position : match.start()])
        out += _token(match, text, policy, out)
        position = match.end()
    return out + _joints(text[position:])


# Of each call and its result at every edit.
@lru_cache(maxsize=1_024)
def remark(text: str, max_chars: int) -> str:
    """A sentence of a model's or an upstream's as mrkdwn: one line, its links inert, cut to fit."""
    flat = " ".join(clean(text).split()).replace("`", INERT_BACKTICK)
    safe = safe_links(flat, NO_LINKS)
    room = min(len(flat), max_chars)
    while len(safe) > max_chars:
        safe = safe_links(flat[: room - 1] + "…", NO_LINKS)
        room -= max(1, len(safe) - max_chars)
    return safe


def _joints(text: str) -> str:
    return escape(_LINK_JOINT.sub("] ", text))


def _token(match: re.Match[str], text: str, policy: LinkPolicy, before: str) -> str:
    if match["label"] is not None:
        return _inline_link(match, text, policy, before)
    if match["auto"] is not None:
        url = text[slice(*match.span("auto"))]
        return url if policy.allows(url) else code(url, before)
    return _bare(text[slice(*match.span())], policy, before)


def _inline_link(match: re.Match[str], text: str, policy: LinkPolicy, before: str) -> str:
    label = safe_links(text[slice(*match.span("label"))], policy)
    dest = text[slice(*match.span("dest"))]
    # A label that begins with code must not join a backslash or backtick before it.
    gap = " " if before.endswith(("`", "\\")) and not match.group().startswith("!") else ""
    if not match.group().startswith("!") and policy.allows(dest):
        return f"{gap}[{label}]({dest})"
    shown = f" ({code(dest)})" if dest else ""
    return f"{gap or (' ' if label.startswith('`') and before else '')}{label}{shown}"


def _bare(written: str, policy: LinkPolicy, before: str) -> str:
    start = len(written) - len(written.lstrip(_LEADING))
    core = written[start:].rstrip(_TRAILING)
    if not core:
        return escape(written)
    if written[start + len(core) :].startswith(")") and core.endswith("("):
        core += ")"  # a call, as in `pool.acquire()`
    lead, tail = escape(written[:start]), escape(written[start + len(core) :])
    if policy.allows(core):
        return lead + core + tail
    return lead + code(core, before + lead) + tail


def defanged(text: str) -> str:
    """Plain text with addresses written as `host[.]name`, so that no client links them."""
    return " ".join(
        re.sub(r"[.@:\u3002\uff0e\uff61\u2024\ufe52\uff1a\uff20]", r"[\g<0>]", word)
        if reads_as_address(folded(word)) or "://" in folded(word)
        else word
        for word in text.split(" ")
    )


_MESSAGE_TS: Final = re.compile(r"[0-9]{1,12}\.[0-9]{1,9}", re.ASCII)
_CHANNEL_ID: Final = re.compile(r"[A-Z0-9]{2,30}", re.ASCII)

# Six digits after the point: a message's ts without it.
_MESSAGE_LINK: Final = re.compile(
    r"https?://[^/\s]+/archives/([A-Z0-9]{2,30})/p([0-9]{7,18})(?:\?(?:.*&)?thread_ts=([0-9]+\.[0-9]+).*|\?.*)?",
    re.ASCII,
)


def permalink(site: str, place: Place, ts: MessageTs) -> str:
    """The message's link, as chat.getPermalink gives it; empty for an unknown site or invalid ids."""
    if not (site and _MESSAGE_TS.fullmatch(ts) and _CHANNEL_ID.fullmatch(place.channel)):
        return ""
    root = place.thread_ts
    is_reply = root and root != ts and _MESSAGE_TS.fullmatch(root)
    within = f"?thread_ts={root}&cid={place.channel}" if is_reply else ""
    return f"{site.rstrip('/')}/archives/{place.channel}/p{ts.replace('.', '')}{within}"


def thread_of(link: str) -> tuple[str, str] | None:
    """Channel and thread root of a message link; None for other links."""
    found = _MESSAGE_LINK.fullmatch(link.strip())
    if found is None:
        return None
    channel, digits, root = found.groups()
    return channel, root or f"{digits[:-6]}.{digits[-6:]}"
