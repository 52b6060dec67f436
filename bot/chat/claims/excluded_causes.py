"""Causes that the results exclude: pods that all run, a pool with room, a deploy that came later."""

import re
from collections.abc import Collection, Iterator, Sequence
from typing import Final

from bot.chat.claims.clauses import Clause
from bot.chat.claims.clocks import clock
from bot.chat.claims.entailment import is_about
from bot.chat.claims.facts import Fact, Kind
from bot.chat.claims.lexicon import Word
from bot.chat.claims.predicates import FELT, NOTHING, has_versions, usage

Refuted = tuple[int, str]  # the number of the result, and what it says
FREE: Final = 0.7  # the share in use under which nothing is full
ILL: Final = frozenset({"crashing", "failing", "pending", "evicted", "oomkilled", "failed"})
_CRASH = re.compile(r"\bcrash\w*|\boom\w*|\bout of memory\b|\bkilled\b", re.IGNORECASE)
_FULL = re.compile(
    r"\bsaturat\w+|\bexhaust\w+|\bran out\b|\boverload\w+|\bfull\b|\bstarv\w+|\bmaxed\b",
    re.IGNORECASE,
)
_SURGE = re.compile(
    r"\b(?:traffic|load|requests?)\b[^.;,]{0,20}\b(?:spike|surge|peak|jump|increase|burst)|\b(?:spike|surge|peak|burst|flood|jump|rise|increase) (?:of|in) (?:the )?(?:traffic|load|requests)",
    re.IGNORECASE,
)  # fmt: skip


def excluded_causes(
    words: str, clauses: Sequence[Clause], facts: Sequence[Fact]
) -> Iterator[Refuted]:
    """A cause that the results exclude: pods that all run, a pool with room, a deploy that came later."""
    named = {subject for clause in clauses for subject in clause.subjects}
    if _CRASH.search(words):
        pods = [
            f
            for f in facts
            if f.kind is Kind.COUNT
            and f.terms.get("noun", NOTHING) & {"pod", "node"}
            and "total" in f.figures
        ]
        ill = [f for f in facts if f.kind is Kind.OBJECT and f.terms.get("state", NOTHING) & ILL]
        restarts = any(one.raw for f in facts for one in f.figures.get("restarts", ()))
        if (
            pods
            and not ill
            and not restarts
            and all(f.figures["count"] == f.figures["total"] for f in pods)
        ):
            yield pods[0].number, "all pods run"
    if _FULL.search(words):
        yield from _room(named, clauses, facts)
    if _SURGE.search(words):
        flat = [
            f
            for f in facts
            if f.role == "traffic"
            and f.way in ("flat", "down")
            and (not named or f.subjects & named)
        ]
        up = [f for f in facts if f.role == "traffic" and f.way == "up"]
        if flat and not up:
            yield (
                flat[0].number,
                f"traffic of {min(flat[0].subjects, default='it')} is {'as usual' if flat[0].way == 'flat' else 'down'}",
            )
    for clause in clauses:
        if Word.DEPLOYED in clause.does or clause.versions:
            yield from _late_deploy(clause, facts)


def _room(
    named: Collection[str], clauses: Sequence[Clause], facts: Sequence[Fact]
) -> Iterator[Refuted]:
    roles = {role for clause in clauses for role in clause.roles} - FELT
    own = [
        f
        for f in facts
        if f.kind is Kind.SIGNAL
        and (f.role in roles if roles else f.role in ("pool", "cpu", "memory", "disk"))
    ]
    own = [
        f
        for f in own
        if not named or any(s == n or s.startswith(f"{n}-") for s in f.subjects for n in named)
    ]
    if own and all((usage(f) and usage(f) < FREE) or f.way == "flat" for f in own):
        free = max(own, key=usage)
        yield (
            free.number,
            f"{percent(usage(free))} in use" if usage(free) else f"{free.role} is as usual",
        )


def _late_deploy(clause: Clause, facts: Sequence[Fact]) -> Iterator[Refuted]:
    deploys = [f for f in facts if f.kind is Kind.DEPLOY]
    own = [f for f in deploys if is_about(clause, f) and has_versions(f, clause)]
    named = [f for f in deploys if is_about(clause, f)]
    if deploys and clause.subjects and not named and deploys[0].is_whole:
        yield deploys[0].number, f"no such deploy of {clause.subjects[0]}"
    onsets = [
        at
        for f in facts
        if f.kind is Kind.SIGNAL and f.role in FELT and f.way == "up"
        for at in f.times.get("since", ())
    ]
    ats = [at for f in own for at in f.times.get("at", ())]
    if onsets and ats and (min(ats) - max(onsets)).total_seconds() > 60:
        yield (
            own[0].number,
            f"deployed at {clock(min(ats))}, after it began at {clock(min(onsets))}",
        )


def percent(value: float) -> str:
    """`8.2 %` of .082."""
    return f"{value * 100:.3g} %"
