"""What a case comes to: a verdict, suspects, and how much was looked at. Never surer than that."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Final, Literal

from pydantic import JsonValue

from adapters.llm.stated import Stated
from adapters.llm.triage.case import Case, Seen, plain
from adapters.llm.triage.evidence import (
    CLUSTER,
    LOGS,
    METRICS,
    SWEEPS,
    TRACES,
    Facts,
    LogFact,
    Moved,
    facts_of,
    swept,
)
from adapters.llm.triage.ranking import suspicions
from adapters.llm.triage.surroundings import ERRORS, new_errors, quoted
from adapters.llm.triage.too_young import too_young
from adapters.llm.triage.undone import Undone, before, looked_since, settled, undone
from adapters.llm.triage.unmeasured import ended_roles, samples_missing
from adapters.llm.triage.weigh import BLAMED, SUSPECTED, Suspicion, is_figure
from adapters.llm.triage.worth_a_look import worth_a_look

Verdict = Literal["cause", "symptoms", "healthy", "unknown"]

MOST_SUSPECTS: Final = 5
_MOST_LACKING: Final = 3
_MOST_BARE: Final = 3  # products that nothing is known of, by name
_MOST_OWN: Final = 3  # products whose figures are named where none is asked about
WORTH_NAMING: Final = 1.0  # points from which one is listed after a cause
FIRM: Final = 10.0  # points of it that are not weak
DOUBTFUL: Final = 10.0  # points from which "nothing is wrong" is not said
DOUBTFUL_FIGURES: Final = 3.0  # of a latency or a share of failures, or of what fills up
_FAMILIES: Final = {METRICS: "metrics", LOGS: "logs", TRACES: "traces", ERRORS: "errors"}
_WORDS: Final = {METRICS: "metrics", LOGS: "logs", TRACES: "traces", CLUSTER: "Kubernetes"}
_NEEDED: Final = frozenset({"latency", "errors", "traffic"})


@dataclass(frozen=True, slots=True)
class Judgement:
    """`suspects` are those named, best first; `others` what was found and is too little.

    `errors` are those of the subject's path that come more often than before. `own_blind` is the one of
    `missing` that says why no figure of the product asked about could be compared.
    """

    verdict: Verdict
    suspects: Sequence[Suspicion]
    others: Sequence[Suspicion]
    errors: Sequence[LogFact]
    looked_at: Sequence[str]
    missing: Sequence[str]
    facts: Facts
    left_out: Sequence[
        tuple[Suspicion, Stated]
    ] = ()  # whom people ruled out, who else was suspected
    own_blind: str = ""
    undone: Undone | None = None  # what was rolled back, where that is what counts
    blamed: Suspicion | None = None  # before that rollback, where all is calm since


def judged(case: Case) -> Judgement:
    """Judge all that was seen; where a deploy was rolled back, by what came since, if that is calm."""
    over = undone(case)
    if over is None:
        return _judged(case, facts_of(case))
    earlier = before(case, over)
    found = _judged(earlier, facts_of(earlier))
    if looked_since(case, over):
        since = _judged(case, settled(facts_of(case), over))
        if since.verdict != "cause":
            return replace(since, undone=over, blamed=next(iter(found.suspects), None))
    return replace(found, undone=over) if is_blamed(found, over) else found


def is_blamed(found: Judgement, over: Undone) -> bool:
    """Whether what was rolled back is, or may be, what was found."""
    if not found.suspects:
        return False
    deploy = found.suspects[0].deploy
    if deploy is not None:
        return (deploy.product, deploy.version) == (over.gone.product, over.gone.version)
    return any(one.product == over.gone.product for one in found.suspects)


def _judged(case: Case, facts: Facts) -> Judgement:
    everybody = suspicions(
        facts,
        case.subject,
        case.asked.symptom,
        is_of_one=case.names_subject or len(case.products) < 2,
    )
    left_out = list(_left_out(case, everybody))
    out = [one for one, _ in left_out]
    found = [one for one in everybody if one not in out]
    named = [one for one in found if one.weight >= SUSPECTED]
    missing = [*_missing(case), *_blind(case)]
    errors = more_errors(facts, case.asked.subject)
    if (
        named
        and named[0].weight >= BLAMED
        and named[0].firm >= FIRM
        and not _is_over_alone(named[0], found[0])
    ):
        verdict: Verdict = "cause"
    elif missing or left_out or not _seen_anything(case):
        verdict = "unknown"
    elif errors:
        verdict = "symptoms"
    elif any(_is_doubtful(one, case.subject) for one in found) or _has_new_errors(case):
        verdict = "unknown"
    else:
        verdict = "healthy"
    faint: Sequence[Suspicion] = ()
    if verdict not in {"cause", "healthy"}:
        faint = worth_a_look(found, case.asked.subject, is_steady=_is_steady(case, facts))
    if faint:
        verdict = "symptoms"
    is_cause = verdict == "cause"
    return Judgement(
        verdict=verdict,
        suspects=[one for one in found if one.weight >= WORTH_NAMING][:MOST_SUSPECTS]
        if is_cause
        else faint,
        others=() if is_cause else [one for one in found if one.points][:MOST_SUSPECTS],
        errors=errors,
        looked_at=list(_looked_at(case)),
        missing=missing,
        facts=facts,
        left_out=left_out,
        own_blind=_own_blind(case, found if is_cause else faint),
    )


def _is_over_alone(named: Suspicion, first: Suspicion) -> bool:
    """Whether who could be blamed is over, and comes after somebody whose trouble goes on."""
    return named.over_since is not None and first.over_since is None


def _own_blind(case: Case, suspects: Sequence[Suspicion]) -> str:
    """Empty where it is suspected itself, by whatever else is known of it."""
    metrics, subject = case.of(METRICS), case.asked.subject
    if metrics is None or not subject or (suspects and suspects[0].product == subject):
        return ""
    if lacking := next(samples_missing(metrics, [subject], case.now, goes_on=True), ""):
        return lacking
    if _within(metrics, subject) | _moved(metrics, subject):
        return ""
    return next(_blind_metrics(case, metrics, subject), "")


def _is_steady(case: Case, facts: Facts) -> bool:
    """Whether latency or failures of the named product were compared, and nothing of it moved."""
    metrics, subject = case.of(METRICS), case.asked.subject
    if metrics is None or _within(metrics, subject).isdisjoint({"latency", "errors"}):
        return False
    return not any(one.product == subject for one in facts.moved)


def _left_out(case: Case, found: Sequence[Suspicion]) -> Iterator[tuple[Suspicion, Stated]]:
    """Suspects that somebody in the thread has ruled out; a word of people outranks a figure."""
    for one in found:
        said = next((s for s in case.stated if s.rules_out(one.product, one.kind)), None)
        if said is not None and one.weight >= SUSPECTED:
            yield one, said


def more_errors(facts: Facts, subject: str) -> Sequence[LogFact]:
    """Errors that speak against "nothing is wrong": of the subject, of whom it may reach, or naming it.

    Only who certainly is not on its path is left out, and nobody when nobody is named (empty). How
    few they are, and how calm the figures, makes no difference: some errors are told by no figure.
    """
    reach = facts.graph.reach(subject)
    found = [
        fact
        for fact in facts.logs
        if fact.is_more_errors
        and (
            fact.product in reach
            or not subject
            or subject in fact.names
            or not (facts.graph.knows(subject) and facts.graph.knows(fact.product))
        )
    ]
    return sorted(found, key=lambda fact: (fact.product != subject, -fact.more))


def _has_new_errors(case: Case) -> bool:
    """Whether the tracker tells of an error of the subject that was never seen before."""
    return any(
        new_errors(seen)
        for seen in case.all_of(ERRORS)
        if seen.arguments.get("product") == case.subject
    )


def _is_doubtful(one: Suspicion, subject: str) -> bool:
    """Of whoever is asked about any move counts; of others not what is as usual as what was before."""
    figures = [
        p
        for p in one.points
        if is_figure(p)
        and isinstance(p.fact, Moved)
        and (one.product == subject or p.fact.is_unusual)
    ]
    return one.weight >= DOUBTFUL or any(p.points >= DOUBTFUL_FIGURES for p in figures)


def _looked_at(case: Case) -> Iterator[str]:
    for tool in SWEEPS:
        seen = swept(case, tool)
        if seen is None:
            continue
        words = _WORDS[tool]
        if tool == METRICS:
            within = seen.mapping("within")
            whom = (case.subject,) if case.names_subject else case.products[:_MOST_OWN]
            still = {one: " ".join(sorted(_within(seen, one) - _moved(seen, one))) for one in whom}
            own = "; ".join(f"{plain(one)}: {roles}" for one, roles in still.items() if roles)
            if case.names_subject and within and case.subject not in within:
                own = f"none of {plain(case.subject)}"
            yield f"metrics of {len(within)} products{f' ({own})' if own else ''}"
        elif tool == LOGS:
            yield f"logs of {len(seen.mapping('lines'))} products"
        else:
            yield words
    tracked = case.of(ERRORS)
    if tracked is not None and tracked.texts("projects"):
        yield f"errors of {', '.join(map(plain, tracked.texts('projects')[:3]))}"


def _missing(case: Case) -> Iterator[str]:
    """Sources that exist and could not be read; without any source of figures, that too."""
    for tool in SWEEPS:
        failed = any(seen.tool == tool and not seen.ok for seen in case.seen)
        if failed and swept(case, tool) is None:
            yield f"{_WORDS[tool]}: could not be read; see {_settings(case, tool)}"
        elif tool == METRICS and tool not in case.tools and not _is_told_by_cluster(case):
            yield "metrics: none are configured; set [observe.metrics]"

    if case.of(ERRORS) is None and any(seen.tool == ERRORS for seen in case.seen):
        yield f"errors: could not be read; see {_settings(case, ERRORS)}"


def _settings(case: Case, tool: str) -> str:
    """The table of the backend that was asked, which the channel may have chosen by name."""
    if tool == CLUSTER:
        return "[kubernetes]"
    family = _FAMILIES[tool]
    return f"[{dict(case.tables).get(family, f'observe.{family}')}]"


def _is_told_by_cluster(case: Case) -> bool:
    """Whether only the cluster was asked about, and it and the product's log tell of no trouble."""
    cluster, logs = case.of(CLUSTER), swept(case, LOGS)
    if not case.asked.of_cluster or cluster is None or logs is None:
        return False
    return (
        case.subject in cluster.mapping("pods")
        and _some_now(logs.mapping("lines").get(case.subject) or "")
        and not cluster.rows("ill")
        and all(row.get("over") is True for row in cluster.rows("warnings"))
    )


