"""What a row has to say for a clause of each kind: of a deploy, a state, a way, a figure, a line."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeAlias

from bot.chat.claims.clauses import Clause
from bot.chat.claims.clocks import clock, near
from bot.chat.claims.facts import Fact, Kind
from bot.chat.claims.lexicon import Word
from bot.chat.claims.names import Name, folded
from bot.chat.claims.quantities import Figure, KnownNumber, Numbers
from bot.chat.claims.sentences import agrees

NOTHING: Final = frozenset[str]()
FELT: Final = frozenset({"latency", "errors"})  # by users
USAGE: Final = frozenset({"pool", "cpu", "memory", "disk", "queue"})
_RUNS: Final = frozenset({"running", "completed"})  # what a deployed version does
_SATURATED: Final = 0.85
_LATE_S: Final = 30  # an onset in the second half of a minute is also of the next one
Fits: TypeAlias = Callable[[Fact, Clause], bool]
_Needs: TypeAlias = Callable[[Clause], bool]


def frame(clause: Clause) -> tuple[frozenset[Kind], Fits]:
    """The kinds of rows that can entail it, and what they have to say: the first that it needs."""
    return next((kinds, fits) for needs, kinds, fits in _FRAMES if needs(clause))


def _does(*words: Word) -> _Needs:
    wanted = frozenset(words)
    return lambda clause: not clause.does.isdisjoint(wanted)


def _is_of_deploy(clause: Clause) -> bool:
    return _does(Word.DEPLOYED, Word.REPLACED)(clause) or bool(clause.versions)


def _is_of_state(clause: Clause) -> bool:
    is_said = bool(clause.states or {"restarts"}.intersection(clause.nouns))
    return is_said and not clause.quotes


def _is_warning(clause: Clause) -> bool:
    return not {"warning"}.isdisjoint((*clause.states, *clause.nouns)) and not clause.quotes


def _tells_of_lines(clause: Clause) -> bool:
    is_of_errors = "errors" in clause.roles and "line" in clause.nouns
    return is_of_errors and _does(
        Word.NEW, Word.GONE, Word.SEEN, Word.NEWEST, Word.OLDEST, Word.SAYS
    )(clause)


def _is_of_lines(clause: Clause) -> bool:
    return _does(Word.SAYS, Word.MENTIONS)(clause) or bool(clause.quotes)


def _is_of_ways(clause: Clause) -> bool:
    return bool(clause.ways) or _does(Word.SATURATED, Word.BEGAN)(clause)


def _counts_lines(clause: Clause) -> bool:
    return "line" in clause.nouns and any(slot == "count" for _, slot in clause.figures)


def _is_of_spans(clause: Clause) -> bool:
    return _does(Word.SPENDS, Word.TOOK)(clause) or "trace" in clause.nouns


def _is_of_values(clause: Clause) -> bool:
    return bool(clause.roles) or Word.FAILS in clause.does


def _is_unavailable(fact: Fact, clause: Clause) -> bool:
    is_so = fact.kind is Kind.CALL or "unmeasured" in states(fact)
    return is_so and not clause.times and _values(fact, clause, ())


def _is_deploy(fact: Fact, clause: Clause) -> bool:
    if fact.kind is Kind.COUNT:
        is_bare = not (clause.versions or clause.times)
        return is_bare and "deploy" in fact.terms.get("noun", NOTHING) and _counts(fact, clause)
    if clause.ways or clause.roles or any(slot == "count" for _, slot in clause.figures):
        return False
    if not _RUNS.issuperset(clause.states):
        return False
    if Word.FAILS in clause.does and "failed" not in states(fact):
        return False
    return has_versions(fact, clause) and _values(fact, clause, ("at",))


def _is_rollback(fact: Fact, clause: Clause) -> bool:
    if clause.ways or clause.roles or clause.figures:
        return False
    if fact.kind is Kind.DEPLOY and (clause.times or clause.loose or len(clause.versions) > 1):
        return False
    return (
        "reverted" in states(fact) and has_versions(fact, clause) and _values(fact, clause, ("at",))
    )


def has_versions(fact: Fact, clause: Clause) -> bool:
    """Whether the versions of a clause are those of a deploy, the new one and the one before."""
    back = "now" if fact.kind is Kind.ROLLBACK else "usual"
    return all(
        version in fact.terms.get("previous" if slot == back else "version", NOTHING)
        for version, slot in clause.versions
    )


def _has_recovered(fact: Fact, clause: Clause) -> bool:
    if clause.is_denied:
        is_moved = fact.way in ("up", "down") and bool(fact.figures.get("last"))
        return is_moved and "recovered" not in states(fact) and not (clause.times or clause.figures)
    return "recovered" in states(fact) and _values(fact, clause, ("until",))


def _went(fact: Fact, clause: Clause) -> bool:
    if Word.SATURATED in clause.does and not (fact.role in USAGE and usage(fact) >= _SATURATED):
        return False
    if Word.BEGAN in clause.does and not clause.ways and fact.way not in ("up", "down"):
        return False
    if not fact.role or (
        not clause.roles and fact.role not in FELT and not clause.does & {Word.SATURATED}
    ):
        return False
    if "recovered" in states(fact) and Word.PRESENT in clause.does:
        return False
    return all(bears(way, denied, fact) for way, denied in clause.ways) and _values(
        fact, clause, ("since",)
    )


def bears(way: str, denied: bool, fact: Fact) -> bool:
    return bool(fact.way) and agrees(way, denied, fact.way)


def usage(fact: Fact) -> float:
    """The highest share in use of a fact; 0 without one."""
    return max(
        (one.value for one in fact.figures.get("now", ()) if one.family == "ratio"), default=0.0
    )


def _is_in_state(fact: Fact, clause: Clause) -> bool:
    nouns = fact.terms.get("noun", NOTHING)
    said = [noun for noun in clause.nouns if noun != "restarts"]
    if said and nouns and nouns.isdisjoint(said):
        return False
    restarts = fact.figures.get("restarts", ())
    is_without = fact.kind is Kind.COUNT or "restarts" in fact.figures
    if "restarts" in clause.nouns and is_without and not any(one.raw for one in restarts):
        return False
    counts = any(slot == "count" for _, slot in clause.figures) or Word.ALL in clause.does
    if fact.kind is Kind.COUNT and not counts:
        return False
    return states(fact).issuperset(clause.states) and _values(fact, clause, ("at",))


def _logs(fact: Fact, clause: Clause) -> bool:
    if fact.kind is Kind.COUNT:
        is_plain = not (clause.quotes or clause.loose or "errors" in clause.roles)
        return is_plain and "total" not in fact.figures and _counts(fact, clause)
    if fact.kind is Kind.OBJECT:
        return bool(clause.quotes) and _values(fact, clause, ("at",))
    level = fact.terms.get("level", NOTHING)
    if "errors" in clause.roles and level != {"error"}:
        return False
    if "warning" in clause.nouns and level != {"warn"}:
        return False
    if Word.NEW in clause.does and states(fact).isdisjoint(("new", "more")):
        return False
    if Word.GONE in clause.does and "gone" not in states(fact):
        return False
    if not all(bears(way, denied, fact) for way, denied in clause.ways):
        return False
    for word, slot in ((Word.NEWEST, "newest"), (Word.OLDEST, "oldest")):
        if word in clause.does and clause.times:
            return _values(fact, clause, (slot,))
    return _values(fact, clause, ("since", "at"))


def _warns(fact: Fact, clause: Clause) -> bool:
    if fact.kind is not Kind.LOG:
        return _is_in_state(fact, clause)
    return fact.terms.get("level", NOTHING) == {"warn"} and _logs(fact, clause)


def _spends(fact: Fact, clause: Clause) -> bool:
    if "mosttime" in clause.nouns:
        return "mosttime" in fact.terms.get("noun", NOTHING) and not clause.figures
    nouns = fact.terms.get("noun", NOTHING)
    if "trace" in clause.nouns and not clause.subjects and Word.SPENDS not in clause.does:
        return "trace" in nouns and bool(clause.figures) and _values(fact, clause, ("at",))
    return _values(fact, clause, ("at",)) and bool(clause.figures)


def _measures(fact: Fact, clause: Clause) -> bool:
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
    is_named = bool(clause.nouns) or all(slot == "age" for _, slot in clause.figures)
    return is_named and nouns.issuperset(clause.nouns) and _values(fact, clause, ())


def states(fact: Fact) -> frozenset[str]:
    return fact.terms.get("state", NOTHING)


def _values(fact: Fact, clause: Clause, when: Sequence[str]) -> bool:
    is_now = Word.PRESENT in clause.does and "recovered" in states(fact)
    return (
        all(_holds(fact, figure, slot, is_now=is_now) for figure, slot in clause.figures)
        and all(is_at(fact, name, slot, when) for name, slot in clause.times)
        and all(_quotes(fact, quote) for quote in clause.quotes)
    )


# Other slots that may hold a figure; `now` without a unit is mostly a count.
_ALSO: Final[Mapping[str, tuple[str, ...]]] = {"took": ("now",), "restarts": ("count",)}


def _holds(fact: Fact, figure: Figure, slot: str, *, is_now: bool) -> bool:
    own = fact.figures
    known = list(own.get("last" if slot == "now" and is_now and "last" in own else slot, ()))
    if slot == "change":
        changes = [one.value - 1 for one in own.get("factor", ())]
        return Numbers([KnownNumber(each, each, "ratio") for each in changes]).hold(figure)
    for other in _ALSO.get(slot, ()):
        known += own.get(other, ())
    if slot == "now":
        known += [] if known else own.get("took", ())
        known += [] if figure.family else (*own.get("count", ()), *own.get("total", ()))
        known += own.get("share", ()) if figure.family == "ratio" else ()
    if slot == "factor" and figure.text.endswith("times"):
        known += (*own.get("restarts", ()), *own.get("count", ()))
    return Numbers(known).hold(figure)


def is_at(fact: Fact, name: Name, slot: str, when: Sequence[str]) -> bool:
    if slot == "until":
        when = ("until",)
    minutes = frozenset(clock(at) for one in when for at in fact.times.get(one, ()))
    late = frozenset(clock(at) for at in fact.times.get("since", ()) if at.second >= _LATE_S)
    return near(name.key, minutes, name.margin_min) or (slot == "since" and near(name.key, late, 1))


def _quotes(fact: Fact, quote: str) -> bool:
    parts = [folded(part) for part in quote.replace("…", "...").split("...")]
    return bool(fact.text) and all(part in fact.text for part in parts if part)


_FRAMES: Final[Sequence[tuple[_Needs, frozenset[Kind], Fits]]] = (
    (_does(Word.UNAVAILABLE), frozenset({Kind.CALL, Kind.SIGNAL}), _is_unavailable),
    (_does(Word.REVERTED), frozenset({Kind.ROLLBACK, Kind.DEPLOY}), _is_rollback),
    (_is_of_deploy, frozenset({Kind.DEPLOY, Kind.COUNT}), _is_deploy),
    (_does(Word.RECOVERED), frozenset({Kind.SIGNAL}), _has_recovered),
    (_is_warning, frozenset({Kind.OBJECT, Kind.COUNT, Kind.LOG}), _warns),
    (_is_of_state, frozenset({Kind.OBJECT, Kind.COUNT}), _is_in_state),
    (_is_of_lines, frozenset({Kind.LOG, Kind.OBJECT, Kind.COUNT}), _logs),
    (_tells_of_lines, frozenset({Kind.LOG, Kind.COUNT}), _logs),
    (_is_of_ways, frozenset({Kind.SIGNAL, Kind.SPAN, Kind.LOG}), _went),
    (_counts_lines, frozenset({Kind.LOG, Kind.COUNT}), _logs),
    (
        _is_of_spans,
        frozenset({Kind.SPAN, Kind.SIGNAL, Kind.LOG, Kind.DEPLOY, Kind.OBJECT}),
        _spends,
    ),
    (_is_of_values, frozenset({Kind.SIGNAL, Kind.CALL}), _measures),
    (lambda _: True, frozenset({Kind.COUNT, Kind.OBJECT, Kind.SIGNAL}), _counts),
)
