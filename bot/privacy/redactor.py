"""The redactor of every sink: what must not leave is masked before it does, else nothing leaves.

Configured secrets are matched literally, with their encodings; everything else by the rules. All
findings are made on the text as it came, then masked at once. Of a text that is still being written
only that is shown what no later word can change: a secret is known by its end as often as by its
beginning, and what may yet become one is held back.
"""

import hashlib
import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from operator import sub
from typing import Final

from pydantic import JsonValue

from bot.privacy import embedded_json, fields, literals
from bot.privacy.detector import MAX_FINDINGS, WINDOW_BYTES, Span, detector
from bot.privacy.disguises import HIDDEN, Encoded, as_read
from bot.privacy.embedded_json import Mask, aligned, is_quoted
from bot.privacy.passed import PassedTexts
from bot.privacy.session_memory import (
    NEW_PER_TEXT,
    FoundSecrets,
    current_session,
    is_telling,
    repeated,
)
from tools.redactor import MASK_PREFIX, Redacted, RedactionFailed

Redact = Callable[[str], str]
Remember = Callable[[str, str], None]  # a placeholder and its value

_MARK: Final = re.compile(rb"\[redacted:[a-z0-9-]{1,40}#[0-9a-f]{4,16}\]")
_PREFIX: Final = MASK_PREFIX.encode()
# The rest of a finding beside a mark inside it counts as a secret only from this length.
_SHORTEST_PIECE: Final = 6
_DENSE: Final = MAX_FINDINGS // 2  # so many masks in a window: its values together may fill one
_CONFIGURED: Final = "configured"
_FOUND: Final = "seen-before"
_IDENTIFIER_SIGN: Final = "@"  # a product that looks like an address; digits alone stay numbers
_LAST: Final = 1_000_000  # any other finding gives the name
# Enough to distinguish secrets; identifiers are resolved by their tag, so no two may share one.
_TAG_BYTES: Final = 2
_IDENTIFIER_TAG_BYTES: Final = 6

_OPEN_BLOCK: Final = re.compile(r"-----BEGIN [A-Z0-9 ]*(?:-----)?")
_BLOCK_END: Final = re.compile(r"-----END [A-Z0-9 ]*-----")
# Any text after such a name on its line, or on the next one, may be its value or a part of it.
_NAMED: Final = re.compile(
    r"(?i)(?:cookie|authori[sz]ation|bearer|basic|passw|passphrase|passcode|pwd|secret|token|key"
    r"|credential|private|access|auth|identified|machine|login|curl|mysql|mariadb|sshpass|psql|redis-cli"
    r"|mongo|docker|helm|kind:|data:|phone|tel|mobile|cell|desk|fax|call|dial|sms|ssn|social|cvv|cvc"
    r"|security|AWS4)"
)
# Groups of digits, or of capitals and digits as in an IBAN, may go on: a card, a telephone number.
_GROUPS: Final = re.compile(r"(?:[+(]?[A-Z0-9()]{1,6}[ .-]{1,2}){1,12}[A-Z0-9()]*$")
# So few letters give nothing away, and a word that stops growing must not wait for a space.
_PLAIN_WORD: Final = re.compile(r"[A-Za-z]?[a-z]{0,7}")
_LONGEST_GROUPS_CHARS: Final = 80