def _blind(case: Case) -> Iterator[str]:
    """What of the subject, or of all when nobody is named, could not be compared."""
    metrics, subject = case.of(METRICS), case.subject
    if metrics is not None:
        whom = (subject,) if case.names_subject else case.products
        yield from islice(samples_missing(metrics, whom, case.now), _MOST_LACKING)
        yield from _blind_metrics(case, metrics, subject) if subject else _blind_to_all(metrics)
        if subject and case.asked.fails and not _shows_failures(case, metrics):
            yield f"whether requests of {plain(subject)} fail: neither failures nor logs are there"
        if not case.names_subject:
            yield from _blind_to_others(case.products[1:], metrics)
    cluster = case.of(CLUSTER)
    if cluster is not None:
        yield from (
            f"Kubernetes: {quoted(note)}" for note in cluster.texts("unread")[:_MOST_LACKING]
        )
    logs = swept(case, LOGS)
    if logs is not None and logs.result.get("truncated") is True:
        yield "logs: more kinds of lines changed than are told"
    if logs is not None and (partly := logs.texts("partly")):
        yield f"logs: too many errors to read them all of {', '.join(map(plain, partly[:5]))}"
    if logs is not None and errors_against_hour(logs):
        yield "logs: errors were compared with an hour, which is too short to know them all"
    traces = case.of(TRACES)
    if traces is not None:
        before, after = traces.number("traces_before") or 0, traces.number("traces_after") or 0
        if after and not before:
            yield "traces: none from before to compare with"


