"""What the facts say instead, where a sentence is about the same thing and is wrong."""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Final

from bot.chat.claims.clauses import Clause
from bot.chat.claims.clocks import clock
from bot.chat.claims.entailment import distributed, is_about
from bot.chat.claims.excluded_causes import FREE, ILL, Refuted, excluded_causes, percent
from bot.chat.claims.facts import Fact, Kind
from bot.chat.claims.lexicon import Word
from bot.chat.claims.mentioned import contrasted
from bot.chat.claims.order import order_in, reversed_in
from bot.chat.claims.predicates import FELT, NOTHING, bears, has_versions, is_at, usage
from bot.chat.claims.sentences import CAUSAL

_WELL: Final = frozenset({"running", "ready", "healthy", "up"})
_REQUESTS = re.compile(
    r"\b(?:requests?|calls?|orders?|payments?|customers?|users?|everything|everybody|everyone)\b",
    re.IGNORECASE,
)
_SERVICES = re.compile(r"\b(?:services?|products?|apps?|components?|everything)\b", re.IGNORECASE)
_NOT_CAUSE = re.compile(
    r"\b(?:not|n['’]t|no|never|neither|rather than|instead of|nor|rule[sd]? out|excluded?|unlikely|hardly|if|whether|could|may|might)\b",
    re.IGNORECASE,
)
_DECIDED: Final = frozenset({"confirmed", "approved", "rejected", "proposed", "expired"})
_NOTHING_WRONG = re.compile(
    r"\b(?:nothing (?:is|was|looks) (?:wrong|abnormal|unusual)|no (?:problems?|issues?|trouble|anomal(?:y|ies)|failures?) (?:in|with|of|on|for|at)|"
    r"nothing (?:moved|changed|stands out))\b",
    re.IGNORECASE,
)


def refutations(
    words: str,
    clauses: Sequence[Clause],
    facts: Sequence[Fact],
    subjects: Collection[str],
    quotes: Sequence[str],
) -> Iterator[Refuted]:
    """The facts that decide a sentence the other way, and what they say. `clauses` are its own."""
    order = order_in(words)
    if order is not None and not _NOT_CAUSE.search(words):
        yield from filter(None, [reversed_in(order, facts, subjects, quotes)])
    if CAUSAL.search(words) and not _NOT_CAUSE.search(words):
        yield from excluded_causes(words, clauses, facts)
    if _NOTHING_WRONG.search(words):
        yield from _something_wrong(clauses, facts)
    for clause in clauses:
        if order is None:
            yield from _deploy(clause, facts)
            yield from _rollback(clause, facts)
            yield from _onset(clause, facts) if not clause.loose else ()
        yield from _scope(words, clause, facts)
        if not clause.loose:  # all of it is understood
            yield from _recovery(clause, facts)
            yield from _state(clause, facts)
            yield from _saturation(clause, facts)
            yield from _way(clause, facts) if not contrasted(words) else ()


def _deploy(clause: Clause, facts: Sequence[Fact]) -> Iterator[Refuted]:
    does = clause.does
    if does.isdisjoint((Word.DEPLOYED, Word.REPLACED)) or does & {Word.SOFT, Word.REVERTED}:
        return
    deploys = [fact for fact in facts if fact.kind is Kind.DEPLOY]
    named = [fact for fact in deploys if is_about(clause, fact)]
    told = [
        fact
        for fact in deploys
        if clause.versions and clause.versions[0][0] in fact.terms.get("version", NOTHING)
    ]
    own = told or (named if clause.subjects else [])
    if not own or (not clause.versions and len(own) > 1):
        return
    one = own[0]
    if clause.is_denied or Word.NONE in clause.does:
        if not clause.loose and not clause.times:
            yield one.number, _deployed(one)
        return
    is_one = len(clause.versions) == 1 and len(set(clause.subjects)) == 1
    if told and is_one and not any(is_about(clause, fact) for fact in told):
        yield (
            one.number,
            f"{_any(one.terms, 'version', 'v')} is of {min(one.subjects, default='another product')}",
        )
    people = frozenset[str]().union(*(fact.terms.get("actor", NOTHING) for fact in deploys))
    if len(own) == 1 and (
        wrong := people.intersection(clause.loose) - one.terms.get("actor", NOTHING)
    ):
        yield one.number, f"deployed by {_any(one.terms, 'actor')}, not by {min(wrong)}"
    if (
        len(own) == 1
        and Word.REPLACED in does
        and len(clause.versions) == 2
        and not has_versions(one, clause)
    ):
        yield (
            one.number,
            f"{_any(one.terms, 'version', 'v')} replaced {_any(one.terms, 'previous', 'v')}",
        )
    is_plain = not (clause.ways or clause.roles)
    if (
        len(own) == 1
        and is_plain
        and any(not is_at(one, t, s, ("at", "until")) for t, s in clause.times if s != "since")
    ):
        yield one.number, _deployed(one)


