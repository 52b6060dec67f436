"""Undo disguises of a secret: another encoding, a cut, invisible characters, similar letters.

Each encoded piece is decoded, and all pieces of a text are searched together; a piece with a secret
is masked whole. Decoding is bounded, so hostile text costs little; a secret in deeper layers is not
found. A text with invisible or similar characters next to ASCII ones is also searched in its
readable form. Other text, of any language, costs one search; ASCII costs nothing.
"""

import base64
import binascii
import re
import zlib
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Final, NamedTuple

from bot.privacy.lists import read_list
from bot.privacy.looks import random
from bot.privacy.matching import finder

# So much of a text is decoded: enough for a Kubernetes Secret, and little work for hostile text.
MOST_BYTES: Final = 96 * 1024
MOST_PIECES: Final = 3000
# Of a compressed piece so much is looked at; what a bomb would unpack to is never made.
MOST_UNPACKED_BYTES: Final = 64 * 1024
# Helm keeps a release as gzip in Base64 in Base64.
DEPTH: Final = 3
_BEFORE_BYTES: Final = 48
_UNREADABLE: Final = bytes(set(range(256)) - set(range(0x20, 0x7F)) - {0x09, 0x0A, 0x0D})
_BETWEEN: Final = b"\n\0\n"  # no rule reaches across a NUL
# Four characters of Base64 of ASCII text: its bytes' high bits are zero, which leaves so few for each.
_QUAD: Final = rb"[CDI-Za-f][A-HQ-Xg-nw-z0-3][ABEFIJMNQRUVYZcdghklopstwx014589][A-Za-z0-9+/_-]"
_END: Final = rb"[A-Za-z0-9+/_-]{0,3}={0,2}"
_NEXT: Final = rb"\r?\n[ \t]{0,16}"
_BASE64: Final = (
    rb"(?:%(q)s){6,}(?:%(n)s(?:%(q)s){10,})*(?:%(n)s(?:%(q)s){3,}%(e)s(?:[\s\"',]|\z)|%(e)s)"
    % {b"q": _QUAD, b"n": _NEXT, b"e": _END}
)
# What gzip and zlib make begins so.
_PACKED: Final = (
    rb"\b(?:H4sI|e[AJN])[A-Za-z0-9+/_-]{20,}(?:%(n)s[A-Za-z0-9+/_-]{40,})*(?:%(n)s[A-Za-z0-9+/_-]{2,}=|=){0,2}"
    % {b"n": _NEXT}
)
_ASCII_HEX: Final = rb"(?:[2-7][0-9A-Fa-f]|0[9AaDd])"
_HEX: Final = rb"(?:%(h)s){12,}|(?:(?:0x|\\x)?%(h)s[ :,-]{1,2}[\r\n]{0,2}){9,}(?:0x)?%(h)s" % {
    b"h": _ASCII_HEX
}
_DUMP_LINE: Final = rb"(?:0x)?[0-9A-Fa-f]{4,16}:?[ \t]{1,4}(?:[0-9A-Fa-f]{2}){1,2}(?:[ \t]{1,3}(?:[0-9A-Fa-f]{2}){1,2}){3,15}\b[^\n]*"
_DUMP: Final = (
    rb"\b"
    + _DUMP_LINE
    + rb"(?:\n[ \t]{0,8}(?:0x)?[0-9A-Fa-f]{4,16}:?[ \t]{1,4}[0-9A-Fa-f]{2}[^\n]*)*"
)
# Letters and digits have no need of an escape, so one of them is enough to look.
_PLAIN: Final = rb"(?:3[0-9]|[46][1-9A-Fa-f]|[57][0-9Aa])"
_ESCAPED: Final = rb"(?:%%%(c)s|\\{1,4}u00%(c)s|\\{1,4}x%(c)s|&#(?:[xX]0{0,2}%(c)s|0{0,2}%(d)s);)"
_ESCAPE: Final = _ESCAPED % {
    b"c": _PLAIN,
    b"d": rb"(?:4[89]|5[0-7]|6[5-9]|[78][0-9]|9[0789]|1[01][0-9]|12[0-2])",
}
_ANY_ESCAPE: Final = _ESCAPED % {b"c": rb"[0-7][0-9A-Fa-f]", b"d": rb"[0-9]{2,3}"}
_ESCAPES: Final = _ESCAPE + rb"(?:" + _ANY_ESCAPE + rb"|[A-Za-z0-9_.~+/=-])*"
_BEGINNING = re.compile(rb"(?:%[0-7][0-9A-Fa-f]|[A-Za-z0-9_.~+/-])*\Z")
_ONE_ESCAPE = re.compile(
    rb"%([0-7][0-9A-Fa-f])|\\{1,4}(?:u00|x)([0-7][0-9A-Fa-f])|&#[xX]0{0,2}([0-7][0-9A-Fa-f]);|&#0{0,2}([0-9]{2,3});"
)
_BLANK = re.compile(rb"[\s:,-]+|0x|\\x")
_LINE_BREAK = re.compile(rb"\s+")
_DUMPED = re.compile(
    rb"(?m)^[ \t]*(?:0x)?[0-9A-Fa-f]{4,16}:?[ \t]{1,4}((?:(?:[0-9A-Fa-f]{2}){1,2}(?:[ \t]{1,2}|$)){1,16})"
)
_URL_SAFE = bytes.maketrans(b"-_", b"+/")