def _shows_failures(case: Case, metrics: Seen) -> bool:
    """Whether a failure of whoever is asked about would have been seen."""
    logs = swept(case, LOGS)
    lines = logs.mapping("lines").values() if logs else ()
    return "errors" in _within(metrics, case.subject) | _moved(metrics, case.subject) or any(
        map(_some_now, lines)
    )


def errors_against_hour(logs: Seen) -> bool:
    """Whether there are errors now that were not compared with a day."""
    some = any(map(_some_now, logs.mapping("errors").values()))
    return some and not logs.arguments.get("against_day")


def _some_now(pair: JsonValue) -> bool:
    """Whether "before/now" tells of any now."""
    return str(pair).rpartition("/")[2] not in {"", "0"}


def _within(metrics: Seen, product: str) -> frozenset[str]:
    """The roles of its figures that were compared and are as usual."""
    roles = metrics.mapping("within").get(product)
    return frozenset(roles.split() if isinstance(roles, str) else ())


def _moved(metrics: Seen, product: str) -> frozenset[str]:
    """The roles of its figures that are not as usual."""
    rows = (row for row in metrics.rows("shifts") if row.get("product") == product)
    return frozenset(str(row.get("role")) for row in rows)


def _blind_metrics(case: Case, metrics: Seen, subject: str) -> Iterator[str]:
    known, moved = _within(metrics, subject), _moved(metrics, subject)
    told = metrics.mapping("too_short").get(subject)
    short = frozenset(told.split() if isinstance(told, str) else ())
    if short:
        is_usual = case.asked.start is None
        words = too_young(metrics, subject, sorted(short), is_usual=is_usual)
        yield f"{plain(subject)}: {words}"
    ended = ended_roles(metrics, subject)
    if subject in metrics.texts("without") or not (known | moved | short | ended):
        none = "no data of its own was found of that time"
        none = none if case.is_past else "no metrics were found that are its own"
        yield f"{plain(subject)}: {none}"
    elif not (known | moved | short | ended) & _NEEDED:
        yield f"{plain(subject)}: neither latency nor errors nor traffic are measured"
    if metrics.result.get("truncated") is True:
        yield "metrics: more moved than is told"