def _rollback(clause: Clause, facts: Sequence[Fact]) -> Iterator[Refuted]:
    own = [fact for fact in facts if fact.kind is Kind.ROLLBACK and is_about(clause, fact)]
    is_open = clause.is_denied or not clause.does.isdisjoint((Word.SOFT, Word.NONE))
    if Word.REVERTED not in clause.does or len(own) != 1 or is_open:
        return
    if not _DECIDED.isdisjoint(clause.loose):
        return  # who confirmed it, and when, is no matter of deploys
    one = own[0]
    deploys = [fact for fact in facts if fact.kind is Kind.DEPLOY]
    people = frozenset[str]().union(*(fact.terms.get("actor", NOTHING) for fact in deploys))
    at = [name for name, slot in clause.times if slot != "since"]
    if wrong := people.intersection(clause.loose) - one.terms.get("actor", NOTHING):
        yield one.number, f"rolled back by {_any(one.terms, 'actor')}, not by {min(wrong)}"
    elif not has_versions(one, clause):
        yield (
            one.number,
            f"{_any(one.terms, 'version', 'v')} was rolled back to {_any(one.terms, 'previous', 'v')}",
        )
    elif at and not any(_is_near(one.times.get("at", ()), name.key) for name in at):
        yield one.number, f"rolled back at {clock(one.times['at'][0])}"


def _deployed(fact: Fact) -> str:
    at = "".join(f" at {clock(each)}" for each in fact.times.get("at", ()))
    return f"{_any(fact.terms, 'version', 'v')} deployed{at}"


def _any(terms: Mapping[str, frozenset[str]], key: str, before: str = "") -> str:
    found = min(terms.get(key, NOTHING), default="")
    return (
        re.sub(r"[`*_~<>|\[\]]", "", f"{before if found[:1].isdigit() else ''}{found}")[:60]
        or "another"
    )


def _onset(clause: Clause, facts: Sequence[Fact]) -> Iterator[Refuted]:
    since = [(name, slot) for name, slot in clause.times if name.kind == "onset" or slot == "since"]
    if (
        not since
        or not clause.ways
        or not clause.does.isdisjoint((Word.SOFT, Word.DEPLOYED, Word.RECOVERED))
    ):
        return
    own = [
        f for f in facts if f.kind is Kind.SIGNAL and is_about(clause, f) and f.times.get("since")
    ]
    own = [f for f in own if all(bears(way, denied, f) for way, denied in clause.ways)]
    if own and not any(_is_near(f.times["since"], name.key) for f in own for name, _ in since):
        yield own[0].number, f"since {clock(own[0].times['since'][0])}"


def _is_near(times: Sequence[datetime], minute: str) -> bool:
    said = int(minute[:2]) * 60 + int(minute[3:])
    apart = [abs(at.hour * 60 + at.minute - said) for at in times]
    return any(min(each, 1440 - each) <= 3 for each in apart)


def _recovery(clause: Clause, facts: Sequence[Fact]) -> Iterator[Refuted]:
    if (
        Word.RECOVERED not in clause.does
        or clause.is_denied
        or not clause.does.isdisjoint((Word.SOFT, Word.NONE))
    ):
        return
    own = [
        f
        for f in facts
        if f.kind is Kind.SIGNAL and is_about(clause, f) and f.way in ("up", "down")
    ]
    own = [f for f in own if clause.roles or f.role in FELT]
    if not own:
        return
    over = [f for f in own if "recovered" in f.terms.get("state", NOTHING)]
    still = [f for f in own if f not in over and f.figures.get("last")]
    if still and not over:
        yield still[0].number, f"{still[0].role} is still {still[0].way}"
    elif (
        over
        and len(over) == len(own)
        and any(not is_at(f, n, s, ("until",)) for f in over[:1] for n, s in clause.times)
    ):
        yield (
            over[0].number,
            f"usual since {clock(over[0].times['until'][0])}"
            if over[0].times.get("until")
            else "another time",
        )