class TextRedactor:
    """Masks configured secrets, secret shapes and, unless switched off, personal data.

    A secret found only by its place is masked everywhere from then on: in the rest of the text, and
    in later texts of the session.

    `known` are the operator's own names, such as products, which are never identifiers. `remember`
    stores the placeholders of identifiers; without it they cannot be resolved.
    """

    def __init__(
        self,
        secrets: Iterable[str],
        key: bytes,
        *,
        pii: bool = True,
        remember: Remember | None = None,
        known: Iterable[str] = (),
    ) -> None:
        self._key = hashlib.sha256(key).digest()
        self._literals = literals.matcher(secrets)
        self._detector = detector(pii=pii)
        self._encoded = Encoded()
        self._found = FoundSecrets()
        self._passed = PassedTexts(self._key)
        fields.prepare()
        self._remember = remember
        names = {name.encode() for name in known if _IDENTIFIER_SIGN in name}
        self._known = _any_of(names) if names else None

    def redact(self, text: str) -> Redacted:
        return Redacted(self._redacted(text, show_identifiers=False))

    @property
    def learned(self) -> int:
        return self._found.learned

    def redact_for_people(self, text: str) -> str:
        """As `redact`, with e-mail addresses and telephone numbers left. Raises RedactionFailed."""
        return self._redacted(text, show_identifiers=True)

    def redact_value(self, value: JsonValue) -> JsonValue:
        try:
            return fields.redacted(value, self.redact, self._masked)
        except RedactionFailed:
            raise
        except Exception as error:
            raise RedactionFailed(type(error).__name__) from error

    def _redacted(self, text: str, *, show_identifiers: bool) -> str:
        if text == "":
            return text
        try:
            data = text.encode("utf-8", errors="replace")
            spans = self._by_rules(text, data)
            spans += self._seen_before(data, spans)
            if show_identifiers:
                spans = [s for s in spans if s.kind != "identifier"]
            if not spans and not embedded_json.hides(text):
                return text if text.isascii() else data.decode()
            people = partial(self._redacted, show_identifiers=show_identifiers)
            return self._with_json(data, [*_disjoint(spans, _marks(data))], people)
        except Exception as error:
            raise RedactionFailed(type(error).__name__) from error

    def _by_rules(self, text: str, data: bytes) -> list[Span]:
        digest = self._passed.digest(data)
        if self._passed.knows(digest):
            return []
        spans = sorted([*self._spans(data), *self._disguised(text)])
        # A lone surrogate became "?" in `data`: then other texts have the same digest.
        if not spans and data.decode() == text:
            self._passed.add(digest)
        return spans

    def _spans(self, data: bytes) -> list[Span]:
        return [*self._shown(data), *self._encoded_spans(data)]

    def _shown(self, data: bytes) -> list[Span]:
        found = self._detector.spans(data)
        if self._known is not None and any(span.kind == "identifier" for span in found):
            known = [match.span() for match in self._known.finditer(data)]
            found = [span for span in found if not _is_of_name(span, known)]
        return [*self._literal_spans(data), *found]

    def _encoded_spans(self, data: bytes) -> Iterator[Span]:
        for start, end in self._encoded.hiding(data, self._secrets):
            yield Span(start, end, _LAST, "encoded", "secret")

    def _secrets(self, data: bytes) -> list[tuple[int, int]]:
        return [(s.start, s.end) for s in self._shown(data) if s.kind == "secret"]

    def _seen_before(self, data: bytes, spans: list[Span]) -> list[Span]:
        session = current_session()
        if not (spans or self._found.knows_any(session)):
            return []
        where = [*self._found.spans(session, data)]
        new: dict[bytes, int] = {}
        for span in spans:
            value = data[span.start : span.end]
            is_new = span.kind == "secret" and span.rank >= 0 and span.rank != _LAST
            if is_new and value not in new and is_telling(value):
                new[value] = span.end
                if len(new) == NEW_PER_TEXT:
                    break
        if new:
            where += repeated(data, new)
            self._found.remember(session, new)
        return [Span(start, end, _LAST, _FOUND, "secret") for start, end in where]

    def _disguised(self, text: str) -> list[Span]:
        read = as_read(text)
        if read is None:
            return []
        spans = self._spans(read.data)
        own = read.bytes_at([(span.start, span.end) for span in spans])
        return [
            Span(start, end, span.rank, span.name, span.kind)
            for span, (start, end) in zip(spans, own, strict=True)
        ]

    def _literal_spans(self, data: bytes) -> Iterator[Span]:
        if self._literals is not None:
            for match in self._literals.finditer(data):
                yield Span(match.start(), match.end(), -1, _CONFIGURED, "secret")

    def _with_json(self, data: bytes, spans: Sequence[Span], redact: Redact) -> str:
        text, masks = data.decode(), self._masks(data, spans)
        if '"' not in text:
            return embedded_json.spliced(text, masks)
        starts, ends = [mask.start for mask in masks], [mask.end for mask in masks]

        def between(start: int, end: int) -> list[Mask]:
            first = bisect_right(ends, start)
            return masks[first : bisect_left(starts, end, first)]

        found = [
            (start, end, own)
            for start, end in embedded_json.pieces(text)
            if (own := between(start, end)) or embedded_json.hides(text[start:end])
        ]
        texts = [text[start:end] for start, end, _own in found]
        gaps = map(sub, starts[_DENSE:], starts)
        dense = min(gaps, default=WINDOW_BYTES) < WINDOW_BYTES
        values = embedded_json.values_of(
            texts, lambda value: fields.redacted(value, redact, self._masked, is_dense=dense)
        )
        made: list[str] = []
        at = 0
        for (start, end, own), piece, pair in zip(found, texts, values, strict=True):
            inside = [Mask(a - start, z - start, words, secret) for a, z, words, secret in own]
            made += (
                _spliced(text, at, start, between(at, start)),
                embedded_json.redacted_piece(piece, pair, inside),
            )
            at = end
        rest = _spliced(text, at, len(text), between(at, len(text)))
        return "".join((*made, rest))

    def _masks(self, data: bytes, spans: Iterable[Span]) -> list[Mask]:
        marks: dict[tuple[str, bytes], str] = {}
        masks: list[Mask] = []
        at = size = 0  # bytes and characters until there
        for span in spans:
            start, end = _whole_characters(data, span.start, span.end)
            if start < at:
                continue
            known = span.name, data[start:end]
            if known not in marks:
                marks[known] = self._mark(span, known[1])
            first = size + len(data[at:start].decode())
            at, size = end, first + len(known[1].decode())
            masks.append(Mask(first, size, marks[known], span.kind != "identifier"))
        return masks

    def _mark(self, span: Span, found: bytes) -> str:
        """Equal secrets get equal marks, so that readers can still distinguish them."""
        if span.kind != "identifier":
            return f"{MASK_PREFIX}{span.name}#{self._tag(found, _TAG_BYTES)}]"
        mark = f"{MASK_PREFIX}{span.name}#{self._tag(found, _IDENTIFIER_TAG_BYTES)}]"
        if self._remember is not None:
            self._remember(mark, found.decode("utf-8", errors="replace"))
        return mark

    def _masked(self, value: str) -> str:
        raw = value.encode("utf-8", errors="replace")
        self._found.remember(current_session(), [raw])
        tag = self._tag(raw, _TAG_BYTES)
        return f"{MASK_PREFIX}field#{tag}]"

    def _tag(self, found: bytes, size: int) -> str:
        return hashlib.blake2b(found, key=self._key, digest_size=size).hexdigest()