def _blind_to_all(metrics: Seen) -> Iterator[str]:
    """Where nobody is asked about and the channel names no product: never an all-clear."""
    short, within = metrics.mapping("too_short"), metrics.mapping("within")
    if bare := [one for one in short if one not in within]:
        yield f"metrics: {_named_few(bare)}: {too_young(metrics, plain(bare[0]))}"
    elif not (within or metrics.rows("shifts")):
        yield "metrics: none of any product were found"
    yield "the channel names no products, so it cannot be told whether all of them were seen"


def _blind_to_others(others: Sequence[str], metrics: Seen) -> Iterator[str]:
    """Of whom besides the first, which is the subject, the sweep tells no figure."""
    moved = {row.get("product") for row in metrics.rows("shifts")}
    known = moved | metrics.mapping("within").keys()
    bare = [one for one in others if one not in known]
    short = [one for one in bare if one in metrics.mapping("too_short")]
    if young := _named_few(short):
        yield f"metrics: {young}: measured, but not long enough to compare"
    if none := _named_few([one for one in bare if one not in short]):
        yield f"metrics: none of {none} were found or could be compared"


def _named_few(products: Sequence[str]) -> str:
    more = f" and {len(products) - _MOST_BARE} more" if len(products) > _MOST_BARE else ""
    return ", ".join(map(plain, products[:_MOST_BARE])) + more


def _seen_anything(case: Case) -> bool:
    return any(case.of(tool) is not None for tool in SWEEPS)