def _scope(words: str, clause: Clause, facts: Sequence[Fact]) -> Iterator[Refuted]:
    does = clause.does
    errors = [
        f
        for f in facts
        if f.kind is Kind.SIGNAL
        and f.role == "errors"
        and is_about(clause, f)
        and f.figures.get("now")
    ]
    shares = [one for f in errors for one in f.figures["now"] if one.family == "ratio"]
    fails = Word.FAILS in does or "errors" in clause.roles
    if shares and fails and _REQUESTS.search(words) and not clause.is_denied and not clause.figures:
        most = max(one.value for one in shares)
        if Word.ALL in does and most < 0.98:
            yield errors[0].number, f"{percent(most)} fail"
        if Word.NONE in does and all(f.way == "up" for f in errors):
            yield errors[0].number, f"{percent(most)} fail"
    moved = [
        f
        for f in facts
        if f.kind is Kind.SIGNAL and f.way in ("up", "down") and f.role in (clause.roles or FELT)
    ]
    if Word.ONLY in does and clause.subjects and clause.ways and not clause.is_denied:
        others = [f for f in moved if f.subjects.isdisjoint(clause.subjects) and _is_far(f)]
        own = [f for f in moved if is_about(clause, f)]
        if own and others:
            yield (
                others[0].number,
                f"{others[0].role} of {min(others[0].subjects)} is {others[0].way} too",
            )
    if (
        Word.ALL in does
        and clause.ways
        and not clause.subjects
        and _SERVICES.search(words)
        and not clause.is_denied
    ):
        well = [
            f
            for f in facts
            if f.kind is Kind.SIGNAL and f.way == "flat" and f.role in (clause.roles or FELT)
        ]
        if well and all(way in ("up", "down", "odd") for way, _ in clause.ways):
            yield (
                well[0].number,
                f"{well[0].role} of {min(well[0].subjects, default='it')} is as usual",
            )


def _is_far(fact: Fact) -> bool:
    return any(one.value >= 3 for one in fact.figures.get("z", ()))


def _state(clause: Clause, facts: Sequence[Fact]) -> Iterator[Refuted]:
    said = frozenset(clause.states)
    is_open = clause.is_denied or not clause.does.isdisjoint((Word.SOFT, Word.NONE, Word.ALL))
    if not said or is_open or clause.figures:  # `0 of 2 pods are ready` counts them
        return
    own = [f for f in facts if f.kind is Kind.OBJECT and clause.subjects and set(clause.subjects) <= f.subjects
           and "event" not in f.terms.get("noun", NOTHING)]  # fmt: skip
    for wrong, right in ((_WELL, ILL), (ILL, _WELL)):
        if (
            own
            and said & wrong
            and all(
                f.terms.get("state", NOTHING) & right and not f.terms["state"] & said for f in own
            )
        ):
            yield own[0].number, min(own[0].terms["state"] & right)


def _way(clause: Clause, facts: Sequence[Fact]) -> Iterator[Refuted]:
    is_plain = clause.does.isdisjoint((Word.SOFT, Word.ONLY, Word.NONE)) and not clause.is_denied
    counts = bool(clause.nouns or clause.states) and not clause.roles
    if not clause.subjects or clause.inherits or not is_plain or counts:
        return
    for single in distributed(clause):
        own = [f for f in facts if f.kind is Kind.SIGNAL and f.way and is_about(single, f)]
        felt = [f for f in own if single.roles or f.role in FELT]
        for way, denied in clause.ways:
            borne = own if way == "odd" else felt
            if felt and not any(bears(way, denied, f) for f in borne):
                yield (
                    felt[0].number,
                    f"{felt[0].role} of {min(felt[0].subjects)} is {'as usual' if felt[0].way == 'flat' else felt[0].way}",
                )


def _saturation(clause: Clause, facts: Sequence[Fact]) -> Iterator[Refuted]:
    if (
        Word.SATURATED not in clause.does
        or Word.SOFT in clause.does
        or not (clause.roles or clause.subjects)
    ):
        return
    own = [
        f
        for f in facts
        if f.kind is Kind.SIGNAL and is_about(clause, f) and usage(f) and f.role not in FELT
    ]
    if own and not clause.is_denied and all(usage(f) < FREE for f in own):
        yield own[0].number, f"{percent(max(map(usage, own)))} in use"
    if own and clause.is_denied and all(usage(f) >= 0.97 for f in own):
        yield own[0].number, f"{percent(max(map(usage, own)))} in use"


def _something_wrong(clauses: Sequence[Clause], facts: Sequence[Fact]) -> Iterator[Refuted]:
    named = {subject for clause in clauses for subject in clause.subjects}
    for fact in facts:
        is_theirs = not named or not fact.subjects.isdisjoint(named)
        moved = (
            fact.kind is Kind.SIGNAL and fact.way == "up" and fact.role in FELT and _is_far(fact)
        )
        if is_theirs and moved and "recovered" not in fact.terms.get("state", NOTHING):
            yield fact.number, f"{fact.role} of {min(fact.subjects, default='it')} is up"
