"""Whether results hold the names, figures and quotations of a sentence, anywhere."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from bot.chat.claims.clauses import Clause, clauses_of
from bot.chat.claims.clocks import near
from bot.chat.claims.fact_readers import facts_of
from bot.chat.claims.facts import Fact
from bot.chat.claims.mentioned import (
    is_denied,
    is_derived,
    is_in_context,
    is_listed,
    is_noun_behind,
)
from bot.chat.claims.names import Name, folded
from bot.chat.claims.order import order_in, without_order
from bot.chat.claims.quantities import Figure
from bot.chat.claims.results import Part, Result
from bot.chat.claims.rows import named_in
from bot.domain.claims import Claim
from bot.domain.findings import LOOKS_AT_NOTHING

_LEADING = re.compile(r"(?<=\d)[^\d.].*$")
_LEAST_QUOTED = 2  # spaces: three words
_SHORTEST_QUOTED = 12  # characters
_NAMES = frozenset({"name", "place", "code", "id"})
_SHOWN_CHARS = 60
_QUOTED = re.compile(r"[\"“]([^\"“”\n]{1,1000})[\"”]")
_MAY_QUOTE = re.compile(r"[\"“]")
_MOST_SHOWN = 3


@dataclass(frozen=True, slots=True)
class Finding:
    """The claim of a sentence. `is_held`: every name and figure of it is in the results."""

    claim: Claim
    is_held: bool = False


@dataclass(frozen=True, slots=True)
class Wanted:
    """The names and figures of a sentence; `spoken` are the words of figures that it spells out."""

    words: str
    names: Sequence[Name]
    figures: Sequence[Figure]
    spoken: Mapping[str, str]


@dataclass
class Context:
    """The context of the whole answer. `repeated`: statements that a cited sentence proved."""

    results: dict[int, Result]
    question: str
    vocabulary: frozenset[str]
    repeated: set[str] = field(default_factory=set)
    told: dict[tuple[str, tuple[int, ...], tuple[int, ...], bool], Finding | None] = field(
        default_factory=dict
    )
    read: dict[int, Sequence[Fact]] = field(default_factory=dict)
    together: dict[tuple[int, ...], tuple[Sequence[Fact], frozenset[str]]] = field(
        default_factory=dict
    )

    parsed: dict[tuple[str, tuple[str, ...], tuple[int, ...]], Sequence[Clause]] = field(
        default_factory=dict
    )

    def facts(self, result: Result) -> Sequence[Fact]:
        """Those of a result, read once."""
        found = self.read.get(result.number)
        if found is None:
            found = self.read[result.number] = facts_of(result)
        return found

    def stated(self, results: Sequence[Result]) -> tuple[Sequence[Fact], frozenset[str]]:
        """The facts of some results, and the names that they and the answer's results are about."""
        numbers = tuple(result.number for result in results)
        if numbers not in self.together:
            facts = [fact for result in results for fact in self.facts(result)]
            self.together[numbers] = (
                facts,
                self.vocabulary.union(*(fact.subjects for fact in facts)),
            )
        return self.together[numbers]

    def clauses(
        self, words: str, quotes: Sequence[str], results: Sequence[Result]
    ) -> Sequence[Clause]:
        """A sentence as clauses, each part of an order by itself; parsed once."""
        key = (words, tuple(quotes), tuple(result.number for result in results))
        found = self.parsed.get(key)
        if found is None:
            order, (_, subjects) = order_in(words), self.stated(results)
            parts = (words,) if order is None else without_order(order)
            found = [one for part in parts for one in clauses_of(part, quotes, subjects)]
            self.parsed[key] = found
        return found

    @cached_property
    def has_read(self) -> bool:
        """Whether any call answered that looks at something."""
        return any(r.evidence.tool not in LOOKS_AT_NOTHING for r in self.good)

    @cached_property
    def good(self) -> Sequence[Result]:
        """Those of calls that answered."""
        return [r for r in self.results.values() if r.evidence.ok]

    @cached_property
    def everywhere(self) -> "Sequence[_ResultLookup]":
        """All of them whole: for a sentence that cites none."""
        return [_ResultLookup(result, "") for result in self.good]


class _ResultLookup:
    def __init__(self, result: Result, words: str) -> None:
        self.result = result
        self._of = named_in(words, result.index.owners)

    @cached_property
    def parts(self) -> Sequence[Part]:
        return self.result.of(self._of) if self._of else (self.result.whole,)

    def has_minute(self, name: Name) -> bool:
        if name.kind == "onset" and not self._of and self.result.onsets:
            return near(name.key, self.result.onsets, name.margin_min)
        return any(part.clocks.have(name.key, name.margin_min) for part in self.parts)


