"""One sentence against the results it cites: does it stand, and if not, what mark does it bear."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from bot.chat.claims.clauses import clauses_of, cut_quotes
from bot.chat.claims.clocks import near
from bot.chat.claims.entailment import entailed
from bot.chat.claims.fact_readers import facts_of
from bot.chat.claims.facts import Fact
from bot.chat.claims.mentioned import (
    contrasted,
    is_denied,
    is_derived,
    is_in_context,
    is_listed,
    is_noun_behind,
    without_zones,
)
from bot.chat.claims.names import Name, folded, names
from bot.chat.claims.numerals import in_digits
from bot.chat.claims.order import holds, order_in, without_order
from bot.chat.claims.per_product import Part
from bot.chat.claims.quantities import Figure, figures
from bot.chat.claims.refutation import refutations
from bot.chat.claims.results import Result
from bot.chat.claims.rows import named_in
from bot.chat.claims.sentences import (
    CAUSAL,
    STATE,
    Sentence,
    admits_failure,
    directions,
    is_open,
    is_suggestion,
)
from bot.chat.claims.states import SAYS, opposed
from bot.domain.claims import Claim, ClaimState

_COMMAND = re.compile(
    r"^\s*(?:\$|#|kubectl|helm|curl|psql|git|docker|kortex|/kortex|make|SELECT)\b|^\s*[$#] ",
    re.IGNORECASE,
)
# What they answer is what they were told.
_LOOKS_AT_NOTHING = frozenset({"core__report_findings", "core__propose_action"})
_QUOTED = re.compile(r"[\"“]([^\"“”\n]{12,1000})[\"”]")
_LEADING = re.compile(r"(?<=\d)[^\d.].*$")
_MAY_QUOTE = re.compile(r"[\"“]")
_LEAST_QUOTED = 2  # spaces: three words
_NAMES = frozenset({"name", "place", "code", "id"})
_MOST_SHOWN = 3
_SENTENCE_CHARS = 3_000
_SHOWN_CHARS = 60


@dataclass(frozen=True, slots=True)
class Finding:
    """The claim of a sentence. `is_held`: every name and figure of it is in the results."""

    claim: Claim
    is_held: bool = False


@dataclass
class Known:
    """What the whole answer rests on. `repeated`: what a cited sentence has shown to stand."""

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

    @cached_property
    def has_read(self) -> bool:
        """Whether any call answered that looks at something."""
        return any(r.evidence.tool not in _LOOKS_AT_NOTHING for r in self.good)

    @cached_property
    def good(self) -> Sequence[Result]:
        """Those of calls that answered."""
        return [r for r in self.results.values() if r.evidence.ok]

    @cached_property
    def everywhere(self) -> "Sequence[_Look]":
        """All of them whole: for a sentence that cites none."""
        return [_Look(result, "") for result in self.good]


class _Look:
    """A result as far as it is about whom a sentence names; all of it where it has nothing of them."""

    def __init__(self, result: Result, words: str) -> None:
        self.result = result
        self._of = named_in(words, result.index.owners)

    @cached_property
    def parts(self) -> Sequence[Part]:
        """What a figure of the sentence may be in."""
        return self.result.of(self._of) if self._of else (self.result.whole,)

    def has_minute(self, name: Name) -> bool:
        """Whether it speaks of that minute; of an onset, as one, where it tells onsets."""
        if name.kind == "onset" and not self._of and self.result.onsets:
            return near(name.key, self.result.onsets, name.margin_min)
        return any(part.clocks.have(name.key, name.margin_min) for part in self.parts)


def judged(sentence: Sentence, known: Known) -> Finding | None:
    """What is found of a sentence; None when it claims nothing that could be held against a result.

    Those with a citation come first; so a sentence that stands again means what it meant before.
    """
    same = (sentence.text, sentence.cites, sentence.inherits, sentence.code)
    if same not in known.told:
        known.told[same] = _judged(sentence, known)
    return known.told[same]


def _judged(sentence: Sentence, known: Known) -> Finding | None:
    missing = [n for n in sentence.cites if n not in known.results]
    if missing:
        absent = " ".join(f"E{n}" for n in missing[:_MOST_SHOWN])
        return _claim(sentence, ClaimState.CONTRADICTED, f"{absent} does not exist")
    if len(sentence.text) > _SENTENCE_CHARS:
        return _claim(sentence, ClaimState.UNCHECKED, "too long to check")
    cited = [known.results[n] for n in sentence.evidence if n in known.results]
    words = _without_quotes(sentence.words, cited)
    if not known.results:
        return _without_tools(sentence, known.question, "no tool was called")
    if not sentence.cites and not known.has_read and not admits_failure(words):
        return _without_tools(sentence, known.question, "nothing could be read")
    failed = [r for r in cited if not r.evidence.ok]
    if failed and sentence.cites and not admits_failure(words):
        return _claim(sentence, ClaimState.UNCHECKED, f"{_marks(failed)} failed")
    good = [r for r in cited if r.evidence.ok]
    against = good or cited or known.good
    wrong = "" if sentence.code else opposed(words, good)
    wrong = wrong or _refutation(sentence, good or (known.good if not cited else ()), known)
    if wrong:
        return _claim(sentence, ClaimState.CONTRADICTED, wrong)
    return _held(sentence, words, against, known, exactly=not cited)


def _claim(
    sentence: Sentence, state: ClaimState, note: str = "", *, is_held: bool = False
) -> Finding:
    return Finding(Claim(sentence.text, sentence.evidence, state, note), is_held)


def _marks(results: Sequence[Result]) -> str:
    return " ".join(f"E{r.number}" for r in results[:_MOST_SHOWN])


def _held(
    sentence: Sentence, words: str, against: Sequence[Result], known: Known, *, exactly: bool
) -> Finding | None:
    """Every figure and name of it, looked up; then whether a fact entails it."""
    if words.rstrip().endswith("?"):
        return None
    words, spoken = in_digits(without_zones(words))
    found, rest = names(words, known.vocabulary)
    denied = contrasted(words)
    found = [name for name in found if name.text.lower() not in denied]
    absent = frozenset(n.text for n in found if n.kind in _NAMES and is_denied(n, words))
    soft = is_suggestion(words) or (sentence.code and _COMMAND.search(words) is not None)
    counted = [] if soft else list(figures(rest))
    if soft:
        found = [n for n in found if n.kind in ("version", "clock", "onset", "id")]
    looks = known.everywhere if exactly else [_Look(result, words) for result in against]
    parts = [part for look in looks for part in look.parts] if counted else ()
    lacking = [
        n.text
        for n in found
        if n.text not in absent and not _has_name(n, looks, known, exactly=exactly)
    ]
    results = known.good if exactly else against
    for each in counted:
        said = spoken.get(_LEADING.sub("", each.text)) if spoken else None
        # "One" and "five" are often no figures of a result where none is cited.
        is_loose = said is not None and (
            exactly or each.raw == 1 or not is_noun_behind(each, words)
        )
        if not (
            is_loose
            or _has_figure(each, counted, parts, known, exactly=exactly)
            or is_listed(each, words, () if exactly else results)
            or is_in_context(each, words, results)
            or is_derived(each, known.stated(results)[0])
        ):
            lacking.append(said or each.text)
    lacking += [] if soft or exactly else _made_up_quotes(sentence.words, results, known)
    if lacking:
        where = "any result" if exactly else _marks(against)
        return _claim(sentence, ClaimState.CONTRADICTED, f"not in {where}: {_told(lacking)}")
    if (found or counted) and not exactly:
        known.repeated.update(name.key for name in found)
        known.repeated.update(figure.key for figure in counted)
    is_held = bool(found or counted) or bool(
        directions(words) and any(r.compared or r.rows for r in against) and not exactly
    )
    claims = is_held or CAUSAL.search(words) or STATE.search(words) or directions(words)
    if not soft and (claims or sentence.cites) and _is_entailed(sentence, against, known):
        return _claim(sentence, ClaimState.SUPPORTED, is_held=True)
    if claims or soft:
        return _claim(sentence, ClaimState.UNCHECKED, is_held=is_held)
    return None


def _is_entailed(sentence: Sentence, against: Sequence[Result], known: Known) -> bool:
    if sentence.code or is_open(sentence.words):
        return False
    facts, subjects = known.stated(against)
    words, quotes = cut_quotes(sentence.words)
    words = in_digits(words)[0]
    order = order_in(words)
    if order is not None and not holds(order, facts, subjects, quotes):
        return False
    parts = (words,) if order is None else without_order(order)
    found = [one for part in parts for one in clauses_of(part, quotes, subjects)]
    return bool(found) and all(entailed(one, facts) for one in found)


def _refutation(sentence: Sentence, good: Sequence[Result], known: Known) -> str:
    """What a fact of the results says instead; empty where none decides it."""
    words = sentence.words
    if sentence.code or is_suggestion(words) or is_open(words):
        return ""
    facts, subjects = known.stated(good)
    words, quotes = cut_quotes(words)
    words = in_digits(words)[0]
    told = next(refutations(words, facts, subjects, quotes), None)
    return f"E{told[0]}{SAYS}{told[1]}" if told else ""


def _made_up_quotes(words: str, results: Sequence[Result], known: Known) -> list[str]:
    """What stands in quotation marks, and in no result: three words or more."""
    if not _MAY_QUOTE.search(words):
        return []
    told = [
        match[1]
        for match in _QUOTED.finditer(words)
        if folded(match[1]).count(" ") >= _LEAST_QUOTED
    ]
    return [
        f"“{quote[:_SHOWN_CHARS]}”"
        for quote in told
        if quote.lower() not in known.question
        and not any(_has_quote(quote, result) for result in results)
    ]


def _has_quote(quote: str, result: Result) -> bool:
    parts = [folded(part) for part in quote.replace("…", "...").split("...")]
    return all(part in result.folded or part in result.folded_whole for part in parts if part)


def _told(lacking: Sequence[str]) -> str:
    shown = list(dict.fromkeys(lacking))
    more = f" and {len(shown) - _MOST_SHOWN} more" if len(shown) > _MOST_SHOWN else ""
    return ", ".join(re.sub(r"[`*_~\[\]<>|]", "", s)[:_SHOWN_CHARS] if "_" not in s else f"`{s[:_SHOWN_CHARS]}`"
                     for s in shown[:_MOST_SHOWN]) + more  # fmt: skip


def _has_name(name: Name, against: Sequence[_Look], known: Known, *, exactly: bool) -> bool:
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


def _without_quotes(words: str, cited: Sequence[Result]) -> str:
    """Without what is quoted from a result: its figures and names are the result's own."""

    if not cited or not _MAY_QUOTE.search(words):
        return words

    def kept(match: re.Match[str]) -> str:
        said = folded(match[1])
        is_quoted = said.count(" ") >= _LEAST_QUOTED and any(said in one.folded for one in cited)
        return " " if is_quoted else match[0]

    return _QUOTED.sub(kept, words)


def _unproven_code(name: Name, known: Known) -> bool:
    """A word in code that no result knows may be a setting or a command; a shaped one may not."""
    plain = name.key.isalpha()
    return name.key in known.question or (plain and name.key not in known.vocabulary)


def _has_figure(
    figure: Figure,
    others: Sequence[Figure],
    parts: Sequence[Part],
    known: Known,
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
    """A factor, a share or a difference of two other figures of the sentence."""
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


def _without_tools(sentence: Sentence, question: str, why: str) -> Finding | None:
    """State and causality in a turn that looked at nothing."""
    words = sentence.words
    if is_open(words) or (sentence.code and _COMMAND.search(words)):
        return None
    found, rest = names(words, frozenset())
    told = [n for n in found if n.kind not in ("code", "place") and n.text.lower() not in question]
    counted = [
        each
        for each in figures(rest)
        if (each.family or "." in each.text) and each.text.lower() not in question
    ]
    soft = is_suggestion(words)
    claims = CAUSAL.search(words) or STATE.search(words) or directions(words) or counted
    if (claims and not soft) or told:
        return _claim(sentence, ClaimState.UNCHECKED, f"not checked: {why}")
    return None
