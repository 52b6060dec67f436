"""Whether facts entail a clause: subject, predicate and every value, all by one row.

Whatever is not understood is not entailed.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from bot.chat.claims.clauses import Clause
from bot.chat.claims.clocks import clock, near
from bot.chat.claims.facts import Fact, Kind
from bot.chat.claims.lexicon import Word
from bot.chat.claims.names import Name, folded
from bot.chat.claims.quantities import Figure, Known, Numbers

NOTHING: Final = frozenset[str]()
_SATURATED: Final = 0.85
_LATE_S: Final = 30  # an onset in the second half of a minute is also of the next one
_FELT: Final = frozenset({"latency", "errors"})
_USAGE: Final = frozenset({"pool", "cpu", "memory", "disk", "queue"})
_PARTS: Final = ("db", "database", "cache", "queue", "redis", "postgres", "mysql", "pool")
_INTRO = re.compile(
    r"\W*(?:(?:and )?kubernetes (?:warns|warned|reports)(?: of)?|a warning that is over:)\s",
    re.IGNORECASE,
)
_PIECES = re.compile(r"[,:;]\s")
_Fits = Callable[[Fact, Clause], bool]


def entailed(clause: Clause, facts: Sequence[Fact]) -> bool:
    """Whether the facts entail it."""
    if not clause.does.isdisjoint((Word.SOFT, Word.ONLY)):
        return False
    kinds, fits = _frame(clause)
    own = [fact for fact in facts if fact.kind in kinds]
    return all(_one(single, own, fits) for single in distributed(clause))


def distributed(clause: Clause) -> Iterator[Clause]:
    """One clause per subject and role: `checkout and gateway are slow`."""
    for subject in dict.fromkeys(clause.subjects) or [""]:
        for role in dict.fromkeys(clause.roles) or [""]:
            subjects, roles = [subject] if subject else [], [role] if role else []
            yield replace(clause, subjects=subjects, roles=roles)


def _one(clause: Clause, facts: Sequence[Fact], fits: _Fits) -> bool:
    about = [fact for fact in facts if is_about(clause, fact)]
    bearing = [fact for fact in about if fits(fact, clause) and _explains(fact, clause)]
    if Word.NONE in clause.does and Word.UNAVAILABLE not in clause.does:
        return _is_none(clause, about)
    if clause.is_denied:
        # Only a way is denied word by word; other denials are decided where a rule knows them.
        is_way = bool(clause.ways) and all(denied for _, denied in clause.ways)
        return is_way and not clause.figures and bool(bearing) and len(bearing) == len(about)
    if Word.ALL in clause.does:
        return any(_is_all(fact) for fact in bearing)
    return bool(bearing)


def _is_none(clause: Clause, about: Sequence[Fact]) -> bool:
    """`No deploys`, `no errors`: the whole list was read, and is empty."""
    if (
        clause.figures
        or clause.times
        or clause.versions
        or clause.loose
        or clause.ways
        or clause.is_denied
    ):
        return False
    lists = [
        fact for fact in about
        if fact.kind is Kind.COUNT and "total" not in fact.figures
        and not fact.terms.get("noun", NOTHING).isdisjoint(clause.nouns)
    ]  # fmt: skip
    return bool(lists) and all(
        fact.is_whole and all(one.raw == 0 for one in fact.figures.get("count", ()))
        for fact in lists
    )


def _is_all(fact: Fact) -> bool:
    return fact.kind is Kind.COUNT and fact.figures.get("count") == fact.figures.get("total", ())


def is_about(clause: Clause, fact: Fact) -> bool:
    """Whether a fact is of the subject, the role and the quantile that a clause names."""
    is_theirs = bool(fact.subjects) or not clause.inherits
    if is_theirs and not all(_is_of(name, fact) for name in clause.subjects):
        return False
    measured = fact.kind in (Kind.SIGNAL, Kind.SPAN)
    if measured and clause.roles and fact.role not in clause.roles:
        return False
    said = fact.terms.get("quantile", NOTHING)
    return (
        fact.kind is not Kind.SIGNAL
        or not clause.quantiles
        or not said.isdisjoint(clause.quantiles)
    )


def _is_of(name: str, fact: Fact) -> bool:
    if fact.role in _USAGE and any(f"{name}-{part}" in fact.subjects for part in _PARTS):
        return True
    return (
        name in fact.subjects
        or name in fact.terms.get("host", NOTHING)
        or name in fact.terms.get("actor", NOTHING)
    )


def _frame(clause: Clause) -> tuple[frozenset[Kind], _Fits]:
    """The kinds of rows that can entail it, and what they have to say."""
    does = clause.does
    if Word.UNAVAILABLE in does:
        return frozenset({Kind.CALL, Kind.SIGNAL}), _is_unavailable
    if Word.REVERTED in does:
        return frozenset({Kind.ROLLBACK, Kind.DEPLOY}), _is_rollback
    if not does.isdisjoint((Word.DEPLOYED, Word.REPLACED)) or clause.versions:
        return frozenset({Kind.DEPLOY, Kind.COUNT}), _is_deploy
    if Word.RECOVERED in does:
        return frozenset({Kind.SIGNAL}), _has_recovered
    if (clause.states or "restarts" in clause.nouns) and not clause.quotes:
        return frozenset({Kind.OBJECT, Kind.COUNT}), _is_in_state
    if not does.isdisjoint((Word.SAYS, Word.MENTIONS)) or clause.quotes:
        return frozenset({Kind.LOG, Kind.OBJECT, Kind.COUNT}), _logs
    if clause.ways or Word.SATURATED in does:
        return frozenset({Kind.SIGNAL, Kind.SPAN, Kind.LOG}), _went
    if "line" in clause.nouns and any(slot == "count" for _, slot in clause.figures):
        return frozenset({Kind.LOG, Kind.COUNT}), _logs
    if not does.isdisjoint((Word.SPENDS, Word.TOOK)) or "trace" in clause.nouns:
        return frozenset({Kind.SPAN, Kind.LOG, Kind.DEPLOY, Kind.OBJECT}), _spends
    if clause.roles or Word.FAILS in does:
        return frozenset({Kind.SIGNAL, Kind.CALL}), _measures
    return frozenset({Kind.COUNT, Kind.OBJECT, Kind.SIGNAL}), _counts


def _is_unavailable(fact: Fact, clause: Clause) -> bool:
    is_so = fact.kind is Kind.CALL or "unmeasured" in _states(fact)
    return is_so and not (clause.figures or clause.times)


def _is_deploy(fact: Fact, clause: Clause) -> bool:
    if fact.kind is Kind.COUNT:
        is_bare = not (clause.versions or clause.times) and (clause.inherits or not clause.subjects)
        return is_bare and "deploy" in fact.terms.get("noun", NOTHING) and _counts(fact, clause)
    if clause.ways or clause.roles or any(slot == "count" for _, slot in clause.figures):
        return False
    if Word.FAILS in clause.does and "failed" not in _states(fact):
        return False
    return has_versions(fact, clause) and _values(fact, clause, ("at",))


def _is_rollback(fact: Fact, clause: Clause) -> bool:
    """Of a deploy it is only known that it was undone, not when and by whom."""
    if clause.ways or clause.roles or clause.figures:
        return False
    if fact.kind is Kind.DEPLOY and (clause.times or clause.loose or len(clause.versions) > 1):
        return False
    return (
        "reverted" in _states(fact)
        and has_versions(fact, clause)
        and _values(fact, clause, ("at",))
    )


def has_versions(fact: Fact, clause: Clause) -> bool:
    """Whether the versions of a clause are those of a deploy, the new one and the one before."""
    back = "now" if fact.kind is Kind.ROLLBACK else "usual"
    return all(
        version in fact.terms.get("previous" if slot == back else "version", NOTHING)
        for version, slot in clause.versions
    )


def _has_recovered(fact: Fact, clause: Clause) -> bool:
    return "recovered" in _states(fact) and _values(fact, clause, ("until",))


def _went(fact: Fact, clause: Clause) -> bool:
    if Word.SATURATED in clause.does and not (fact.role in _USAGE and usage(fact) >= _SATURATED):
        return False
    if not fact.role or (
        not clause.roles and fact.role not in _FELT and not clause.does & {Word.SATURATED}
    ):
        return False
    if "recovered" in _states(fact) and Word.PRESENT in clause.does:
        return False
    return all(bears(way, denied, fact) for way, denied in clause.ways) and _values(
        fact, clause, ("since",)
    )


def bears(way: str, denied: bool, fact: Fact) -> bool:
    """Whether a fact went that way, or did not where that is denied."""
    if not fact.way:
        return False
    same = fact.way != "flat" if way == "odd" else fact.way == way
    return same != denied


def usage(fact: Fact) -> float:
    """The highest share in use that a fact speaks of; 0 where it tells none."""
    return max(
        (one.value for one in fact.figures.get("now", ()) if one.family == "ratio"), default=0.0
    )


def _is_in_state(fact: Fact, clause: Clause) -> bool:
    nouns = fact.terms.get("noun", NOTHING)
    said = [noun for noun in clause.nouns if noun != "restarts"]
    if said and nouns and nouns.isdisjoint(said):
        return False
    counts = any(slot == "count" for _, slot in clause.figures) or Word.ALL in clause.does
    if fact.kind is Kind.COUNT and not counts:
        return False
    return _states(fact).issuperset(clause.states) and _values(fact, clause, ("at",))


def _logs(fact: Fact, clause: Clause) -> bool:
    if fact.kind is Kind.COUNT:
        return (
            not (clause.quotes or clause.loose)
            and "total" not in fact.figures
            and _counts(fact, clause)
        )
    if fact.kind is Kind.OBJECT:
        return bool(clause.quotes) and _values(fact, clause, ("at",))
    level = fact.terms.get("level", NOTHING)
    if "errors" in clause.roles and level != {"error"}:
        return False
    if "warning" in clause.nouns and level != {"warn"}:
        return False
    if Word.NEW in clause.does and _states(fact).isdisjoint(("new", "more", "gone")):
        return False
    if not all(bears(way, denied, fact) for way, denied in clause.ways):
        return False
    return _values(fact, clause, ("since", "at"))


def _spends(fact: Fact, clause: Clause) -> bool:
    if "mosttime" in clause.nouns:
        return "mosttime" in fact.terms.get("noun", NOTHING) and not clause.figures
    return _values(fact, clause, ("at",)) and bool(clause.figures)


def _measures(fact: Fact, clause: Clause) -> bool:
    """A value of a signal: `p99 is 1.8 s`, `8 % of requests fail`."""
    fails = Word.FAILS in clause.does
    if fact.kind is Kind.CALL:
        return fails and _values(fact, clause, ())
    if fails and fact.role != "errors":
        return False
    return bool(clause.figures) and _values(fact, clause, ("since",))


def _counts(fact: Fact, clause: Clause) -> bool:
    if not clause.figures:
        return False
    if fact.kind is Kind.SIGNAL:
        return fact.role == "traffic" and not clause.nouns and _values(fact, clause, ())
    nouns = fact.terms.get("noun", NOTHING)
    return bool(clause.nouns) and nouns.issuperset(clause.nouns) and _values(fact, clause, ())


def _states(fact: Fact) -> frozenset[str]:
    return fact.terms.get("state", NOTHING)


def _values(fact: Fact, clause: Clause, when: Sequence[str]) -> bool:
    """Every figure, time and quotation of the clause is the fact's own, in its place."""
    is_now = Word.PRESENT in clause.does and "recovered" in _states(fact)
    return (
        all(_holds(fact, figure, slot, is_now=is_now) for figure, slot in clause.figures)
        and all(is_at(fact, name, slot, when) for name, slot in clause.times)
        and all(_quotes(fact, quote) for quote in clause.quotes)
    )


