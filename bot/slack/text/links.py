"""Which links of an answer stay clickable: http(s) to allowed hosts. All others become inert code.

A link a model writes can carry data out, so the default allows no host at all. Images never stay:
showing one is a request to its host.
"""

import re
from dataclasses import dataclass
from urllib.parse import urlsplit

from bot.slack.text.mrkdwn import INERT_BACKTICK, escape

# Names Slack and Markdown readers turn into links even without a scheme.
_LINKED_TLDS = frozenset(
    re.findall(
        r"\w+",
        """
        ai app biz br ca cc ch click cloud cn co com de dev edu eu fr gg gov in info int io
        it jp link live me mil mobi mov ms net nl online org page pl pw ru sh shop site so space store su tech to top tv uk us website xyz zip
        """,
    )
)
_TOKEN = re.compile(
    r"""
    !?\[(?P<label>[^\[\]\n]{0,300})\]\([ \t]*<?(?P<dest>[^\s<>()]{0,2000}(?:\([^\s<>()]{0,500}\)[^\s<>()]{0,500}){0,4})>?
        (?:[ \t]+(?:"[^"\n]{0,300}"|'[^'\n]{0,300}'))?[ \t]*\)
    | <(?P<auto>[A-Za-z][A-Za-z0-9+.-]{1,30}:[^\s<>]{0,4000})>
    | (?P<url>(?:(?<![A-Za-z0-9])[A-Za-z][A-Za-z0-9+.-]{0,30})?://[^\s<>`|\[\]]*)
    | (?P<scheme>\b(?:mailto|tel|sms|javascript|data|file|slack|callto):(?=\S)[^\s<>`\[\]]+)
    | (?P<www>\bwww\.[^\s<>`\[\]]+)
    | (?P<host>(?<![\w.@-])(?:[\w.+-]{1,64}@)?(?:[\w-]{1,63}\.){1,10}(?P<tld>[^\W\d_]{2,24})(?![\w-])
        (?P<path>(?::\d{1,5})?(?:[/?\#][^\s<>`\[\]]*)?))
    """,
    re.VERBOSE | re.IGNORECASE,
)
_ESCAPED_PUNCTUATION = re.compile(r"\\(?=[:/.@])")
# What is left of a link that the grammar above did not recognise.
_LINK_JOINT = re.compile(r"\](?=[(\[])")
_DEFINITION = re.compile(r"^(\s*\[[^\]\n]*\]):")
_TRAILING = ".,;:!?)'\"*_~"


@dataclass(frozen=True, slots=True)
class LinkPolicy:
    """Hosts that answers may link to, in lower case, matched whole."""

    hosts: frozenset[str] = frozenset()

    def allows(self, url: str) -> bool:
        """An http(s) URL with an allowed host, no user part, nothing a reader may parse twice."""
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
    """Inline code; `before` is what precedes it, lest a backslash or backtick there undo it."""
    space = " " if before.endswith(("`", "\\")) else ""
    return f"{space}`{escape(text.replace('`', INERT_BACKTICK))}`"


def safe_links(text: str, policy: LinkPolicy) -> str:
    """One line outside code: escaped, its links inert unless the policy allows them."""
    text = _DEFINITION.sub(r"\1 :", _ESCAPED_PUNCTUATION.sub("", text))
    out = ""
    position = 0
    for match in _TOKEN.finditer(text):
        out += _joints(text[position : match.start()])
        out += _token(match, policy, out)
        position = match.end()
    return out + _joints(text[position:])


def _joints(text: str) -> str:
    return escape(_LINK_JOINT.sub("] ", text))


def _token(match: re.Match[str], policy: LinkPolicy, before: str) -> str:
    if match["label"] is not None:
        return _inline_link(match, policy, before)
    if match["auto"] is not None:
        url = match["auto"]
        return url if policy.allows(url) else code(url, before)
    if match["host"] is not None and not match["path"] and match["tld"].lower() not in _LINKED_TLDS:
        return escape(match.group())
    return _bare(match.group(), policy, before)


def _inline_link(match: re.Match[str], policy: LinkPolicy, before: str) -> str:
    label = safe_links(match["label"], policy)
    dest = match["dest"]
    # A label that begins with code must not join a backslash or backtick before it.
    gap = " " if before.endswith(("`", "\\")) and not match.group().startswith("!") else ""
    if not match.group().startswith("!") and policy.allows(dest):
        return f"{gap}[{label}]({dest})"
    shown = f" ({code(dest)})" if dest else ""
    return f"{gap or (' ' if label.startswith('`') and before else '')}{label}{shown}"


def _bare(url: str, policy: LinkPolicy, before: str) -> str:
    core = url.rstrip(_TRAILING)
    if not core:
        return escape(url)
    tail = escape(url[len(core) :])
    if policy.allows(core):
        return core + tail
    return code(core, before) + tail