Search = Callable[[bytes], Sequence[tuple[int, int]]]  # the positions of secrets

# Unicode's default-ignorable characters that text from outside has, bidi controls among them.
_UNSEEN: Final = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064"
    "\u2066-\u206f\ufe00-\ufe0f\ufeff\U000e0000-\U000e007f"
)
# Cyrillic and Greek letters that look like ASCII ones (Unicode's confusables.txt), in their order.
_ALIKE: Final = "аеорсухіјѕԁһԛԝАВЕКМНОРСТУХІЈЅΑΒΕΖΗΙΚΜΝΟΡΤΥΧο"
_ASCII: Final = "aeopcyxijsdhqwABEKMHOPCTYXIJSABEZHIKMNOPTYXo"
_WIDE: Final = "\uff01-\uff5e"  # ASCII from "!" on, in full width
_WIDE_START, _WIDE_END, _WIDE_SHIFT = 0xFF01, 0xFF5F, 0xFEE0

HIDDEN: Final = re.compile(
    f"[{_UNSEEN}](?<=[ -~].)(?=[{_UNSEEN}]*[ -~])"
    f"|[{_ALIKE}](?:(?<=[A-Za-z0-9].)|(?=[A-Za-z0-9]))"
    f"|[{_WIDE}](?:(?<=[A-Za-z0-9{_WIDE}].)|(?=[A-Za-z0-9]))",
    re.DOTALL,
)
# One class is searched many times as fast: most texts that are not ASCII hold none of these.
_SUSPECT: Final = re.compile(f"[{_UNSEEN}{_ALIKE}{_WIDE}]")
_REMOVED: Final = re.compile(f"[{_UNSEEN}]")
_AS_READ: Final = {
    **{ord(alike): ascii_ for alike, ascii_ in zip(_ALIKE, _ASCII, strict=True)},
    **{wide: chr(wide - _WIDE_SHIFT) for wide in range(_WIDE_START, _WIDE_END)},
}

MOST_FOUND: Final = 500
_NEXT_LINE_CHARS: Final = 240
_SHORTEST_HALF: Final = 4
_SHORTEST_OPEN_HALF: Final = 8
_HALF: Final = rb"((?:%s)[A-Za-z0-9_.-]{0,120})[\"'\\+}\] ]{0,4}\r?\n"
_WORD = re.compile(rb"[A-Za-z0-9_.-]+")
_CONTINUED = re.compile(rb"[ \t\"'+]{0,16}(?![0-9]{4}-)([A-Za-z0-9_.-]{8,200})")


