"""The conclusion in words. Every figure is copied from a tool result and cites it."""

import re
from collections.abc import Iterator, Sequence
from itertools import islice

from adapters.llm.called import called
from adapters.llm.triage.about import asked_as_well, assumed_of_all, everybody, of_whom
from adapters.llm.triage.attached import file_lines
from adapters.llm.triage.case import Case, Signals, instant, plain
from adapters.llm.triage.deploy_facts import DEPLOYS
from adapters.llm.triage.done import done_lines
from adapters.llm.triage.evidence import (
    CLUSTER,
    LOGS,
    METRICS,
    SWEEPS,
    IllFact,
    LogFact,
    Moved,
    swept,
)
from adapters.llm.triage.hypothesis import answer_to
from adapters.llm.triage.is_it_over import cause_line, plain_answer
from adapters.llm.triage.judgement import DOUBTFUL_FIGURES, Judgement
from adapters.llm.triage.listed import deploy_lines, last_deploy, log_lines, marks
from adapters.llm.triage.next_step import next_step
from adapters.llm.triage.not_rolled_back import no_rollback
from adapters.llm.triage.onset import onset
from adapters.llm.triage.period import framed, period
from adapters.llm.triage.plan import PROPOSE, REPORT
from adapters.llm.triage.point_in_time import first_of_all
from adapters.llm.triage.surroundings import around, quoted
from adapters.llm.triage.telling import (
    clock,
    errors_told,
    named,
    told,
    told_of,
)
from adapters.llm.triage.unmeasured import samples_missing
from adapters.llm.triage.weigh import SUSPECTED, Point, Suspicion

_MOST_LINES = 12
_MOST_STATED = 3
_MOST_POINTS = 4
_MOST_LACKING = 2
_MOST_AROUND = 3
_MOST_NAMED = 8
_SPANS = {
    "last 30m": "the last half hour",
    "last 2h": "the last two hours",
    "last 6h": "the last six hours",
    "last 7d": "the last seven days",
}
_CAN = "Ask me what is wrong, to show logs, or what was deployed; a time and a product help."


def report(case: Case, judgement: Judgement, signals: Signals) -> str:
    """Markdown for people on call: cause, evidence, what else was found, what to do."""
    match case.asked.topic:
        case "greeting":
            parts: Iterator[str] = iter([_greeting(case.question)])
        case "outside":
            parts = iter(())
        case "unclear":
            parts = iter([] if any(one.ok for one in case.files) else [_not_understood(case)])
        case "logs":
            parts = log_lines(case)
        case "deploys":
            parts = deploy_lines(case)
        case "done":
            parts = done_lines(case)
        case _:
            parts = _investigated(case, judgement, signals)
    told = [part for part in (case.asked.apart, *parts, *file_lines(case)) if part]
    assumed = [*case.asked.assumed, assumed_of_all(case, judgement), *_window_taken(case)]
    if assumed := [each for each in assumed if each]:
        told.append("Assumed: " + "; ".join(assumed) + ".")
    return "\n\n".join(told)


def _window_taken(case: Case) -> Iterator[str]:
    """What was looked at where a time is said that cannot be read."""
    if not case.asked.is_time_unread:
        return
    looks = [
        _SPANS[asked]
        for seen in case.seen
        if (asked := str(seen.arguments.get("time_range", ""))) in _SPANS
        and seen.is_own
        and (seen.tool != DEPLOYS or case.asked.topic == "deploys")
    ]
    if looks:
        yield (
            f"{looks[-1]}, since no time that I can read is said; "
            "name a time of the clock, a day or how long ago"
        )


def _greeting(text: str) -> str:
    thanks = any(word in text.lower() for word in ("thank", "thx", "ty", "cheers"))
    return f"You are welcome. {_CAN}" if thanks else f"Hello. {_CAN}"


def _not_understood(case: Case) -> str:
    known = ", ".join(plain(one) for one in case.products[:_MOST_NAMED])
    return (
        f'I did not understand "{quoted(case.question)}": no product, symptom or time in it that I '
        f"know, so nothing was looked at. The products here: {known}. Ask for example "
        f'"why is {plain(case.products[0])} slow?" or "what changed in the last hour?".'
    )


def _investigated(case: Case, judgement: Judgement, signals: Signals) -> Iterator[str]:
    yield plain_answer(case, judgement)
    yield answer_to(case, judgement)
    yield no_rollback(case, judgement)
    yield first_of_all(case, judgement)
    if case.asked.asks_when:
        began = list(onset(case, judgement))
        yield from began or ["I see no time at which anything began."]
        if began:
            return
    match judgement.verdict:
        case "cause":
            yield from _abnormal(case, judgement)
            yield next_step(case, judgement, signals)
        case "symptoms" if not judgement.suspects:
            yield from _only_errors(case, judgement)
        case "healthy":
            yield from _healthy(case, judgement)
        case "symptoms" | "unknown":
            yield from _unknown(case, judgement)
    yield "\n".join(_as_said(case, judgement))


