"""One sentence against the results it cites: does it stand, and if not, what mark does it bear."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from bot.chat.claims.names import Name, names, near, stands_in
from bot.chat.claims.quantities import Figure, Numbers, figures
from bot.chat.claims.results import Compared, Result
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
_MOST_SHOWN = 3
_SENTENCE_CHARS = 3_000
_SHOWN_CHARS = 60


@dataclass(slots=True)
class Known:
    """What the whole answer rests on. `repeated`: what a cited sentence has shown to stand."""

    results: dict[int, Result]
    question: str
    vocabulary: frozenset[str]
    repeated: set[str] = field(default_factory=set)
    numbers: dict[tuple[int, ...], Numbers] = field(default_factory=dict)

    @property
    def has_read(self) -> bool:
        """Whether any call answered that looks at something."""
        return any(
            r.evidence.ok and r.evidence.tool not in _LOOKS_AT_NOTHING
            for r in self.results.values()
        )

    def numbers_of(self, results: Sequence[Result]) -> Numbers:
        """The numbers of some results, built once."""
        key = tuple(r.number for r in results)
        if key not in self.numbers:
            self.numbers[key] = Numbers(n for r in results for n in r.walked.numbers)
        return self.numbers[key]


def judged(sentence: Sentence, known: Known) -> Claim | None:
    """The claim of a sentence; None when it claims nothing that could be held against a result."""
    missing = [n for n in sentence.cites if n not in known.results]
    if missing:
        absent = " ".join(f"E{n}" for n in missing[:_MOST_SHOWN])
        return _claim(sentence, ClaimState.UNSUPPORTED, f"{absent} does not exist")
    if len(sentence.text) > _SENTENCE_CHARS:
        return _claim(sentence, ClaimState.UNSUPPORTED, "too long to check")
    words = sentence.words
    cited = [known.results[n] for n in sentence.evidence if n in known.results]
    if not known.results:
        return _without_tools(sentence, known.question, "no tool was called")
    if not sentence.cites and not known.has_read and not admits_failure(words):
        return _without_tools(sentence, known.question, "nothing could be read")
    failed = [r for r in cited if not r.evidence.ok]
    if failed and sentence.cites and not admits_failure(words):
        return _claim(sentence, ClaimState.UNSUPPORTED, f"{_marks(failed)} failed")
    good = [r for r in cited if r.evidence.ok]
    against = good or (cited or [r for r in known.results.values() if r.evidence.ok])
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
    lacking = [n.text for n in found if not _has_name(n, against, known, exactly=exactly)]
    numbers = known.numbers_of(against) if counted else None
    for each in counted:
        assert numbers is not None  # noqa: S101 - built for them
        if not _has_figure(each, counted, numbers, against, known, exactly=exactly):
            lacking.append(each.text)
    if lacking:
        where = "any result" if exactly else _marks(against)
        return _claim(sentence, ClaimState.UNSUPPORTED, f"not in {where}: {_told(lacking)}")
    if found or counted:
        if not exactly:
            known.repeated.update(name.key for name in found)
            known.repeated.update(_key(figure) for figure in counted)
        return _claim(sentence, ClaimState.SUPPORTED)
    if directions(words) and any(r.compared for r in against) and not exactly:
        return _claim(sentence, ClaimState.SUPPORTED)
    claims = CAUSAL.search(words) or STATE.search(words) or directions(words)
    return _claim(sentence, ClaimState.UNCHECKED) if claims or soft else None


def _told(lacking: Sequence[str]) -> str:
    shown = list(dict.fromkeys(lacking))
    more = f" and {len(shown) - _MOST_SHOWN} more" if len(shown) > _MOST_SHOWN else ""
    return ", ".join(re.sub(r"[`*_~\[\]<>|]", "", s)[:_SHOWN_CHARS] if "_" not in s else f"`{s[:_SHOWN_CHARS]}`"
                     for s in shown[:_MOST_SHOWN]) + more  # fmt: skip


def _key(figure: Figure) -> str:
    return figure.text.replace(" ", "")


def _has_name(name: Name, against: Sequence[Result], known: Known, *, exactly: bool) -> bool:
    if exactly and (name.key in known.repeated or name.text.lower() in known.question):
        return True
    match name.kind:
        case "clock":
            return any(near(name.key, r.clocks, name.margin_min) for r in against)
        case "onset":
            told = [r.onsets or r.clocks for r in against]
            return any(near(name.key, clocks, name.margin_min) for clocks in told)
        case "date":
            return any(name.key in r.dates for r in against)
        case _:
            return any(stands_in(name, r.text) for r in against) or (
                name.kind == "code" and _unproven_code(name, known)
            )


def _unproven_code(name: Name, known: Known) -> bool:
    """A word in code that no result knows may be a setting or a command; a shaped one may not."""
    plain = name.key.isalpha()
    return name.key in known.question or (plain and name.key not in known.vocabulary)


def _has_figure(
    figure: Figure,
    others: Sequence[Figure],
    numbers: Numbers,
    against: Sequence[Result],
    known: Known,
    *,
    exactly: bool,
) -> bool:
    if exactly and (_key(figure) in known.repeated or figure.text.lower() in known.question):
        return True
    if figure.usual and (usual := [n for r in against for n in r.walked.usual]):
        return Numbers(usual).hold(figure, exactly=exactly)
    if numbers.hold(figure, exactly=exactly):
        return True
    if figure.family and any(_verbatim(figure, r.text) for r in against):
        return True
    return not exactly and _follows(figure, others, numbers)


def _verbatim(figure: Figure, text: str) -> bool:
    """As written, with its unit, as a word of the result: `250m`, `1m 58s`."""
    for written in {figure.text.lower(), _key(figure).lower()}:
        at = text.find(written)
        while at >= 0:
            end = at + len(written)
            if (
                not (text[at - 1 : at].isalnum() or text[at - 1 : at] in (".", ","))
                and not text[end : end + 1].isalnum()
            ):
                return True
            at = text.find(written, end)
    return False


def _follows(figure: Figure, others: Sequence[Figure], numbers: Numbers) -> bool:
    """A factor, a share or a difference of two other figures of the sentence."""
    if figure.family not in ("factor", "ratio") or len(others) > 8:
        return False
    held = [o for o in others if o is not figure and o.value and numbers.hold(o)]
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
    return _other_way(words, claimed, cited)


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