def _spliced(text: str, start: int, end: int, masks: Iterable[Mask]) -> str:
    inside: list[Mask] = []
    for mask in masks:
        whole = aligned(text, mask) if is_quoted(text, mask.start) else mask
        if whole is not None:
            first, last = max(start, whole.start), min(end, whole.end)
            inside.append(whole._replace(start=first - start, end=last - start))
    return embedded_json.spliced(text[start:end], inside)


def _any_of(names: Iterable[bytes]) -> re.Pattern[bytes]:
    longest = sorted(names, key=lambda name: (-len(name), name))
    return re.compile(rb"(?<![\w.@+-])(?:" + b"|".join(map(re.escape, longest)) + rb")(?![\w@])")


def _is_of_name(span: Span, known: list[tuple[int, int]]) -> bool:
    return span.kind == "identifier" and any(
        start <= span.start and span.end <= end for start, end in known
    )


def _marks(data: bytes) -> list[tuple[int, int]]:
    return [m.span() for m in _MARK.finditer(data)] if _PREFIX in data else []


def _disjoint(spans: Iterable[Span], marks: list[tuple[int, int]]) -> Iterator[Span]:
    merged: Span | None = None
    for span in sorted(spans):
        if merged is None or span.start >= merged.end:
            if merged is not None:
                yield from _beside(merged, marks)
            merged = span
        else:
            named = merged if merged.rank <= span.rank else span
            merged = named._replace(start=merged.start, end=max(merged.end, span.end))
    if merged is not None:
        yield from _beside(merged, marks)


def _beside(span: Span, marks: list[tuple[int, int]]) -> Iterator[Span]:
    inside = [m for m in marks if m[0] < span.end and m[1] > span.start]
    if not inside:
        yield span
        return
    edges = [span.start, *(e for mark in inside for e in mark), span.end]
    for start, end in zip(edges[::2], edges[1::2], strict=True):
        if end - start >= _SHORTEST_PIECE:
            yield span._replace(start=start, end=end)


def _whole_characters(data: bytes, start: int, end: int) -> tuple[int, int]:
    while start > 0 and data[start] & 0xC0 == 0x80:
        start -= 1
    while end < len(data) and data[end] & 0xC0 == 0x80:
        end += 1
    return start, end


def showable(text: str) -> str:
    """The part that may be shown now: the settled text, and the beginning of a plain word after it."""
    at = settled(text)
    return text if _PLAIN_WORD.fullmatch(text, at) else text[:at]


def settled(text: str) -> int:
    """How many characters from the start are settled; the rest waits while more is coming."""
    at = _word_start(text, len(text))
    opened = [m.start() for m in _OPEN_BLOCK.finditer(text)]
    if opened:
        closed = [m.end() for m in _BLOCK_END.finditer(text)]
        if not closed or closed[-1] < opened[-1]:
            at = min(at, opened[-1])
    lines = text.rfind("\n", 0, max(0, text.rfind("\n"))) + 1
    named = _NAMED.search(text, lines)
    if named is not None:
        at = min(at, _word_start(text, named.start()))
    hidden = None if text.isascii() else HIDDEN.search(text, lines)
    if hidden is not None:
        at = min(at, _word_start(text, hidden.start()))
    groups = _GROUPS.search(text, max(0, len(text) - _LONGEST_GROUPS_CHARS))
    if groups is not None:
        at = min(at, _word_start(text, groups.start()))
    return at


def _word_start(text: str, at: int) -> int:
    while at > 0 and not text[at - 1].isspace():
        at -= 1
    return at
