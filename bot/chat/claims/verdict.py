"""One sentence against the results it cites: does it stand, and if not, what mark does it bear."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

from bot.chat.claims.clocks import near
from bot.chat.claims.names import Name, folded, names
from bot.chat.claims.per_product import Part
from bot.chat.claims.quantities import Figure, figures
from bot.chat.claims.results import Compared, Result
from bot.chat.claims.rows import Row, disagreeing, named_in
from bot.chat.claims.sentences import (
    CAUSAL,
    STATE,
    Sentence,
    admits_failure,
    agrees,
    directions,
    is_open,
    is_suggestion,
    own_figures_disagree,
)
from bot.chat.claims.states import opposite
from bot.domain.claims import Claim, ClaimState

_COMMAND = re.compile(
    r"^\s*(?:\$|#|kubectl|helm|curl|psql|git|docker|kortex|/kortex|make|SELECT)\b|^\s*[$#] ",
    re.IGNORECASE,
)
# What they answer is what they were told.
_LOOKS_AT_NOTHING = frozenset({"core__report_findings", "core__propose_action"})
_QUOTED = re.compile(r"[\"“]([^\"“”\n]{12,1000})[\"”]")
_MAY_QUOTE = re.compile(r"[\"“]")
_LEAST_QUOTED = 2  # spaces: three words
_MOST_SHOWN = 3
_SENTENCE_CHARS = 3_000
_SHOWN_CHARS = 60


@dataclass
class Known:
    """What the whole answer rests on. `repeated`: what a cited sentence has shown to stand."""

    results: dict[int, Result]
    question: str
    vocabulary: frozenset[str]
    repeated: set[str] = field(default_factory=set)
    told: dict[tuple[str, tuple[int, ...], tuple[int, ...], bool], Claim | None] = field(
        default_factory=dict
    )

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


def judged(sentence: Sentence, known: Known) -> Claim | None:
    """The claim of a sentence; None when it claims nothing that could be held against a result.

    Those with a citation come first; so a sentence that stands again means what it meant before.
    """
    same = (sentence.text, sentence.cites, sentence.inherits, sentence.code)
    if same not in known.told:
        known.told[same] = _judged(sentence, known)
    return known.told[same]


def _judged(sentence: Sentence, known: Known) -> Claim | None:
    missing = [n for n in sentence.cites if n not in known.results]
    if missing:
        absent = " ".join(f"E{n}" for n in missing[:_MOST_SHOWN])
        return _claim(sentence, ClaimState.UNSUPPORTED, f"{absent} does not exist")
    if len(sentence.text) > _SENTENCE_CHARS:
        return _claim(sentence, ClaimState.UNSUPPORTED, "too long to check")
    cited = [known.results[n] for n in sentence.evidence if n in known.results]
    words = _without_quotes(sentence.words, cited)
    if not known.results:
        return _without_tools(sentence, known.question, "no tool was called")
    if not sentence.cites and not known.has_read and not admits_failure(words):
        return _without_tools(sentence, known.question, "nothing could be read")
    failed = [r for r in cited if not r.evidence.ok]
    if failed and sentence.cites and not admits_failure(words):
        return _claim(sentence, ClaimState.UNSUPPORTED, f"{_marks(failed)} failed")
    good = [r for r in cited if r.evidence.ok]
    against = good or cited or known.good
    wrong = "" if sentence.code else _opposite(words, good)
    if wrong:
        return _claim(sentence, ClaimState.CONTRADICTED, wrong)
    return _held(sentence, words, against, known, exactly=not cited)


def _claim(sentence: Sentence, state: ClaimState, note: str = "") -> Claim:
    return Claim(sentence.text, sentence.evidence, state, note)


def _marks(results: Sequence[Result]) -> str:
    return " ".join(f"E{r.number}" for r in results[:_MOST_SHOWN])


def _held(
    sentence: Sentence, words: str, against: Sequence[Result], known: Known, *, exactly: bool
) -> Claim | None:
    """Every figure and name of it, looked up."""
    if words.rstrip().endswith("?"):
        return None
    found, rest = names(words, known.vocabulary)
    soft = is_suggestion(words) or (sentence.code and _COMMAND.search(words) is not None)
    counted = [] if soft else list(figures(rest))
    if soft:
        found = [n for n in found if n.kind in ("version", "clock", "onset", "id")]
    looks = known.everywhere if exactly else [_Look(result, words) for result in against]
    parts = [part for look in looks for part in look.parts] if counted else ()
    lacking = [n.text for n in found if not _has_name(n, looks, known, exactly=exactly)]
    lacking += [
        each.text
        for each in counted
        if not _has_figure(each, counted, parts, known, exactly=exactly)
    ]
    if lacking:
        where = "any result" if exactly else _marks(against)
        return _claim(sentence, ClaimState.UNSUPPORTED, f"not in {where}: {_told(lacking)}")
    if found or counted:
        if not exactly:
            known.repeated.update(name.key for name in found)
            known.repeated.update(figure.key for figure in counted)
        return _claim(sentence, ClaimState.SUPPORTED)
    if directions(words) and any(r.compared or r.rows for r in against) and not exactly:
        return _claim(sentence, ClaimState.SUPPORTED)
    claims = CAUSAL.search(words) or STATE.search(words) or directions(words)
    return _claim(sentence, ClaimState.UNCHECKED) if claims or soft else None


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
        case "date":
            return any(name.key in look.result.dates for look in against)
        case _:
            return any(look.result.has(name) for look in against) or (
                name.kind == "code" and _unproven_code(name, known)
            )


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


def _opposite(words: str, cited: Sequence[Result]) -> str:
    """What the cited results say where the sentence says the opposite; empty where it does not."""
    if not cited or words.rstrip().endswith("?") or is_suggestion(words):
        return ""
    for result in cited:
        if told := opposite(words, result):
            return f"E{result.number} says: {told}"
    claimed = directions(words)
    if not claimed:
        return ""
    empty = [r for r in cited if r.is_empty_comparison]
    if len(empty) == len(cited) and not admits_failure(words) and not is_open(words):
        return f"E{empty[0].number} says: no data to compare"
    if own_figures_disagree(words, claimed):
        return f"{_marks(cited)} says: the other way round"
    own = {row: r.number for r in cited for row in _rows_of_named(words, r)}
    if other := None if any(r.compared for r in cited) else disagreeing(words, claimed, list(own)):
        return f"E{own[other]} says: {other.says}"
    return _other_way(words, claimed, cited)


def _rows_of_named(words: str, result: Result) -> list[Row]:
    return [row for one in named_in(words, result.rows) for row in result.rows[one]]


def _other_way(words: str, claimed: list[tuple[str, bool]], cited: Sequence[Result]) -> str:
    compared = [(r, c) for r in cited for c in r.compared]
    named = [(r, c) for r, c in compared if c.product and c.product.lower() in words.lower()]
    compared = named if named and len(cited) == 1 else compared
    wrong = [
        (way, denied)
        for way, denied in claimed
        if not any(_bears(way, denied, c) for _, c in compared)
    ]
    if not compared or not wrong:
        return ""
    if len(wrong) < len(claimed) and len(compared) < len(claimed):
        return ""
    result, one = compared[0]
    return f"E{result.number} says: {one.says}"


def _bears(way: str, denied: bool, compared: Compared) -> bool:
    return agrees(way, denied, compared.direction)


def _without_tools(sentence: Sentence, question: str, why: str) -> Claim | None:
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
        return _claim(sentence, ClaimState.UNSUPPORTED, f"not checked: {why}")
    return None