class _Piece(NamedTuple):
    parts: Sequence[tuple[int, int]]
    before: bytes
    says: bytes


class Encoded:
    """Finds what hides a secret."""

    def __init__(self) -> None:
        self._kinds = (
            (finder(_ESCAPES), _unescaped),
            (finder(_DUMP), _undumped),
            (finder(_HEX), _unhexed),
            (finder(_BASE64), _unbased),
            (finder(_PACKED), _unbased),
        )
        self._halves = Halves()
        heads = (_ESCAPE, _DUMP_LINE, _HEX, rb"(?:%s){6}" % _QUAD, _PACKED, self._halves.pattern)
        self._any = finder(b"|".join(b"(?:%s)" % head for head in heads))

    def hiding(self, data: bytes, search: Search, depth: int = DEPTH) -> Iterator[tuple[int, int]]:
        """Start and end of each piece in which `search` finds a secret, once decoded."""
        pieces = [*self._pieces(data)]
        if not pieces:
            return
        text = _BETWEEN.join(p.before + p.says for p in pieces)
        sizes = (len(p.before) + len(p.says) + len(_BETWEEN) for p in pieces)
        ends = [*accumulate(sizes)]
        found = [*search(text)]
        if depth > 1:
            found += self.hiding(text, search, depth - 1)
        hiding: set[int] = set()
        for start, end in found:
            at = bisect_right(ends, start)
            says = (ends[at - 1] if at else 0) + len(pieces[at].before)
            if end > says:
                hiding.add(at)
        for at in sorted(hiding):
            yield from pieces[at].parts

    def _pieces(self, data: bytes) -> Iterator[_Piece]:
        if self._any(data, 0, len(data)) is None:
            return
        for parts, says in self._halves.joined(data):
            yield _Piece(parts, b"", says)
        for find, decode in self._kinds:
            at, left = 0, MOST_BYTES
            for _ in range(MOST_PIECES):
                match = find(data, at, len(data))
                if match is None or left <= 0:
                    break
                start, end = match.span()
                at = max(end, start + 1)
                if decode is _unescaped:
                    start = _beginning(data, start)
                for first, last, says in decode(data[start : min(end, start + left)]):
                    left -= len(says)
                    own = (start + first, end if start + last >= start + left else start + last)
                    before = data[max(0, start - _BEFORE_BYTES) : start] if first == 0 else b""
                    yield _Piece([own], before.rpartition(b"\n")[2], says)


def _beginning(data: bytes, at: int) -> int:
    first = max(0, at - _BEFORE_BYTES)
    found = _BEGINNING.search(data[first:at])
    return first + found.start() if found else at


def _unescaped(raw: bytes) -> Iterator[tuple[int, int, bytes]]:
    yield 0, len(raw), _ONE_ESCAPE.sub(_character, raw)


def _character(found: re.Match[bytes]) -> bytes:
    digits = found[1] or found[2] or found[3]
    code = int(digits, 16) if digits else int(found[4])
    return bytes([code]) if code < 0x80 else b"?"


def _undumped(raw: bytes) -> Iterator[tuple[int, int, bytes]]:
    rows = [re.sub(rb"\s+", b" ", row).strip() for row in _DUMPED.findall(raw)]
    plain = b"".join(_readable(row.replace(b" ", b"")[:32]) for row in rows)
    words = b" ".join(rows).split()
    swapped = b"".join(_readable(w[2:] + w[:2]) for w in words if len(w) == 4)
    yield 0, len(raw), plain + _BETWEEN + swapped


