"""What the facts say instead, where a sentence is about the same thing and is wrong.

A cause is excluded by pods that all run, a pool with room, or a deploy that came later.
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Final

from bot.chat.claims.clauses import Clause
from bot.chat.claims.clocks import clock
from bot.chat.claims.entailment import distributed, is_about
from bot.chat.claims.facts import Fact, Kind
from bot.chat.claims.lexicon import Word
from bot.chat.claims.mentioned import contrasted
from bot.chat.claims.order import order_in, reversed_in
from bot.chat.claims.predicates import FELT, NOTHING, bears, has_versions, is_at, states, usage
from bot.chat.claims.sentences import CAUSAL

Refuted = tuple[int, str]  # the number of the result, and what it says
_FREE: Final = 0.7  # the share in use under which nothing is full
_ILL: Final = frozenset({"crashing", "failing", "pending", "evicted", "oomkilled", "failed"})
_WELL: Final = frozenset({"running", "ready", "healthy", "up"})
_USED: Final = ("pool", "cpu", "memory", "disk")
_CRASH = re.compile(r"\bcrash\w*|\boom\w*|\bout of memory\b|\bkilled\b", re.IGNORECASE)
_FULL = re.compile(
    r"\bsaturat\w+|\bexhaust\w+|\bran out\b|\boverload\w+|\bfull\b|\bstarv\w+|\bmaxed\b",
    re.IGNORECASE,
)
_SURGE = re.compile(
    r"\b(?:traffic|load|requests?)\b[^.;,]{0,20}\b(?:spike|surge|peak|jump|increase|burst)|\b(?:spike|surge|peak|burst|flood|jump|rise|increase) (?:of|in) (?:the )?(?:traffic|load|requests)",
    re.IGNORECASE,
)  # fmt: skip
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
    is_claim = not _NOT_CAUSE.search(words)
    if order is not None and is_claim:
        yield from filter(None, [reversed_in(order, facts, subjects, quotes)])
    if CAUSAL.search(words) and is_claim:
        yield from _excluded_causes(words, clauses, facts)
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


def _of(facts: Sequence[Fact], kind: Kind, clause: Clause | None = None) -> list[Fact]:
    """Those of a kind, and of what a clause is about."""
    return [f for f in facts if f.kind is kind and (clause is None or is_about(clause, f))]


def _is_open(clause: Clause, *words: Word) -> bool:
    """Whether a clause denies, or has one of the words that leave open what it claims."""
    return clause.is_denied or not clause.does.isdisjoint(words)


def _about(fact: Fact) -> str:
    return f"{fact.role} of {min(fact.subjects, default='it')}"


def _percent(value: float) -> str:
    return f"{value * 100:.3g} %"


def _deploy(clause: Clause, facts: Sequence[Fact]) -> Iterator[Refuted]:
    does = clause.does
    if does.isdisjoint((Word.DEPLOYED, Word.REPLACED)) or does & {Word.SOFT, Word.REVERTED}:
        return
    deploys = _of(facts, Kind.DEPLOY)
    version = clause.versions[0][0] if clause.versions else None
    told = [fact for fact in deploys if version in fact.terms.get("version", NOTHING)]
    own = told or (_of(deploys, Kind.DEPLOY, clause) if clause.subjects else [])
    if not own or (not clause.versions and len(own) > 1):
        return
    one = own[0]
    if clause.is_denied or Word.NONE in does:
        if not clause.loose and not clause.times:
            yield one.number, _deployed(one)
        return
    is_one = len(clause.versions) == 1 and len(set(clause.subjects)) == 1
    if told and is_one and not _of(told, Kind.DEPLOY, clause):
        of = min(one.subjects, default="another product")
        yield one.number, f"{_any(one.terms, 'version', 'v')} is of {of}"
    if len(own) > 1:
        return
    if wrong := _wrong_people(clause, one, deploys):
        yield one.number, f"deployed by {_any(one.terms, 'actor')}, not by {min(wrong)}"
    if Word.REPLACED in does and len(clause.versions) == 2 and not has_versions(one, clause):
        new, old = _any(one.terms, "version", "v"), _any(one.terms, "previous", "v")
        yield one.number, f"{new} replaced {old}"
    at = [(name, slot) for name, slot in clause.times if slot != "since"]
    is_plain = not (clause.ways or clause.roles)
    if is_plain and any(not is_at(one, name, slot, ("at", "until")) for name, slot in at):
        yield one.number, _deployed(one)


def _rollback(clause: Clause, facts: Sequence[Fact]) -> Iterator[Refuted]:
    own = _of(facts, Kind.ROLLBACK, clause)
    is_open = _is_open(clause, Word.SOFT, Word.NONE)
    if Word.REVERTED not in clause.does or len(own) != 1 or is_open:
        return
    if not _DECIDED.isdisjoint(clause.loose):
        return  # who confirmed it, and when, is no matter of deploys
    one = own[0]
    at = [name for name, slot in clause.times if slot != "since"]
    if wrong := _wrong_people(clause, one, _of(facts, Kind.DEPLOY)):
        yield one.number, f"rolled back by {_any(one.terms, 'actor')}, not by {min(wrong)}"
    elif not has_versions(one, clause):
        gone, back = _any(one.terms, "version", "v"), _any(one.terms, "previous", "v")
        yield one.number, f"{gone} was rolled back to {back}"
    elif at and not any(_is_near(one.times.get("at", ()), name.key) for name in at):
        yield one.number, f"rolled back at {clock(one.times['at'][0])}"


def _wrong_people(clause: Clause, one: Fact, deploys: Sequence[Fact]) -> frozenset[str]:
    """People of other deploys that the clause names for this one."""
    people = frozenset[str]().union(*(fact.terms.get("actor", NOTHING) for fact in deploys))
    return people.intersection(clause.loose) - one.terms.get("actor", NOTHING)


def _deployed(fact: Fact) -> str:
    at = "".join(f" at {clock(each)}" for each in fact.times.get("at", ()))
    return f"{_any(fact.terms, 'version', 'v')} deployed{at}"


def _any(terms: Mapping[str, frozenset[str]], key: str, before: str = "") -> str:
    found = min(terms.get(key, NOTHING), default="")
    named = f"{before if found[:1].isdigit() else ''}{found}"
    return re.sub(r"[`*_~<>|\[\]]", "", named)[:60] or "another"


def _onset(clause: Clause, facts: Sequence[Fact]) -> Iterator[Refuted]:
    since = [name for name, slot in clause.times if name.kind == "onset" or slot == "since"]
    is_other = not clause.does.isdisjoint((Word.SOFT, Word.DEPLOYED, Word.RECOVERED))
    if not since or not clause.ways or is_other:
        return
    own = [f for f in _of(facts, Kind.SIGNAL, clause) if f.times.get("since")]
    own = [f for f in own if all(bears(way, denied, f) for way, denied in clause.ways)]
    if own and not any(_is_near(f.times["since"], name.key) for f in own for name in since):
        yield own[0].number, f"since {clock(own[0].times['since'][0])}"


def _is_near(times: Sequence[datetime], minute: str) -> bool:
    said = int(minute[:2]) * 60 + int(minute[3:])
    apart = [abs(at.hour * 60 + at.minute - said) for at in times]
    return any(min(each, 1440 - each) <= 3 for each in apart)


def _recovery(clause: Clause, facts: Sequence[Fact]) -> Iterator[Refuted]:
    if Word.RECOVERED not in clause.does or _is_open(clause, Word.SOFT, Word.NONE):
        return
    own = [f for f in _of(facts, Kind.SIGNAL, clause) if f.way in ("up", "down")]
    own = [f for f in own if clause.roles or f.role in FELT]
    over = [f for f in own if "recovered" in states(f)]
    still = [f for f in own if f not in over and f.figures.get("last")]
    if still and not over:
        yield still[0].number, f"{still[0].role} is still {still[0].way}"
    elif over and len(over) == len(own):
        one = over[0]
        if any(not is_at(one, name, slot, ("until",)) for name, slot in clause.times):
            until = one.times.get("until")
            yield one.number, f"usual since {clock(until[0])}" if until else "another time"


def _scope(words: str, clause: Clause, facts: Sequence[Fact]) -> Iterator[Refuted]:
    if clause.is_denied:
        return
    does, signals = clause.does, _of(facts, Kind.SIGNAL)
    errors = [
        f for f in signals if f.role == "errors" and is_about(clause, f) and f.figures.get("now")
    ]
    shares = [one.value for f in errors for one in f.figures["now"] if one.family == "ratio"]
    fails = Word.FAILS in does or "errors" in clause.roles
    if shares and fails and _REQUESTS.search(words) and not clause.figures:
        most = max(shares)
        if Word.ALL in does and most < 0.98:
            yield errors[0].number, f"{_percent(most)} fail"
        if Word.NONE in does and all(f.way == "up" for f in errors):
            yield errors[0].number, f"{_percent(most)} fail"
    felt = [f for f in signals if f.role in (clause.roles or FELT)]
    if Word.ONLY in does and clause.subjects and clause.ways:
        moved = [f for f in felt if f.way in ("up", "down")]
        others = [f for f in moved if f.subjects.isdisjoint(clause.subjects) and _is_far(f)]
        if others and any(is_about(clause, f) for f in moved):
            yield others[0].number, f"{_about(others[0])} is {others[0].way} too"
    if Word.ALL in does and clause.ways and not clause.subjects and _SERVICES.search(words):
        well = [f for f in felt if f.way == "flat"]
        if well and all(way in ("up", "down", "odd") for way, _ in clause.ways):
            yield well[0].number, f"{_about(well[0])} is as usual"


def _is_far(fact: Fact) -> bool:
    return any(one.value >= 3 for one in fact.figures.get("z", ()))


def _state(clause: Clause, facts: Sequence[Fact]) -> Iterator[Refuted]:
    said = frozenset(clause.states)
    if not said or clause.figures or _is_open(clause, Word.SOFT, Word.NONE, Word.ALL):
        return  # `0 of 2 pods are ready` counts them
    own = [f for f in _of(facts, Kind.OBJECT) if clause.subjects and set(clause.subjects) <= f.subjects
           and "event" not in f.terms.get("noun", NOTHING)]  # fmt: skip
    for wrong, right in ((_WELL, _ILL), (_ILL, _WELL)):
        opposite = all(states(f) & right and not states(f) & said for f in own)
        if own and said & wrong and opposite:
            yield own[0].number, min(states(own[0]) & right)


def _way(clause: Clause, facts: Sequence[Fact]) -> Iterator[Refuted]:
    is_open = _is_open(clause, Word.SOFT, Word.ONLY, Word.NONE)
    counts = bool(clause.nouns or clause.states) and not clause.roles
    if not clause.subjects or clause.inherits or is_open or counts:
        return
    for single in distributed(clause):
        own = [f for f in _of(facts, Kind.SIGNAL, single) if f.way]
        felt = [f for f in own if single.roles or f.role in FELT]
        for way, denied in clause.ways:
            borne = own if way == "odd" else felt
            if felt and not any(bears(way, denied, f) for f in borne):
                went = "as usual" if felt[0].way == "flat" else felt[0].way
                yield felt[0].number, f"{_about(felt[0])} is {went}"


def _saturation(clause: Clause, facts: Sequence[Fact]) -> Iterator[Refuted]:
    is_soft = Word.SATURATED not in clause.does or Word.SOFT in clause.does
    if is_soft or not (clause.roles or clause.subjects):
        return
    own = [f for f in _of(facts, Kind.SIGNAL, clause) if usage(f) and f.role not in FELT]
    if not own:
        return
    used = [usage(f) for f in own]
    if min(used) >= 0.97 if clause.is_denied else max(used) < _FREE:
        yield own[0].number, f"{_percent(max(used))} in use"


def _something_wrong(clauses: Sequence[Clause], facts: Sequence[Fact]) -> Iterator[Refuted]:
    named = {subject for clause in clauses for subject in clause.subjects}
    for fact in _of(facts, Kind.SIGNAL):
        is_theirs = not named or not fact.subjects.isdisjoint(named)
        moved = fact.way == "up" and fact.role in FELT and _is_far(fact)
        if is_theirs and moved and "recovered" not in states(fact):
            yield fact.number, f"{_about(fact)} is up"


def _excluded_causes(
    words: str, clauses: Sequence[Clause], facts: Sequence[Fact]
) -> Iterator[Refuted]:
    named = {subject for clause in clauses for subject in clause.subjects}
    if _CRASH.search(words):
        yield from _all_run(facts)
    if _FULL.search(words):
        yield from _room(named, clauses, facts)
    if _SURGE.search(words):
        traffic = [f for f in facts if f.role == "traffic"]
        calm = [f for f in traffic if f.way in ("flat", "down")]
        calm = [f for f in calm if not named or f.subjects & named]
        if calm and not any(f.way == "up" for f in traffic):
            went = "as usual" if calm[0].way == "flat" else "down"
            yield calm[0].number, f"{_about(calm[0])} is {went}"
    for clause in clauses:
        if Word.DEPLOYED in clause.does or clause.versions:
            yield from _late_deploy(clause, facts)


def _all_run(facts: Sequence[Fact]) -> Iterator[Refuted]:
    counts = [f for f in _of(facts, Kind.COUNT) if "total" in f.figures]
    pods = [f for f in counts if f.terms.get("noun", NOTHING) & {"pod", "node"}]
    ill = any(states(f) & _ILL for f in _of(facts, Kind.OBJECT))
    restarts = any(one.raw for f in facts for one in f.figures.get("restarts", ()))
    run = all(f.figures["count"] == f.figures["total"] for f in pods)
    if pods and run and not ill and not restarts:
        yield pods[0].number, "all pods run"


def _room(
    named: Collection[str], clauses: Sequence[Clause], facts: Sequence[Fact]
) -> Iterator[Refuted]:
    roles = {role for clause in clauses for role in clause.roles} - FELT
    own = [f for f in _of(facts, Kind.SIGNAL) if f.role in (roles or _USED)]
    if named:
        parts = tuple(f"{name}-" for name in named)
        own = [f for f in own if any(s in named or s.startswith(parts) for s in f.subjects)]
    if own and all((usage(f) and usage(f) < _FREE) or f.way == "flat" for f in own):
        free = max(own, key=usage)
        told = f"{_percent(usage(free))} in use" if usage(free) else f"{free.role} is as usual"
        yield free.number, told


def _late_deploy(clause: Clause, facts: Sequence[Fact]) -> Iterator[Refuted]:
    deploys = _of(facts, Kind.DEPLOY)
    named = _of(deploys, Kind.DEPLOY, clause)
    own = [f for f in named if has_versions(f, clause)]
    if deploys and clause.subjects and not named and deploys[0].is_whole:
        yield deploys[0].number, f"no such deploy of {clause.subjects[0]}"
    felt = [f for f in _of(facts, Kind.SIGNAL) if f.role in FELT and f.way == "up"]
    onsets = [at for f in felt for at in f.times.get("since", ())]
    ats = [at for f in own for at in f.times.get("at", ())]
    if onsets and ats and (min(ats) - max(onsets)).total_seconds() > 60:
        late, began = clock(min(ats)), clock(min(onsets))
        yield own[0].number, f"deployed at {late}, after it began at {began}"
