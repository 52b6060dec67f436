"""Which of two events came first: what a sentence says of it, and what the results say."""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from bot.chat.claims.clauses import Clause, clauses_of
from bot.chat.claims.clocks import clock
from bot.chat.claims.entailment import is_about
from bot.chat.claims.facts import Fact, Kind
from bot.chat.claims.lexicon import Word
from bot.chat.claims.predicates import FELT, has_versions
from bot.chat.claims.quantities import Figure, KnownNumber, Numbers, figures

_Event = tuple[datetime, int]  # when, and by which result
_MARGIN: Final = timedelta(seconds=60)
_AFTER = re.compile(
    r"\b(?:(?:right |soon |shortly |just |only )?(?:after|following|once)|(?:was |were |is )?preceded by)\b(?! all\b)",
    re.IGNORECASE,
)
_BEFORE = re.compile(
    r"\b(?:(?:right |shortly |just |well |long )?before|prior to|ahead of|preceded|predates?|earlier than)\b(?!,)",
    re.IGNORECASE,
)
_THEN = re.compile(
    r"\b(?:(?:and |but )?(?:(?:was |were |it |they )?(?:then|subsequently)|only then|later)|followed by)\b|,? and (?=[^.;]{0,60}\b(?:afterwards|thereafter|later on)\b)",
    re.IGNORECASE,
)  # fmt: skip
_LEADING = re.compile(r"^\W*(after|following|before|prior to)\b([^,]{3,120}),", re.IGNORECASE)
_SAYS_ANYTHING = re.compile(r"[^\W\d_]")
_ONSET: Final = frozenset({Word.WAY, Word.FAILS, Word.SATURATED, Word.ROLE, Word.BEGAN})


@dataclass(frozen=True, slots=True)
class Order:
    """Two parts of a sentence: the first precedes the second, by `lapse` if given."""

    first: str
    second: str
    lapse: Figure | None = None


def order_in(words: str) -> Order | None:
    """The order that a sentence claims; None where it claims none."""
    if lead := _LEADING.match(words):
        rest = words[lead.end() :]
        is_first = lead[1].lower() in ("after", "following")
        return Order(lead[2], rest) if is_first else Order(rest, lead[2])
    for pattern, is_later in ((_BEFORE, False), (_AFTER, True), (_THEN, False)):
        match = pattern.search(words)
        if match is None or not match.start():
            continue
        left, right = words[: match.start()], words[match.end() :]
        if not _SAYS_ANYTHING.search(right):
            continue  # `up from 20 before`
        lapse = next((f for f in figures(left[-24:]) if f.family == "time"), None)
        if lapse is not None:
            left = left[: len(left) - len(left[-24:]) + lapse.at]
        return Order(right, left, lapse) if is_later else Order(left, right, lapse)
    return None


def without_order(order: Order) -> tuple[str, str]:
    """The two parts, to be checked each by itself."""
    first = re.sub(r"\b(?:at )?first\b", " ", order.first, flags=re.IGNORECASE)
    return first, re.sub(
        r"\b(?:afterwards|thereafter|later on)\b", " ", order.second, flags=re.IGNORECASE
    )


def holds(
    order: Order, facts: Sequence[Fact], subjects: Collection[str], quotes: Sequence[str]
) -> bool:
    earlier, later = _events(order, facts, subjects, quotes)
    if not earlier or not later or max(earlier)[0] >= min(later)[0]:
        return False
    return order.lapse is None or _lasts(
        order.lapse, [e for e, _ in earlier], [e for e, _ in later]
    )


def reversed_in(
    order: Order, facts: Sequence[Fact], subjects: Collection[str], quotes: Sequence[str]
) -> tuple[int, str] | None:
    """The result that has the two events the other way round, and when they were."""
    earlier, later = _events(order, facts, subjects, quotes)
    if not earlier or not later or min(earlier)[0] <= max(later)[0] + _MARGIN:
        return None
    (late, number), (early, _) = min(earlier), max(later)
    return number, f"{clock(early)} comes before {clock(late)}"


def _events(
    order: Order, facts: Sequence[Fact], subjects: Collection[str], quotes: Sequence[str]
) -> tuple[list[_Event], list[_Event]]:
    first, second = (clauses_of(part, quotes, subjects) for part in without_order(order))
    if not first or not second:
        return [], []
    for one, other in ((first[-1], second[0]), (second[0], first[-1])):
        one.subjects = one.subjects or other.subjects
    return _times(first[-1], facts), _times(second[0], facts)


def _lasts(lapse: Figure, earlier: Sequence[datetime], later: Sequence[datetime]) -> bool:
    apart = [(b - a).total_seconds() for a in earlier for b in later]
    minutes = [round(each / 60) * 60.0 for each in apart]
    return Numbers([KnownNumber(0.0, each, "time") for each in (*apart, *minutes)]).hold(lapse)


def _times(clause: Clause, facts: Sequence[Fact]) -> list[_Event]:
    about = [fact for fact in facts if is_about(clause, fact)]
    slot = "at"
    if Word.REVERTED in clause.does:
        found = [f for f in about if f.kind is Kind.ROLLBACK and has_versions(f, clause)]
    elif not clause.does.isdisjoint((Word.DEPLOYED, Word.REPLACED)) or clause.versions:
        found = [f for f in about if f.kind is Kind.DEPLOY and has_versions(f, clause)]
    elif clause.states or not {"restarts", "event"}.isdisjoint(clause.nouns):
        found = [f for f in about if f.kind is Kind.OBJECT]
    elif Word.RECOVERED in clause.does:
        found = [f for f in about if f.kind is Kind.SIGNAL and (clause.roles or f.role in FELT)]
        slot = "until"
    elif not clause.does.isdisjoint(_ONSET):
        of_errors = "errors" in clause.roles or Word.FAILS in clause.does
        kinds = (Kind.SIGNAL, Kind.LOG) if of_errors else (Kind.SIGNAL,)
        found = [f for f in about if f.kind in kinds and f.way != "flat"]
        slot = "since"
    else:
        return []
    return [(at, fact.number) for fact in found for at in fact.times.get(slot, ())]
