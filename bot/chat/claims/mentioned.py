"""What a sentence mentions without claiming it of its result: lists cut short, contrasts, quoted runs."""

import re
from collections.abc import Collection, Iterator, Sequence
from itertools import combinations
from typing import Final

from bot.chat.claims.facts import Fact
from bot.chat.claims.lexicon import CLASSES, NOUN_OF, Word
from bot.chat.claims.names import Name, folded
from bot.chat.claims.quantities import Figure, Numbers
from bot.chat.claims.results import Result

_MORE = re.compile(r"\s(?:more|others?|further)\b", re.IGNORECASE)
_ITEM = re.compile(r"[\w./@:-]*[A-Za-z][\w./@:-]*")
_CONTRAST = re.compile(
    r"\b(?:not|nor|rather than|instead of|unlike|other than|except(?: for)?|apart from)\s+"
    r"(?:(?:in|on|of|from|by|at|with|the|a|an|for|to)\s+){0,3}[`*\"]{0,3}([\w][\w./@:-]*)",
    re.IGNORECASE,
)
_AGAINST = re.compile(
    r"(?:,? but|,)? (?:not|rather than) (?:(?:in|on|of|from|for) )?(?:the )?[`*]{0,2}([\w][\w./@:-]*)[`*]{0,2}"
    r"(?:,|(?= *[.;]? *$))",
    re.IGNORECASE,
)
_DENIAL = re.compile(
    r"(?:\b(?:no|not|never|none|nothing|neither|nor|without)\b|n['’]t\b)[^.;:]{0,80}$",
    re.IGNORECASE,
)
_NOT_DEPLOYED = re.compile(
    r"[`*]{0,2} (?:itself )?(?:(?:was|were|has|have|is) (?:not|never)|(?:was|were|has|have|is)n['’]t)"
    r" (?:been )?(?:deployed|released|shipped|updated|upgraded|rolled)\b",
    re.IGNORECASE,
)
_ELSEWHERE = re.compile(r"\b[\w.]{1,12} hours? (?:later|earlier|ahead|behind)\b", re.IGNORECASE)
_EVENTS: Final = 40  # times of facts whose pairs are all compared
_HALF_MINUTE: Final = 30.0
_MOST_ITEMS: Final = 60
_BESIDE: Final = 40  # characters on each side of a figure


def contrasted(words: str) -> frozenset[str]:
    """The names that a sentence sets against its own: `in checkout, not in pricing`."""
    return frozenset(match[1].rstrip(".").lower() for match in _CONTRAST.finditer(words))


def without_contrast(words: str, subjects: Collection[str]) -> tuple[str, Sequence[str]]:
    """The sentence without `, not in pricing`, and the subjects that it denies by that."""
    denied: list[str] = []

    def cut(match: re.Match[str]) -> str:
        name = match[1].rstrip(".").lower()
        if name not in subjects:
            return match[0]
        denied.append(name)
        return " "

    return _AGAINST.sub(cut, words), denied


def is_denied(name: Name, words: str) -> bool:
    """Whether a sentence denies something of it: that a result does not have it is no contradiction."""
    at = words.find(name.text)
    if at < 0:
        return False
    behind = words[at + len(name.text) :]
    return _DENIAL.search(words[:at]) is not None or _NOT_DEPLOYED.match(behind) is not None


def without_zones(words: str) -> str:
    return _ELSEWHERE.sub(lambda match: " " * len(match[0]), words)


def is_noun_behind(figure: Figure, words: str) -> bool:
    """Whether a number that is spelled out counts something: `seven pods`, not `the two`."""
    behind = _ITEM.search(words, figure.end, figure.end + _BESIDE)
    word = behind[0].lower().rstrip(".") if behind else ""
    return bool(figure.family) or word in NOUN_OF or CLASSES.get(word) is Word.NOUN


def is_derived(figure: Figure, facts: Sequence[Fact]) -> bool:
    """Whether it follows from facts: a factor, a share, or the time between two of them."""
    if figure.family in ("factor", "ratio"):
        known = [fact.figures.get(slot, ()) for fact in facts for slot in ("factor", "share")]
        return Numbers([one for each in known for one in each]).hold(figure)
    if figure.family != "time":
        return False
    times = {at for fact in facts for of in fact.times.values() for at in of[:1]}
    few = sorted(times)[:_EVENTS]
    half = max(figure.half, _HALF_MINUTE if figure.value >= 60 else 0.0)
    apart = ((later - one).total_seconds() for one, later in combinations(few, 2))
    return any(abs(each - figure.value) <= half for each in apart)


def is_listed(figure: Figure, words: str, results: Sequence[Result]) -> bool:
    """`a, b and 6 more`: whether a list that holds these names is that long, or none holds them."""
    if figure.family or not _MORE.match(words, figure.end):
        return False
    before = re.sub(r"(?:,? and|,|\+)\s*$", "", words[: figure.at])
    items = _items(before)
    if not items:
        return False
    found = [len(group) for result in results for group in _groups(result) if items <= group]
    return not found or len(items) + figure.raw in found


def _items(before: str) -> frozenset[str]:
    head = max(before.rfind(mark) for mark in "(:;")
    pieces = before[head + 1 :].split(",")[-_MOST_ITEMS:]
    if len(pieces) == 1:
        pieces = pieces[0].split(" and ")
    # The sentence precedes the first one: its last word is the name.
    last = [_ITEM.findall(piece)[-1:] for piece in pieces]
    return frozenset(word.lower().rstrip(".") for each in last for word in each)


def _groups(result: Result) -> Iterator[frozenset[str]]:
    yield frozenset(result.index.owners)
    yield frozenset(result.index.names)
    for value in result.fields.values():
        if isinstance(value, dict):
            yield frozenset(key.lower() for key in value)
        elif isinstance(value, list):
            rows = [row for row in value if isinstance(row, dict)]
            for key in ("product", "name", "object", "service"):
                yield frozenset(
                    said.lower() for row in rows if isinstance(said := row.get(key), str)
                )


def is_in_context(figure: Figure, words: str, results: Sequence[Result]) -> bool:
    """Whether a result has the figure with the same words beside it: it is quoted from there."""
    before = folded(words[max(0, figure.at - _BESIDE) : figure.at]).split()[-2:]
    behind = folded(words[figure.end : figure.end + _BESIDE]).split()[:2]
    said = [*before, *folded(figure.text).split(), *behind]
    at, size = len(before), len(folded(figure.text).split())
    runs = {
        " ".join(said[start : start + size + 2])
        for start in range(max(0, at - 2), at + 1)
        if start + size + 2 <= len(said)
    }
    return any(f" {run} " in f" {result.folded} " for run in runs for result in results)
