"""A sentence as clauses: of what, which way, how much, since when. Pure; linear in its length."""

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from bot.chat.claims.lexicon import CLASSES, NOUN_OF, PHRASES, ROLE_OF, SLOTS, STATE_OF, Word, plain
from bot.chat.claims.names import Name, names
from bot.chat.claims.quantities import Figure, figures
from bot.chat.claims.sentences import DIRECTION, OTHER_DROP

_WORD = re.compile(r"[A-Za-z][\w./:@+-]*(?:['’][a-z]{1,2})?|[\d][\w./:@+%-]*|[,;:()\[\]—–&]")
_MARKS = re.compile(r"[`*]|(?<!\w)_|_(?!\w)")
_QUOTED = re.compile(
    r"\"([^\"\n]{1,1000})\"|“([^”\n]{1,1000})”|`([^`\n]{1,300} [^`\n]{1,300})`|(?<!\w)'([^'\n]{1,300} [^'\n]{1,300})'(?!\w)"
)
_SPACES = re.compile(r"\s{2,}")
_SPEED = re.compile(r"slow|fast", re.IGNORECASE)
_QUANTILE = re.compile(r"p\d{2,3}")
_NEAR: Final = 5  # words between a negation and what it denies
_ROLLED: Final = re.compile(r"\b(roll(?:s|ed|ing)?) ([\w.-]+(?: [\w.-]+)?) back\b", re.IGNORECASE)
CORE: Final = frozenset(
    [Word.WAY, Word.RECOVERED, Word.BEGAN, Word.TOOK, Word.SATURATED, Word.DEPLOYED, Word.REVERTED, Word.FAILS, Word.SAYS, Word.SPENDS,
     Word.UNAVAILABLE, Word.STATE]
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Token:
    """A word, a figure, a time, a version or a quotation, with its position."""

    at: int
    text: str
    kind: Word | None = None
    figure: Figure | None = None
    name: Name | None = None
    quote: str = ""


@dataclass(slots=True)
class Clause:
    """What one clause says. `loose` are words that only a fact's own values explain."""

    subjects: list[str] = field(default_factory=list)
    roles: list[str] = field(default_factory=list)
    quantiles: list[str] = field(default_factory=list)
    ways: list[tuple[str, bool]] = field(default_factory=list)
    figures: list[tuple[Figure, str]] = field(default_factory=list)
    times: list[tuple[Name, str]] = field(default_factory=list)
    versions: list[tuple[str, str]] = field(default_factory=list)
    states: list[str] = field(default_factory=list)
    nouns: list[str] = field(default_factory=list)
    quotes: list[str] = field(default_factory=list)
    loose: list[str] = field(default_factory=list)
    does: set[Word] = field(default_factory=set)
    is_denied: bool = False
    inherits: bool = False  # its subject is that of the clause before

    @property
    def is_empty(self) -> bool:
        return not (
            self.subjects or self.roles or self.figures or self.times or self.versions or self.states
            or self.nouns or self.quotes or self.loose or self.does & CORE
        )  # fmt: skip

    @property
    def has_values(self) -> bool:
        """Whether it says how much, when, which version, which way, or what is not understood."""
        return bool(self.figures or self.times or self.versions or self.loose or self.ways)


def clauses_of(words: str, quotes: Sequence[str], subjects: Collection[str]) -> list[Clause]:
    """The clauses of a sentence without citations. `quotes` were cut out and replaced by `"#0"`.

    `subjects` are the lower-case names that facts are about.
    """
    found: list[Clause] = []
    for tokens in _chunks(list(_tokens(words, quotes)), subjects):
        clause = _clause(tokens, subjects)
        if clause.is_empty:
            continue
        if found:
            _inherit(clause, found[-1])
        found.append(clause)
    return found


def _inherit(clause: Clause, before: Clause) -> None:
    if not clause.subjects:
        clause.subjects, clause.inherits = before.subjects, bool(before.subjects)
    if not (clause.roles or clause.states or clause.nouns or Word.FAILS in clause.does):
        clause.roles = before.roles
    if clause.does.isdisjoint(CORE):
        clause.does |= before.does
        clause.ways = clause.ways or before.ways
        clause.nouns = clause.nouns or before.nouns
        clause.states = clause.states or before.states


def _tokens(words: str, quotes: Sequence[str]) -> Iterator[Token]:
    text = _normal(words)
    found, _ = names(text, frozenset())
    timed = [n for n in found if n.kind in ("clock", "onset", "version")]
    taken: list[Token] = []
    cursor = 0
    for name in timed:
        at = text.find(name.text, cursor)
        at = at if at >= 0 else text.find(name.text)
        if at >= 0:
            cursor = at + len(name.text)
            taken.append(Token(at, name.text, name=name))
    masked = list(_blanked(text, taken))
    counted = list(figures("".join(masked)))
    for figure in counted:
        taken.append(Token(figure.at, figure.text, figure=figure))
        masked[figure.at : figure.end] = " " * (figure.end - figure.at)
    for match in re.finditer(r'"#(\d{1,3})"', "".join(masked)):
        taken.append(Token(match.start(), match[0], quote=quotes[int(match[1])]))
        masked[match.start() : match.end()] = " " * (match.end() - match.start())
    taken += map(_word, _WORD.finditer("".join(masked)))
    yield from sorted(taken, key=lambda token: token.at)


def _blanked(text: str, taken: Sequence[Token]) -> str:
    pieces = list(text)
    for token in taken:
        pieces[token.at : token.at + len(token.text)] = " " * len(token.text)
    return "".join(pieces)


def _normal(words: str) -> str:
    text = _ROLLED.sub(r"\2 \1 back", _MARKS.sub(" ", words).replace(": ", " : "))
    there = plain(text)
    for pattern, needs, word in PHRASES:
        if any(letters in there for letters in needs):
            text = pattern.sub(word, text)
    text = OTHER_DROP.sub(lambda m: m[0].replace(" ", "-"), text)
    text = DIRECTION.sub(lambda m: f"{_of_speed(m[0])} way-{m.lastgroup}{_behind(m[0])}", text)
    return _SPACES.sub(" ", text)


def _behind(said: str) -> str:
    return next(
        (f" {word}" for word in ("from", "by", "since") if said.lower().endswith(f" {word}")), ""
    )


def _of_speed(said: str) -> str:
    return "latency" if _SPEED.search(said) else ""


def _word(match: re.Match[str]) -> Token:
    text = (match[0].rstrip(".:/-") or match[0]).lower()
    text = re.sub(r"['’]s?$", "", text) if not text.endswith("n't") else text
    if text.startswith("way-"):
        return Token(match.start(), text[4:], Word.WAY)
    kind = CLASSES.get(text)
    if kind is None and text.endswith("n't"):
        kind = Word.NOT
    return Token(match.start(), text, kind)


def _chunks(tokens: Sequence[Token], subjects: Collection[str]) -> Iterator[list[Token]]:
    pieces: list[list[Token]] = [[]]
    for token in tokens:
        if token.kind in (Word.AND, Word.BREAK):
            pieces.append([])
        pieces[-1].append(token)
    current: list[Token] = []
    for piece in pieces:
        both = (_is_predicate(piece), _is_predicate(current))
        pairs = _is_pair(piece, subjects) and _is_pair(current, subjects)
        pairs = pairs or (
            _is_count(current) and any(t.name and t.name.kind == "version" for t in piece)
        )
        if current and (all(both) or pairs):
            yield current
            current = []
        current = current + piece
    yield current


def _is_predicate(tokens: Sequence[Token]) -> bool:
    return any(t.kind in CORE or t.text == "restarted" for t in tokens)


def _is_pair(tokens: Sequence[Token], subjects: Collection[str]) -> bool:
    has_value = any(t.figure or t.name for t in tokens)
    return has_value and any(t.text in subjects or t.kind is Word.ROLE for t in tokens)


def _is_count(tokens: Sequence[Token]) -> bool:
    has_name = any(t.name for t in tokens)
    return not has_name and any(t.figure for t in tokens) and any(t.text in NOUN_OF for t in tokens)


def _clause(tokens: Sequence[Token], subjects: Collection[str]) -> Clause:
    clause = Clause()
    denied_at = -_NEAR - 1
    slot = ""
    for at, token in enumerate(tokens):
        denied = at - denied_at <= _NEAR
        if token.figure is not None:
            is_total = _is_total(tokens[:at])
            if is_total:
                clause.figures[-1] = (clause.figures[-1][0], "count")
            own = "total" if is_total else _slot_of(token.figure, slot, tokens[at + 1 : at + 5])
            clause.figures.append((token.figure, own))
            slot = "max" if slot == "min" and Word.BETWEEN in clause.does else ""
        elif token.name is not None:
            if token.name.kind == "version":
                clause.versions.append((token.name.key, slot))
            else:
                is_end = bool(clause.times) and (slot == "now" or Word.BETWEEN in clause.does)
                clause.times.append((token.name, "until" if is_end else slot))
        elif token.quote:
            clause.quotes.append(token.quote)
        elif token.text in subjects and token.kind not in (Word.AND, Word.BREAK):
            mentioned = clause.subjects and Word.MENTIONS in clause.does
            (clause.loose if mentioned else clause.subjects).append(token.text)
        elif token.kind is None:
            clause.loose.append(token.text)
        elif token.kind is Word.NOT:
            denied_at, clause.is_denied = at, True
        else:
            slot = _said(clause, token, slot, denied=denied)
    return clause


def _is_total(before: Sequence[Token]) -> bool:
    if before and before[-1].text in ("the", "its"):
        before = before[:-1]
    words = [token.text for token in before[-2:]]
    behind = before[: -2 if words == ["out", "of"] else -1]
    return words[-1:] == ["of"] and bool(behind) and behind[-1].figure is not None


_LETS_PASS: Final = frozenset({Word.PLAIN, Word.PRESENT, Word.AND})
_KEPT: Final = frozenset({"usual", "max", "min", "mean"})


def _said(clause: Clause, token: Token, slot: str, *, denied: bool) -> str:
    kind = token.kind
    assert kind is not None  # noqa: S101 - a word that is not known is loose
    clause.does.add(kind)
    if kind is Word.WAY:
        clause.ways.append((token.text, denied))
    elif kind is Word.ROLE:
        clause.roles.append(ROLE_OF[token.text])
        clause.quantiles += [token.text] if _QUANTILE.fullmatch(token.text) else []
    elif kind is Word.STATE:
        clause.states.append(STATE_OF.get(token.text, token.text))
    if noun := NOUN_OF.get(token.text, token.text if kind is Word.NOUN else ""):
        clause.nouns.append(noun)
    if kind in SLOTS:
        return SLOTS[kind]
    keeps = kind in (Word.ROLE, Word.NOUN) or (kind in _LETS_PASS and slot in _KEPT)
    return slot if keeps else ""


def _slot_of(figure: Figure, slot: str, behind: Sequence[Token]) -> str:
    if figure.family in ("factor", "z"):
        return figure.family
    if figure.usual or slot == "usual":
        return "usual"
    if slot in ("change", "took", "z", "max", "min", "mean"):
        return slot
    for token in behind:
        if token.kind in (Word.BREAK, Word.AND) or token.figure is not None:
            break
        if found := _FIGURE_OF.get(token.text):
            return found
        if not figure.family and (token.kind is Word.NOUN or token.text in NOUN_OF):
            return "count"
    return "now"


# What a word behind a figure says that it is.
_FIGURE_OF: Final = {
    "before": "usual", "earlier": "usual", "previously": "usual", "old": "age", "restart": "restarts", "restarts": "restarts",
    "peak": "max", "maximum": "max", "average": "mean",
}  # fmt: skip


def cut_quotes(words: str) -> tuple[str, list[str]]:
    """The sentence with `"#0"` for its first quotation, and the quotations."""
    quotes: list[str] = []

    def cut(match: re.Match[str]) -> str:
        quotes.append(next(filter(None, match.groups()), ""))
        return f' "#{len(quotes) - 1}" '

    return _QUOTED.sub(cut, words), quotes
