"""A model's Markdown, line by line, as Markdown that is safe for Slack.

Slack reads its own `<…>` tokens inside markdown blocks too, and shows entities as characters
(measured by PostHog in a live workspace). So one string serves both a `markdown` block and the
message's `text`. Each line is rewritten alone. Code that is not closed on its line or by a fence
counts as text.
"""

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from bot.domain.markdown_blocks import OPEN_LINK
from bot.slack.text.card_spoofing import disclaimed
from bot.slack.text.links import LinkPolicy, code, folded, reads_as_address, safe_links
from bot.slack.text.mrkdwn import INERT_BACKTICK, escape

_LINE = re.compile(r"[^\n]*\n|[^\n]+")
_FENCE = re.compile(r"^\s*(?:(`{3,})([^`]*)|(~{3,})(.*))$")
_RUN = re.compile(r"`+")
_LONG_RUN = re.compile(r"`{3,}")
_QUOTE = re.compile(r"^\s{0,3}(?:>\s?)+")
_LANGUAGE = re.compile(r"[A-Za-z0-9_+#.-]{1,20}")
_HEADING = re.compile(r"^\s{0,3}#{1,6}\s+(?=\S)")
_BULLET = re.compile(r"^(\s*)[-*+]\s+")
_BOLD = re.compile(r"\*\*(?=\S)([^*\n]+?)(?<=\S)\*\*")
_STRUCK = re.compile(r"~~(?=\S)([^~\n]+?)(?<=\S)~~")
# The longest tail that may be kept back while more text is coming, in characters.
_HELD_CHARS = 300
_UNFINISHED_ESCAPE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*|\][^\x07\x1b]*)?$")
_UNFINISHED_WORD = re.compile(r"\S+$")
# A word this long may be the beginning of a secret; only its end shows whether it is.
_LONG_WORD_CHARS = 9
_TOKEN_SIGN = re.compile(r"[<@`&\x1b]|:/|\w\.\w|:$|:/?$")
CLOSE = "```"


class Line(NamedTuple):
    """One line: `source` as written (with its newline), `safe` to send (without).

    `within` is the fence in which it begins and `after` the one in which it ends: the line that
    would open it again, or "".
    """

    source: str
    safe: str
    within: str
    after: str


@dataclass(frozen=True, slots=True)
class _Fence:
    mark: str  # the character
    length: int
    opening: str  # how we write it


def lines(text: str, policy: LinkPolicy) -> Iterator[Line]:
    """The lines of a cleaned text; their sources add up to it."""
    fence: _Fence | None = None
    for source in _LINE.findall(text):
        if fence is None and "```" not in source and "~~~" not in source:
            yield Line(source, _text_line(source.removesuffix("\n"), policy), "", "")
            continue
        before = fence.opening if fence else ""
        fence, safe = _step(source.removesuffix("\n"), fence, policy)
        yield Line(source, safe, before, fence.opening if fence else "")


def safe_line(text: str, policy: LinkPolicy, *, fenced: bool) -> str:
    """A fragment of a line, rewritten alone."""
    return _code_line(text) if fenced else _text_line(text, policy)


def as_mrkdwn(safe: str) -> str:
    """A safe text for a place that reads Slack's own marks: bold, struck, headings and items."""
    made, is_code = [], False
    for line in safe.split("\n"):
        is_code ^= line.startswith(CLOSE)
        made.append(line if is_code or line.startswith(CLOSE) else _mrkdwn_line(line))
    return "\n".join(made)


def _mrkdwn_line(line: str) -> str:
    heading = _HEADING.match(line)
    if heading:
        return f"*{line[heading.end() :].replace('**', '').strip()}*"
    line = _BULLET.sub(r"\1• ", line)
    return _STRUCK.sub(r"~\1~", _BOLD.sub(r"*\1*", line))


def hold_back(text: str) -> str:
    """The text without an unfinished token at its end, for use while more is coming."""
    start = max(0, len(text) - _HELD_CHARS)
    tail = text[start:]
    for pattern in (_UNFINISHED_ESCAPE, OPEN_LINK):
        if match := pattern.search(tail):
            tail = tail[: match.start()]
    word = _UNFINISHED_WORD.search(tail)
    if word and _may_become_another(word.group()):
        tail = tail[: word.start()]
    return text[:start] + tail


def _may_become_another(word: str) -> bool:
    if len(word) >= _HELD_CHARS:
        return False
    return len(word) >= _LONG_WORD_CHARS or _TOKEN_SIGN.search(word) is not None