def _as_said(case: Case, judgement: Judgement) -> Iterator[str]:
    """What people stated, as facts of theirs, and what each changed."""
    for said in case.stated[-_MOST_STATED:]:
        who = called(said.author) or "somebody here"
        yield f'- Taken as a fact, since {who} said it: "{quoted(said.text)}".'
        out = [one for one, by in judgement.left_out if by == said]
        for one in out[:2]:
            yield (
                f"- So {plain(one.product)} is left out of the suspects. "
                f"Its figures would name it: {told(one.ordered[0], case.now)}"
            )
        if not out:
            yield "- That changes nothing in what is suspected: nobody suspected is ruled out by it."


def _abnormal(case: Case, judgement: Judgement) -> Iterator[str]:
    top = judgement.suspects[0]
    yield cause_line(case, judgement)
    yield asked_as_well(case, judgement)
    points = _told_of(top, case.asked.symptom)
    lines = (of_whom(case, top.product, told(point, case.now)) for point in points)
    yield "\n".join(f"- {line}" for line in lines)
    if top.passed_to:
        yield f"It calls {plain(top.passed_to)}, which is abnormal too."
    if others := judgement.suspects[1:3]:
        yield "Also suspected: " + "; ".join(told_of(one, case.now) for one in others) + "."
    if ruled_out := list(_ruled_out(case, judgement)):
        yield "Looked at and not the cause: " + "; ".join(ruled_out[:3]) + "."
    if surroundings := list(around(case))[: _room_around(case, judgement)]:
        yield "\n".join(f"- {line}" for line in surroundings)
    if missing := [each for each in judgement.missing if each != judgement.own_blind]:
        yield "Not looked at: " + "; ".join(missing[:3]) + "."


def _told_of(top: Suspicion, symptom: str) -> Sequence[Point]:
    """The heaviest, behind what was asked about, which people look for, and what moved first."""
    asked = [p for p in top.ordered if isinstance(p.fact, Moved) and p.fact.role == symptom][:1]
    first = [p for p in top.ordered if p.fact is top.first and p not in asked]
    before = [*asked, *first]
    ordered = [*before, *(point for point in top.ordered if point not in before)]
    return [point for point in ordered if not _is_told(point, top)][:_MOST_POINTS]


def _is_told(point: Point, top: Suspicion) -> bool:
    """Whether a warning only says again why the same object is ill."""
    fact = point.fact
    return (
        isinstance(fact, IllFact)
        and fact.warned
        and any(
            isinstance(ill, IllFact)
            and not ill.warned
            and ill.name == fact.name
            and fact.detail in ill.detail
            for ill in (other.fact for other in top.ordered)
        )
    )


def _room_around(case: Case, judgement: Judgement) -> int:
    """How many lines of what stands around still fit, so that all is read at a glance."""
    top = judgement.suspects[0]
    parts = (
        top.passed_to,
        judgement.suspects[1:],
        list(_ruled_out(case, judgement)),
        judgement.missing,
        case.asked.assumed,
        case.asked.thought,
    )
    lines = 2 + min(len(top.ordered), _MOST_POINTS) + sum(map(bool, parts))
    return max(1, min(_MOST_AROUND, _MOST_LINES - lines - len(list(_as_said(case, judgement)))))


def _ruled_out(case: Case, judgement: Judgement) -> Iterator[str]:
    """Deploys of others whose product did not move."""
    blamed = {one.product for one in judgement.suspects if one.weight >= SUSPECTED}
    for fact in judgement.facts.deploys:
        if fact.product not in blamed:
            yield (
                f"the deploy of {fact.product} {fact.version} at {clock(fact.at, case.now)} "
                f"[{fact.seen.mark}], which hardly moved"
            )


def _healthy(case: Case, judgement: Judgement) -> Iterator[str]:
    whom = plain(case.subject)
    if not case.names_subject and len(case.products) > 1:
        whom = everybody(case)
    since = f" since {judgement.undone.words}" if judgement.undone else ""
    mark = f" [{judgement.undone.back.seen.mark}]" if judgement.undone else ""
    when = period(case)
    yield f"**Nothing {'was' if when else 'is'} wrong that I can see with {whom}{since}{when}.**{mark}"
    small = [one for one in judgement.others if one.weight >= DOUBTFUL_FIGURES][:2]
    lines = [
        *_quiet(case, judgement),
        *(f"{told_of(one, case.now)}; its figures did not move with it" for one in small),
        *around(case),
    ]
    yield "\n".join(f"- {line}" for line in lines)
    now = "" if when else " If you see slowness now, tell me where and since when."
    yield (
        "Not established: anything these signals do not show, such as one customer or one region"
        f"{', or what came since' if case.is_past else ''}{_older(case)}.{now}"
    )


def _older(case: Case) -> str:
    """What was so all the time that the figures were compared with passes for usual."""
    metrics = case.of(METRICS)
    begin = instant(metrics.text("baseline_from")) if metrics else None
    return f", or trouble that began before {clock(begin, case.now)}" if begin else ""


