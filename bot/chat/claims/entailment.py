"""Whether facts entail a clause: subject, predicate and every value, all by one row.

A clause that is not understood is not entailed.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from bot.chat.claims.clauses import Clause
from bot.chat.claims.facts import Fact, Kind
from bot.chat.claims.lexicon import Word
from bot.chat.claims.names import folded
from bot.chat.claims.predicates import NOTHING, USAGE, Fits, frame, states

_PARTS: Final = ("db", "database", "cache", "queue", "redis", "postgres", "mysql", "pool")
_INTRO = re.compile(
    r"\W*(?:(?:and )?kubernetes (?:warns|warned|reports)(?: of)?|a warning that is over:)\s",
    re.IGNORECASE,
)
_PIECES = re.compile(r"[,:;]\s")
_WORDED: Final = frozenset({Kind.OBJECT, Kind.LOG, Kind.CALL})  # their own words explain a word
_ANYBODY: Final = frozenset({"*"})  # what a list of all products was asked for


def entailed(clause: Clause, facts: Sequence[Fact]) -> bool:
    ends_never = Word.UNTIL in clause.does and not clause.times
    if ends_never or not clause.does.isdisjoint((Word.SOFT, Word.ONLY)):
        return False
    kinds, fits = frame(clause)
    own = [fact for fact in facts if fact.kind in kinds]
    return all(_one(single, own, fits) for single in distributed(clause))


def distributed(clause: Clause) -> Iterator[Clause]:
    """One clause per subject and role: `checkout and gateway are slow`."""
    for subject in dict.fromkeys(clause.subjects) or [""]:
        for role in dict.fromkeys(clause.roles) or [""]:
            subjects, roles = [subject] if subject else [], [role] if role else []
            yield replace(clause, subjects=subjects, roles=roles)


def _one(clause: Clause, facts: Sequence[Fact], fits: Fits) -> bool:
    about = _own_first(clause, [fact for fact in facts if is_about(clause, fact)])
    bearing = [fact for fact in about if fits(fact, clause) and _explains(fact, clause)]
    if Word.NONE in clause.does and clause.is_denied:
        return False
    if (Word.NONE in clause.does or clause.is_denied) and "restarts" in clause.nouns:
        says_more = clause.figures or clause.states or clause.times or clause.ways
        return not says_more and _never_restarted(clause, about)
    if Word.NONE in clause.does and Word.UNAVAILABLE not in clause.does:
        return _is_none(clause, about) or _is_not_listed(clause, facts)
    if clause.is_denied and Word.DEPLOYED in clause.does:
        return _is_not_listed(clause, facts)
    if clause.is_denied and Word.RECOVERED in clause.does:
        return bool(bearing) and not any("recovered" in states(fact) for fact in about)
    if clause.is_denied:
        # Only a way is denied word by word; other denials are decided where a rule knows them.
        is_way = bool(clause.ways) and all(denied for _, denied in clause.ways)
        return is_way and not clause.figures and bool(bearing) and len(bearing) == len(about)
    if Word.ALL in clause.does and not (clause.subjects and clause.roles and clause.ways):
        return any(_is_all(fact) for fact in bearing)
    if all(way == "flat" for way, _ in clause.ways) and clause.ways and not clause.roles:
        moved = [fact for fact in about if fact.kind is Kind.SIGNAL and fact.way]
        return bool(bearing) and all(fact.way == "flat" for fact in moved)
    return bool(bearing)


def _own_first(clause: Clause, about: Sequence[Fact]) -> Sequence[Fact]:
    own = {fact.role for fact in about if not fact.subjects.isdisjoint(clause.subjects)}
    return [
        fact for fact in about
        if fact.role not in own or fact.role not in USAGE or not fact.subjects.isdisjoint(clause.subjects)
    ]  # fmt: skip


def _never_restarted(clause: Clause, about: Sequence[Fact]) -> bool:
    objects = (fact for fact in about if fact.kind is Kind.OBJECT and _explains(fact, clause))
    counted = [fact for fact in objects if "restarts" in fact.figures]
    return bool(counted) and all(
        fact.is_whole and all(one.raw == 0 for one in fact.figures["restarts"]) for fact in counted
    )


def _is_not_listed(clause: Clause, facts: Sequence[Fact]) -> bool:
    says_more = clause.has_values or clause.roles
    if says_more or not clause.subjects or clause.does & {Word.REVERTED, Word.ALL}:
        return False
    if Word.DEPLOYED not in clause.does and "deploy" not in clause.nouns:
        return False
    lists = [fact for fact in facts if fact.kind is Kind.COUNT and "deploy" in fact.terms["noun"]]
    named = frozenset().union(*(fact.subjects for fact in facts if fact.kind is Kind.DEPLOY))
    asked = frozenset(clause.subjects)
    of_all = [one for one in lists if one.subjects <= _ANYBODY or one.subjects >= asked]
    is_whole = bool(of_all) and all(fact.is_whole for fact in of_all)
    return is_whole and named.isdisjoint(asked)


def _is_none(clause: Clause, about: Sequence[Fact]) -> bool:
    if clause.has_values or clause.is_denied:
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
    is_other = fact.kind is Kind.SIGNAL and clause.quantiles and said.isdisjoint(clause.quantiles)
    return not is_other


def _is_of(name: str, fact: Fact) -> bool:
    if fact.role in USAGE and any(f"{name}-{part}" in fact.subjects for part in _PARTS):
        return True
    terms = (fact.terms.get(key, NOTHING) for key in ("host", "actor"))
    return name in fact.subjects or any(name in each for each in terms)


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
        and not (is_over and "over" not in states(fact))
        and any(f" {folded(name)} " in f" {' '.join(pieces)} " for name in fact.subjects)
        and all(f" {piece} " in f" {fact.text} " or piece in fact.subjects for piece in pieces)
        for fact in facts
    )


def _explains(fact: Fact, clause: Clause) -> bool:
    values = fact.subjects.union(*fact.terms.values())
    for word in clause.loose:
        parts = folded(word).split()
        if word in values or (parts and values.issuperset(parts)):
            continue
        if fact.kind not in _WORDED or f" {folded(word)} " not in f" {fact.text} ":
            return False
    return True