# Where a figure of a place may stand besides; `now` without a unit is mostly a count.
_ALSO: Final[Mapping[str, tuple[str, ...]]] = {
    "took": ("now",),
    "restarts": ("count",),
}


def _holds(fact: Fact, figure: Figure, slot: str, *, is_now: bool) -> bool:
    own = fact.figures
    known = list(own.get("last" if slot == "now" and is_now and "last" in own else slot, ()))
    if slot == "change":
        changes = [one.value - 1 for one in own.get("factor", ())]
        return Numbers([Known(each, each, "ratio") for each in changes]).hold(figure)
    for other in _ALSO.get(slot, ()):
        known += own.get(other, ())
    if slot == "now":
        known += [] if known else own.get("took", ())
        known += [] if figure.family else (*own.get("count", ()), *own.get("total", ()))
    if slot == "factor" and figure.text.endswith("times"):
        known += (*own.get("restarts", ()), *own.get("count", ()))
    return Numbers(known).hold(figure)


def is_at(fact: Fact, name: Name, slot: str, when: Sequence[str]) -> bool:
    """Whether a fact has that time in one of the places."""
    if slot == "until":
        when = ("until",)
    minutes = frozenset(clock(at) for one in when for at in fact.times.get(one, ()))
    late = frozenset(clock(at) for at in fact.times.get("since", ()) if at.second >= _LATE_S)
    return near(name.key, minutes, name.margin_min) or (slot == "since" and near(name.key, late, 1))