def _readable(digits: bytes) -> bytes:
    return binascii.unhexlify(digits[: len(digits) // 2 * 2]).translate(None, _UNREADABLE)


def _unhexed(raw: bytes) -> Iterator[tuple[int, int, bytes]]:
    digits = _BLANK.sub(b"", raw)
    says = _text(binascii.unhexlify(digits[: len(digits) // 2 * 2]))
    if says:
        yield 0, len(raw), says


def _unbased(raw: bytes) -> Iterator[tuple[int, int, bytes]]:
    says = _decoded(_LINE_BREAK.sub(b"", raw))
    if says:
        yield 0, len(raw), says


def _decoded(raw: bytes) -> bytes:
    plain = raw.rstrip(b"= \t\r\n\"',").translate(_URL_SAFE)
    try:
        made = base64.b64decode(plain[: len(plain) // 4 * 4])
    except binascii.Error:
        return b""
    if made[:2] in (b"\x1f\x8b", b"\x78\x9c", b"\x78\x01", b"\x78\xda"):
        made = _unpacked(made)
    return _text(made)


def _unpacked(packed: bytes) -> bytes:
    try:
        return zlib.decompressobj(zlib.MAX_WBITS | 32).decompress(packed, MOST_UNPACKED_BYTES)
    except zlib.error:
        return b""


def _text(made: bytes) -> bytes:
    return made if made.translate(None, _UNREADABLE) == made else b""


@dataclass(frozen=True, slots=True)
class AsRead:
    """The readable form of a text, one byte a character; its findings map to `bytes_at`."""

    data: bytes
    _text: str
    _removed: Sequence[int]  # for each removed character, the position after it

    def bytes_at(self, spans: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
        """The same spans in the text's own UTF-8."""
        own = [(self._own(start), self._own(end - 1) + 1) for start, end in spans]
        sizes: dict[int, int] = {}
        at = size = 0
        for offset in sorted({o for span in own for o in span}):
            size += len(self._text[at:offset].encode(errors="replace"))
            sizes[offset], at = size, offset
        return [(sizes[start], sizes[end]) for start, end in own]

    def _own(self, at: int) -> int:
        return at + bisect_right(self._removed, at)


def as_read(text: str) -> AsRead | None:
    """The text without disguise; None if it has no disguise."""
    if text.isascii() or _SUSPECT.search(text) is None or HIDDEN.search(text) is None:
        return None
    unseen = [found.start() for found in _REMOVED.finditer(text)]
    plain = _REMOVED.sub("", text)
    if not plain.isascii():
        plain = plain.translate(_AS_READ)
    removed = [at - before for before, at in enumerate(unseen)]
    return AsRead(plain.encode("ascii", errors="replace"), text, removed)


class Halves:
    """Joins them by the lengths that vendors publish (`lists.toml`); 0 is a vendor's without one."""

    def __init__(self) -> None:
        lengths = dict(read_list("token_lengths"))
        self.pattern = _HALF % b"|".join(re.escape(lead.encode()) for lead in lengths)
        self._find = finder(self.pattern)
        self._lengths = {lead.encode(): int(length) for lead, length in lengths.items()}

    def joined(self, data: bytes) -> Iterator[tuple[Sequence[tuple[int, int]], bytes]]:
        """The positions of both halves, and the joined token."""
        at = 0
        for _ in range(MOST_FOUND):
            match = self._find(data, at, len(data))
            if match is None:
                return
            start, end = match.span(1)
            at = line = match.end()
            half = data[start:end]
            other = self._other(half, data[line : line + _NEXT_LINE_CHARS].partition(b"\n")[0])
            if other is not None:
                first, last = line + other[0], line + other[1]
                yield [(start, end), (first, last)], half + data[first:last]

    def _other(self, half: bytes, line: bytes) -> tuple[int, int] | None:
        length = next(n for lead, n in self._lengths.items() if half.startswith(lead))
        if not length:
            found = _CONTINUED.match(line)
            return found.span(1) if found and random("", found[1].decode()) else None
        missing = length - len(half)
        if missing < _SHORTEST_HALF:
            return None
        fits = (w.span() for w in _WORD.finditer(line) if len(w[0]) == missing)
        return next((s for s in fits if random("", (half + line[s[0] : s[1]]).decode())), None)