def _only_errors(case: Case, judgement: Judgement) -> Iterator[str]:
    """There are more errors than usual, and nothing that tells their cause."""
    moved = any(isinstance(p.fact, Moved) for one in judgement.others for p in one.points)
    figures = "A little moved" if moved else "No figure moved"
    yield f"**{framed(case, figures)}; {errors_told(judgement.errors[0], case.now)}**"
    lines = [
        *(errors_told(fact, case.now) for fact in judgement.errors[1:4]),
        *_figures(case, judgement),
        *_quiet(case, judgement),
        *around(case),
    ]
    yield "\n".join(f"- {line}" for line in lines)
    yield "So I cannot say that nothing is wrong, nor what the cause is. Next: read those lines."


def _figures(case: Case, judgement: Judgement) -> Iterator[str]:
    """The heaviest of each; of whoever is asked about all that moved."""
    for one in judgement.others[:4]:
        first, *more = one.ordered[:_MOST_POINTS]
        if not (isinstance(first.fact, LogFact) and first.fact.is_more_errors):
            yield told_of(one, case.now)
        if one.product == case.asked.subject:
            moved = (point for point in more if isinstance(point.fact, Moved))
            yield from (named(one.product, told(point, case.now)) for point in moved)


def _unknown(case: Case, judgement: Judgement) -> Iterator[str]:
    if not any(case.of(tool) for tool in SWEEPS):
        yield f"**{_blindness(case)}, so I cannot say whether anything is wrong.**"
        failed = [seen for seen in case.seen if not seen.ok]
        yield f"What I asked failed: {marks(failed)}." if failed else ""
    else:
        when = period(case)
        yield (
            f"**No data for {plain(case.subject)} was found{when}, so I cannot say whether anything "
            "is wrong.**"
            if _is_unknown_product(case, judgement)
            else f"**I found no failure that stands out{when}, but I cannot say that nothing "
            f"{'was' if when else 'is'} wrong.**"
            if not judgement.others and not judgement.errors
            else f"**Something moved{when}, but it is too little to name a cause.**"
        )
    lines = [
        *(errors_told(fact, case.now) for fact in judgement.errors[:4]),
        *_figures(case, judgement),
        *_quiet(case, judgement),
        *around(case),
    ]
    yield "\n".join(f"- {line}" for line in lines)
    if first := [plain(one.product) for one in judgement.suspects]:
        yield f"I would look first at {', then '.join(first)}."
    if missing := [each for each in judgement.missing if each != judgement.own_blind]:
        yield "I could not look at: " + "; ".join(missing[:5]) + "."


def _blindness(case: Case) -> str:
    """Without any sweep: that nothing was read, or that what was tells of no state."""
    if not any(seen.ok for seen in case.seen if seen.tool not in (PROPOSE, REPORT)):
        return "I could not look at anything"
    return f"I could read nothing that shows how {plain(case.subject) or 'anybody'} is"


def _is_unknown_product(case: Case, judgement: Judgement) -> bool:
    """Whether whoever is asked about has neither metrics nor log lines in that time."""
    metrics, logs = case.of(METRICS), swept(case, LOGS)
    if not case.subject or judgement.others or judgement.errors or metrics is None:
        return False
    lines = logs.mapping("lines") if logs else {}
    return case.subject in metrics.texts("without") and case.subject not in lines


def _quiet(case: Case, judgement: Judgement) -> Iterator[str]:
    """What was looked at and did not stand out."""
    seen = [swept(case, tool) for tool in SWEEPS]
    marks = [f"[{one.mark}]" for one in seen if one is not None]
    looked = [
        re.sub(r" of \d+ products", "", f"{text} {mark}")
        for text, mark in zip(judgement.looked_at, marks, strict=False)
        if " of 0 products" not in text  # nobody's bounds
    ]
    if looked:
        yield f"looked at {', '.join(looked)}: otherwise within normal bounds"
    yield from islice(_unmeasured_others(case), _MOST_LACKING)
    cluster = case.of(CLUSTER)
    if cluster is not None and not cluster.rows("ill"):
        yield f"pods and nodes are well, no failure there [{cluster.mark}]"
        for row in cluster.rows("warnings")[:2]:
            yield f"a warning that is over: {quoted(str(row.get('message', '')))} [{cluster.mark}]"
    logs = swept(case, LOGS)
    if logs is not None and not logs.rows("changes"):
        yield f"no new kind of log lines [{logs.mark}]"
    yield from last_deploy(case)


def _unmeasured_others(case: Case) -> Iterator[str]:
    """Of whom else nothing is known now; of whoever is asked about it is told apart."""
    metrics, others = case.of(METRICS), [one for one in case.products if one != case.subject]
    if metrics is not None and others and case.names_subject:
        yield from samples_missing(metrics, others, case.now, goes_on=True)