def is_verbatim(words: str, facts: Sequence[Fact]) -> bool:
    """Whether a sentence only repeats the row of an object: its name, its state, its message."""
    intro = _INTRO.match(words)
    said = words[intro.end() :] if intro else words
    pieces = [folded(piece) for piece in _PIECES.split(said)]
    pieces = [piece for piece in pieces if piece]
    is_over = intro is not None and "over" in intro[0]
    return len(pieces) > 1 and any(
        fact.kind is Kind.OBJECT
        and bool(fact.text)
        and not (is_over and "over" not in _states(fact))
        and any(f" {folded(name)} " in f" {' '.join(pieces)} " for name in fact.subjects)
        and all(f" {piece} " in f" {fact.text} " or piece in fact.subjects for piece in pieces)
        for fact in facts
    )


def _quotes(fact: Fact, quote: str) -> bool:
    parts = [folded(part) for part in quote.replace("…", "...").split("...")]
    return bool(fact.text) and all(part in fact.text for part in parts if part)


def _explains(fact: Fact, clause: Clause) -> bool:
    """Every word that is not understood is a value of the fact: a person, a host, an operation."""
    values = fact.subjects.union(*fact.terms.values())
    for word in clause.loose:
        parts = folded(word).split()
        if word in values or (parts and values.issuperset(parts)):
            continue
        if fact.kind is not Kind.OBJECT or f" {folded(word)} " not in f" {fact.text} ":
            return False
    return True
