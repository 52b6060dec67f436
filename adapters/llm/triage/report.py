"""The conclusion in words. Every figure is copied from a tool result and cites it."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import islice

from adapters.llm.called import called
from adapters.llm.triage.about import (
    asked_as_well,
    assumed_of_all,
    everybody,
    of_whom,
    unknown_name,
)
from adapters.llm.triage.attached import file_lines
from adapters.llm.triage.beyond import (
    beyond_lines,
    can_ask,
    help_lines,
    not_understood,
    on_call_lines,
    recap_lines,
)
from adapters.llm.triage.brief import brief
from adapters.llm.triage.case import Case, Signals, instant, plain
from adapters.llm.triage.deploy_facts import DEPLOYS
from adapters.llm.triage.details import MOST_LINES, quiet, shown_points
from adapters.llm.triage.done import done_lines
from adapters.llm.triage.evidence import (
    LOGS,
    METRICS,
    PROPOSE,
    REPORT,
    SWEEPS,
    LogFact,
    Moved,
    swept,
)
from adapters.llm.triage.hypothesis import answer_to
from adapters.llm.triage.intents import Intent
from adapters.llm.triage.is_it_over import cause_line, plain_answer
from adapters.llm.triage.judgement import DOUBTFUL_FIGURES, Judgement, unexplained
from adapters.llm.triage.listed import (
    deploy_lines,
    history_lines,
    log_lines,
    marks,
    pod_lines,
    runbook_lines,
)
from adapters.llm.triage.next_step import next_step
from adapters.llm.triage.not_rolled_back import asked_again, no_rollback, propose_anyway
from adapters.llm.triage.onset import onset
from adapters.llm.triage.order import order_lines
from adapters.llm.triage.period import framed, period
from adapters.llm.triage.point_in_time import first_of_all
from adapters.llm.triage.question import asks_yes_or_no
from adapters.llm.triage.readings import compared_times, reading_lines
from adapters.llm.triage.surroundings import around, quoted
from adapters.llm.triage.telling import (
    cause_text,
    clock,
    errors_line,
    named,
    record_line,
    suspect_line,
    told,
)

_MOST_STATED = 3
_MOST_POINTS = 4
_MOST_RECORDS = 2
_SPANS = {
    "last 30m": "the last half hour",
    "last 2h": "the last two hours",
    "last 6h": "the last six hours",
    "last 7d": "the last seven days",
}


def report(case: Case, judgement: Judgement, signals: Signals) -> str:
    """Markdown for people on call: a headline, at most five lines of evidence, what to do."""
    asked = case.asked
    first = Intent(asked.topic, asked.part, asked.wish)
    parts = [
        part
        for intent in (first, *asked.also)
        for part in _answer(_asking(case, intent), judgement, signals, intent)
    ]
    told = [part for part in (asked.apart, unknown_name(case), *parts, *file_lines(case)) if part]
    is_compared = asked.topic == "figure" and bool(compared_times(case))
    # Of a day that is compared with, only the same time was looked at.
    taken = [each for each in asked.assumed if not (is_compared and " UTC" in each)]
    assumed = [*taken, assumed_of_all(case, judgement), *_window_taken(case)]
    if assumed := [each for each in assumed if each]:
        told.append("Assumed: " + "; ".join(assumed) + ".")
    return "\n\n".join(told)


def _asking(case: Case, intent: Intent) -> Case:
    now, first = case.asked, (case.asked.topic, case.asked.part)
    when = intent.part == "onset" or ((intent.topic, intent.part) == first and now.asks_when)
    asked = replace(now, topic=intent.topic, part=intent.part, wish=intent.subject, asks_when=when)
    return replace(case, asked=asked)


def _answer(case: Case, judgement: Judgement, signals: Signals, intent: Intent) -> Iterator[str]:
    match intent.topic:
        case "greeting":
            yield f"Hello. {can_ask(case)}"
        case "thanks":
            yield f"You are welcome. {can_ask(case)}"
        case "unclear":
            yield "" if any(one.ok for one in case.files) else not_understood(case)
        case "cause" if intent.part in ("all", "onset"):
            yield from _investigated(case, judgement, signals)
        case "cause":
            yield from brief(case, judgement, signals)
        case "outside":
            return
        case topic:
            yield from _LISTS[topic](case)


_LISTS: Mapping[str, Callable[[Case], Iterator[str]]] = {
    "logs": log_lines,
    "deploys": deploy_lines,
    "done": done_lines,
    "figure": reading_lines,
    "pods": pod_lines,
    "history": history_lines,
    "runbook": runbook_lines,
    "order": order_lines,
    "on call": on_call_lines,
    "help": help_lines,
    "recap": recap_lines,
    "beyond": beyond_lines,
}


def _window_taken(case: Case) -> Iterator[str]:
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
            f"{looks[-1]}, as I did not understand the time; "
            "give a clock time, a day or how long ago"
        )


def _investigated(case: Case, judgement: Judgement, signals: Signals) -> Iterator[str]:
    yield plain_answer(case, judgement)
    yield answer_to(case, judgement)
    if refused := no_rollback(case, judgement):
        yield refused
        yield propose_anyway(case)
        if case.is_later and judgement.verdict == "cause":
            yield cause_line(case, judgement)
            return
    is_known = judgement.verdict == "cause" or bool(case.open_proposals)
    if case.is_later and case.asked.wants_undone and is_known:
        yield from asked_again(case, judgement, signals)
        return
    yield first_of_all(case, judgement)
    if case.asked.asks_when:
        began = list(onset(case, judgement))
        yield from began or ["I do not see when anything began."]
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
    for said in case.stated[-_MOST_STATED:]:
        who = called(said.author) or "a person here"
        yield f'- {who} said, and I take it as a fact: "{quoted(said.text)}".'
        out = [one for one, by in judgement.left_out if by == said]
        for one in out[:2]:
            yield (
                f"- So {plain(one.product)} is not a suspect, although its metrics point to it: "
                f"{told(one.ordered[0], case.now)}"
            )
        if not out:
            yield "- This rules out none of the suspects."


def _abnormal(case: Case, judgement: Judgement) -> Iterator[str]:
    top = judgement.suspects[0]
    itself = asked_as_well(case, judgement)
    lines = [cause_line(case, judgement), itself]
    yield from reversed(lines) if asks_yes_or_no(case.question) else lines
    points = shown_points(top, case.asked.symptom)
    lines = [of_whom(case, top.product, told(point, case.now)) for point in points]
    yield _listed([*lines, *_beside(case, judgement)])
    if caveats := [each for each in judgement.missing if each != judgement.own_blind]:
        more = f"; and {len(caveats) - 1} more under Evidence" if len(caveats) > 1 else ""
        yield f"Caveat: {caveats[0]}{more}."


def _listed(lines: Iterable[str]) -> str:
    return "\n".join(f"- {line}" for line in islice(dict.fromkeys(lines), MOST_LINES))


def _beside(case: Case, judgement: Judgement) -> Iterator[str]:
    top = judgement.suspects[0]
    if top.passed_to:
        yield f"it calls {plain(top.passed_to)}, which is abnormal too"
    yield from around(case)
    if others := judgement.suspects[1:2]:
        yield f"also suspected: {suspect_line(others[0], case.now)}"


def _healthy(case: Case, judgement: Judgement) -> Iterator[str]:
    whom = plain(case.subject)
    if not case.names_subject and len(case.products) > 1:
        whom = everybody(case, quantifier="any product")
    since = f" since {judgement.undone.words_to(case.asked.subject)}" if judgement.undone else ""
    mark = f" [{judgement.undone.back.seen.mark}]" if judgement.undone else ""
    when = period(case)
    if judgement.blamed is not None and case.is_later:
        yield f"**Before the rollback: {_lowered(cause_text(judgement.blamed, case.now))}**"
        yield f"**Nothing is wrong{since} as far as I can see.**{mark}"
        return
    yield f"**Nothing {'was' if when else 'is'} wrong with {whom}{since}{when}, as far as I can see.**{mark}"
    small = [one for one in judgement.others if one.weight >= DOUBTFUL_FIGURES][:2]
    yield _listed(
        (
            *(
                f"{suspect_line(one, case.now)}; its metrics did not change with it"
                for one in small
            ),
            *quiet(case, judgement),
            *around(case),
        )
    )
    now = "" if when else " If it is slow now, name the service and the time."
    yield (
        "I cannot rule out what these signals do not show, such as a problem of one customer or region"
        f"{', or what came later' if case.is_past else ''}{_older(case)}.{now}"
    )


def _lowered(text: str) -> str:
    return f"{text[0].lower()}{text[1:]}"


def _older(case: Case) -> str:
    """A state as old as the baseline counts as normal."""
    metrics = case.of(METRICS)
    told = (metrics.text("day_from") or metrics.text("baseline_from")) if metrics else ""
    begin = instant(told)
    return f", or a problem that began before {clock(begin, case.now)}" if begin else ""


def _only_errors(case: Case, judgement: Judgement) -> Iterator[str]:
    moved = any(isinstance(p.fact, Moved) for one in judgement.others for p in one.points)
    figures = "The metrics changed little" if moved else "No metric changed"
    yield f"**{framed(case, figures)}; {errors_line(judgement.errors[0], case.now)}**"
    yield _listed(
        (
            *(errors_line(fact, case.now) for fact in judgement.errors[1:4]),
            *_figures(case, judgement),
            *map(record_line, unexplained(case, judgement.facts)[:_MOST_RECORDS]),
            *quiet(case, judgement),
            *around(case),
        )
    )
    yield "I cannot rule out a problem, and I cannot name a cause. Next: read those lines."


def _figures(case: Case, judgement: Judgement) -> Iterator[str]:
    for one in judgement.others[:4]:
        first, *more = one.ordered[:_MOST_POINTS]
        if not (isinstance(first.fact, LogFact) and first.fact.is_more_errors):
            yield suspect_line(one, case.now)
        if one.product == case.asked.subject:
            moved = (point for point in more if isinstance(point.fact, Moved))
            yield from (named(one.product, told(point, case.now)) for point in moved)


def _unknown(case: Case, judgement: Judgement) -> Iterator[str]:
    if not any(case.of(tool) for tool in SWEEPS):
        yield f"**{_blindness(case)}, so I cannot say whether anything is wrong.**"
        failed = [seen for seen in case.seen if not seen.ok]
        yield f"Failed checks: {marks(failed)}." if failed else ""
    else:
        when = period(case)
        yield (
            f"**No data for {name} was found{when}, so I cannot say whether anything is wrong.**"
            if (name := _without_data(case, judgement))
            else f"**I found no clear failure{when}, but I cannot rule one out.**"
            if not judgement.others and not judgement.errors
            else f"**Something changed{when}, but not enough to name a cause.**"
        )
    yield _listed(
        (
            *(errors_line(fact, case.now) for fact in judgement.errors[:3]),
            *_figures(case, judgement),
            *map(record_line, unexplained(case, judgement.facts)[:_MOST_RECORDS]),
            *quiet(case, judgement),
            *around(case),
        )
    )
    if first := [plain(one.product) for one in judgement.suspects]:
        yield f"I would look first at {', then '.join(first)}."
    if missing := [each for each in judgement.missing if each != judgement.own_blind]:
        more = f"; and {len(missing) - 2} more under Evidence" if len(missing) > 2 else ""
        yield f"I could not check: {'; '.join(missing[:2])}{more}."


def _blindness(case: Case) -> str:
    """Without any sweep: nothing was read, or the results show no state."""
    if not any(seen.ok for seen in case.seen if seen.tool not in (PROPOSE, REPORT)):
        return "I could not check anything"
    return f"I found no data that shows how {plain(case.subject) or 'any product'} is doing"


def _without_data(case: Case, judgement: Judgement) -> str:
    """The product asked about, if nothing of it was found."""
    metrics, logs = case.of(METRICS), swept(case, LOGS)
    if judgement.others or judgement.errors or metrics is None:
        return ""
    lines = logs.mapping("lines") if logs else {}
    is_unknown = case.subject in metrics.texts("without") and case.subject not in lines
    return plain(case.asked.left_out or (case.subject if is_unknown else ""))