def shown(lacking: Sequence[str]) -> str:
    """At most three of them, for a mark."""
    few = list(dict.fromkeys(lacking))
    more = f" and {len(few) - _MOST_SHOWN} more" if len(few) > _MOST_SHOWN else ""
    return ", ".join(re.sub(r"[`*_~\[\]<>|]", "", s)[:_SHOWN_CHARS] if "_" not in s else f"`{s[:_SHOWN_CHARS]}`"
                     for s in few[:_MOST_SHOWN]) + more  # fmt: skip


def _has_name(
    name: Name, against: Sequence[_ResultLookup], known: Context, *, exactly: bool
) -> bool:
    if exactly and (name.key in known.repeated or name.text.lower() in known.question):
        return True
    match name.kind:
        case "clock" | "onset":
            return any(look.has_minute(name) for look in against)
        case "elsewhere":  # zones differ by quarters of an hour
            zones = (replace(name, kind="clock", key=key) for key in _in_all_zones(name.key))
            return any(look.has_minute(zone) for zone in zones for look in against)
        case "date":
            return any(name.key in look.result.dates for look in against)
        case _:
            return any(look.result.has(name) for look in against) or (
                name.kind == "code" and _unproven_code(name, known)
            )


def _in_all_zones(minute: str) -> Iterator[str]:
    at = int(minute[:2]) * 60 + int(minute[3:])
    for apart in range(0, 1440, 15):
        yield f"{(at + apart) % 1440 // 60:02d}:{(at + apart) % 60:02d}"


def _unproven_code(name: Name, known: Context) -> bool:
    """A word in code that no result knows may be a setting or a command; a shaped one may not."""
    plain = name.key.isalpha()
    return name.key in known.question or (plain and name.key not in known.vocabulary)


def _has_figure(
    figure: Figure,
    others: Sequence[Figure],
    parts: Sequence[Part],
    known: Context,
    *,
    exactly: bool,
) -> bool:
    if exactly and (figure.key in known.repeated or figure.text.lower() in known.question):
        return True
    if figure.usual and (usual := [part.usual for part in parts if part.usual]):
        return any(each.hold(figure, exactly=exactly) for each in usual)
    if _hold(parts, figure, exactly=exactly):
        return True
    if figure.family and any(part.tells(figure) for part in parts):
        return True
    return not exactly and _follows(figure, others, parts)


def _hold(parts: Sequence[Part], figure: Figure, *, exactly: bool = False) -> bool:
    return any(part.numbers.hold(figure, exactly=exactly) for part in parts)


def _follows(figure: Figure, others: Sequence[Figure], parts: Sequence[Part]) -> bool:
    if figure.family not in ("factor", "ratio") or len(others) > 8:
        return False
    held = [o for o in others if o is not figure and o.value and _hold(parts, o)]
    for one in held:
        for other in held:
            if one is other or one.family != other.family:
                continue
            made = one.value / other.value
            if any(abs(m - figure.value) <= figure.half * 1.5 for m in (made, abs(made - 1))):
                return True
    return False


def made_up_quotes(words: str, results: Sequence[Result], known: Context) -> list[str]:
    """Quotations of three words or more that no result holds."""
    if not _MAY_QUOTE.search(words):
        return []
    told = [
        match[1]
        for match in _QUOTED.finditer(words)
        if len(match[1]) >= _SHORTEST_QUOTED and folded(match[1]).count(" ") >= _LEAST_QUOTED
    ]
    return [
        f"“{quote[:_SHOWN_CHARS]}”"
        for quote in told
        if quote.lower() not in known.question
        and not any(has_quote(quote, result) for result in results)
    ]


def has_quote(quote: str, result: Result) -> bool:
    """Whether a result holds it, as far as it is not cut short."""
    parts = [folded(part) for part in quote.replace("…", "...").split("...")]
    return all(part in result.folded or part in result.folded_whole for part in parts if part)


def not_in(
    wanted: Wanted, against: Sequence[Result], known: Context, *, exactly: bool
) -> list[str]:
    """The names and figures that the results do not hold, as written."""
    looks = (
        known.everywhere if exactly else [_ResultLookup(result, wanted.words) for result in against]
    )
    parts = [part for look in looks for part in look.parts] if wanted.figures else ()
    lacking = [
        name.text
        for name in wanted.names
        if not (name.kind in _NAMES and is_denied(name, wanted.words))
        and not _has_name(name, looks, known, exactly=exactly)
    ]
    results = known.good if exactly else against
    for each in wanted.figures:
        said = wanted.spoken.get(_LEADING.sub("", each.text)) if wanted.spoken else None
        # "One" and "five" are often no figures of a result where none is cited.
        is_loose = said is not None and (
            exactly or each.raw == 1 or not is_noun_behind(each, wanted.words)
        )
        if not (
            is_loose
            or _has_figure(each, wanted.figures, parts, known, exactly=exactly)
            or is_listed(each, wanted.words, () if exactly else results)
            or is_in_context(each, wanted.words, results)
            or is_derived(each, known.stated(results)[0])
        ):
            lacking.append(said or each.text)
    return lacking