def _step(line: str, fence: _Fence | None, policy: LinkPolicy) -> tuple[_Fence | None, str]:
    found = _FENCE.match(line)
    if fence is None:
        if found is None:
            return None, _text_line(line, policy)
        fence = _opened(found)
        return fence, fence.opening
    if found and _closes(found, fence):
        return None, CLOSE
    return fence, _code_line(line)


def _opened(found: re.Match[str]) -> _Fence:
    mark = found[1] or found[3]
    language = _LANGUAGE.match((found[2] or found[4] or "").strip())
    return _Fence(mark[0], len(mark), CLOSE + (language.group() if language else ""))


def _closes(found: re.Match[str], fence: _Fence) -> bool:
    mark = found[1] or found[3]
    rest = (found[2] or found[4] or "").strip()
    return mark[0] == fence.mark and len(mark) >= fence.length and not rest


def _code_line(line: str) -> str:
    return escape(_LONG_RUN.sub(lambda run: INERT_BACKTICK * len(run.group()), line))


# A streaming answer is rendered again at every edit; all its lines but the last are as before.
@lru_cache(maxsize=2_048)
def _text_line(line: str, policy: LinkPolicy) -> str:
    quote = _QUOTE.match(line)
    prefix = quote.group() if quote else ""
    out = prefix
    apart = False
    for is_code, piece in _spans(line[len(prefix) :]):
        if is_code:
            words = folded(piece).split()
            apart = any("://" in word or reads_as_address(word) for word in words)
            out += " " if apart and out[-1:].isalnum() else ""
            # In a table a bar ends the cell, and the code with it.
            for bar, part in enumerate(piece.split("|") if apart else [piece]):
                out += "|" if bar else ""
                out += code(part.strip(), out) if part.strip() else ""
        else:
            # Slack's mrkdwn takes no code that touches a word, and would link the address in it.
            out += " " if apart and piece[:1].isalnum() else ""
            out += safe_links(piece, policy)
    return out


def _spans(line: str) -> Iterator[tuple[bool, str]]:
    runs = list(_RUN.finditer(line))
    closing: dict[int, list[int]] = {}
    for index, run in enumerate(runs):
        closing.setdefault(len(run.group()), []).append(index)
    text: list[str] = []
    position = index = 0
    while index < len(runs):
        run = runs[index]
        same = closing[len(run.group())]
        while same and same[0] <= index:
            same.pop(0)
        text.append(line[position : run.start()])
        content = line[run.end() : runs[same[0]].start()].strip() if same else ""
        if not content:
            text.append(INERT_BACKTICK * len(run.group()))
            position, index = run.end(), index + 1
            continue
        yield False, "".join(text)
        yield True, content
        text = []
        position, index = runs[same[0]].end(), same[0] + 1
    text.append(line[position:])
    yield False, "".join(text)


# No line of ours that reads like a decision needs more to be known as one (`imitation`).
_TELLING_CHARS = 32
_OPEN_TAIL = re.compile(r"[\s*_~\\|]+$")


def growing(source: str, policy: LinkPolicy) -> str:
    """What may be sent of a cleaned text that goes on; a later one begins with it."""
    done, newline, last = source.lstrip("\n").rpartition("\n")
    told = list(lines(disclaimed(done) + newline, policy))
    shown = [line.safe for line in told]
    inside_code = bool(told and told[-1].after)
    calm = "" if inside_code else _calm(last)
    shown += [line.safe for line in lines(calm, policy)]
    return "\n".join(shown).rstrip()


def _calm(line: str) -> str:
    strange = [] if line.isascii() else [each for each in line if not each.isascii()]
    if any(unicodedata.category(each) in {"So", "Sk"} for each in strange):
        return ""
    runs = list(_RUN.finditer(line))
    while runs:
        run = runs.pop(0)
        same = next(
            (i for i, each in enumerate(runs) if len(each.group()) == len(run.group())), None
        )
        if same is None:
            line = line[: run.start()]
            break
        del runs[: same + 1]
    for opening, closing in (("<", ">"), ("[", ")")):
        at = line.rfind(opening)
        if at >= 0 and closing not in line[at:]:
            line = line[:at]
    line = _OPEN_TAIL.sub("", line[: line.rfind(" ") + 1])
    return line if len(line) >= _TELLING_CHARS else ""
