"""The next checks, given the results so far. An empty plan means: conclude."""

import re
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import Final

import orjson
from pydantic import JsonValue

from adapters.llm.decided import Decided
from adapters.llm.messages import ToolCall
from adapters.llm.triage import listed, order, readings
from adapters.llm.triage.case import OWN_CALL, Case, Signals, plain
from adapters.llm.triage.coverage import errors_against_hour
from adapters.llm.triage.deploy_facts import DEPLOYS, DeployFact
from adapters.llm.triage.details import details
from adapters.llm.triage.evidence import (
    CLUSTER,
    LOGS,
    METRICS,
    PROPOSE,
    REPORT,
    SWEEPS,
    TRACES,
    swept,
)
from adapters.llm.triage.intents import Topic
from adapters.llm.triage.judgement import Judgement, is_blamed
from adapters.llm.triage.linked import is_linked
from adapters.llm.triage.surroundings import (
    ERRORS,
    HISTORY,
    PATTERNS,
    Wish,
    errors_of,
    wishes,
)
from adapters.llm.triage.telling import TOLD_LATE, clock
from adapters.llm.triage.undone import SWEPT_AGAIN, can_tell, undone
from adapters.llm.triage.weigh import BLAMED, Suspicion
from adapters.llm.triage.when import BEFORE_CLAIMED
from tools.core.sweep_arguments import LONGEST_WINDOW

MOST_ROUNDS: Final = 6  # of looking; the findings and a proposal follow, and the loop allows eight
WINDOWS: Final = ("last 30m", "last 2h", "last 6h")  # wider while the onset is earlier
_EARLIER: Final = (
    timedelta(0),
    timedelta(minutes=90),
    timedelta(minutes=330),
)  # the same for the other products
# Topics for which the context of a cause is read as well.
_WHOLE_LOOK: Final = frozenset({"all", "next"})
DEPLOY_WINDOW: Final = "last 6h"
DEPLOYS_WINDOW: Final = "last 7d"  # of a question about deploys alone
_BEFORE_DEPLOYS: Final = timedelta(hours=6)

_LEAD_OR_TIME: Final = re.compile(
    r".*[Mm]ost likely cause: (?:the )?|\b(?:since|at) (?:before )?[\d :-]+UTC|[()]"
)

_Stage = Callable[[Case, Judgement, Signals], Iterator[Wish]]


def next_calls(case: Case, judgement: Judgement, signals: Signals) -> Sequence[ToolCall]:
    """The next round's calls; those already made, and tools that are not there, are left out."""
    for stage in _stages(case):
        wishes = [
            w for w in stage(case, judgement, signals) if w[0] in case.tools and not _done(case, w)
        ]
        if wishes:
            offset = len(case.seen)
            return [
                ToolCall(f"{OWN_CALL}{offset + i}", tool, orjson.dumps(dict(arguments)).decode())
                for i, (tool, arguments) in enumerate(wishes)
            ]
    return ()


def _stages(case: Case) -> Sequence[_Stage]:
    if case.rounds >= MOST_ROUNDS:
        return (_closing,) if case.asked.topic == "cause" else ()
    topics = dict.fromkeys((case.asked.topic, *(one.topic for one in case.asked.also)))
    return [stage for topic in topics for stage in _stages_of(case, topic)]


def _stages_of(case: Case, topic: Topic) -> Sequence[_Stage]:
    match topic:
        case "cause" if case.asked.part not in _WHOLE_LOOK:
            return (_sweep, _since_undone, _wider, _from_onset, _against_day, _closing)
        case "cause":
            return (
                _sweep,
                _since_undone,
                _wider,
                _from_onset,
                _against_day,
                _surroundings,
                _closing,
            )
        case "logs":
            return (_logs,)
        case "deploys":
            return (_deploys,)
        case "figure":
            return (_figures,)
        case "pods":
            return (_pods,)
        case "history":
            return (_history,)
        case "runbook":
            return (_runbook,)
        case "order":
            return (_order,)
        case _:
            return ()  # no check needed, or the answer is beside the question


def _done(case: Case, wish: Wish) -> bool:
    tool, arguments = wish
    if tool == PROPOSE:
        return case.called(tool)
    if (
        tool == REPORT
    ):  # the latest report counts: an earlier one may be from a model that was not believed
        return any(seen.tool == REPORT and seen.is_own for seen in case.seen)
    return case.called(tool, arguments)


def window_text(case: Case, number: int = 0) -> str:
    """The window under test: the one asked about, else the usual one; or a wider one."""
    start, end = case.asked.start, case.asked.end
    if start is None or end is None:
        return WINDOWS[number]
    wider = max(start - _EARLIER[number], end - LONGEST_WINDOW)
    return f"{_instant(wider)}/{_instant(end)}"


def _instant(at: datetime) -> str:
    return at.strftime("%Y-%m-%dT%H:%M:%SZ")


def _sweep(case: Case, judgement: Judgement, signals: Signals) -> Iterator[Wish]:
    del judgement, signals
    window: dict[str, JsonValue] = {"time_range": window_text(case)}
    if case.asked.subject and plain(case.subject) == case.subject:
        window["product"] = case.subject
    for tool in SWEEPS:
        yield tool, {**window, "others": True} if tool == LOGS and "product" in window else window
    yield DEPLOYS, {"product": "*", "time_range": _deploy_window(case)}
    if case.subject and plain(case.subject) == case.subject:
        yield ERRORS, errors_of(case.subject, window_text(case))


def _deploy_window(case: Case) -> str:
    start, end = case.asked.start, case.asked.end
    if start is None or end is None:
        return DEPLOY_WINDOW
    return f"{_instant(start - _BEFORE_DEPLOYS)}/{_instant(end)}"


def _since_undone(case: Case, judgement: Judgement, signals: Signals) -> Iterator[Wish]:
    """What would be blamed was rolled back: look at the time since."""
    del signals
    over = undone(case)
    if over is None or case.asked.is_exact or not can_tell(case, over):
        return
    if is_blamed(judgement, over):
        for tool in SWEPT_AGAIN:
            if case.called(tool):
                yield tool, {"time_range": over.window}


def _wider(case: Case, judgement: Judgement, signals: Signals) -> Iterator[Wish]:
    """The trouble was under way when the window began: look for where it began."""
    del signals
    top = None if judgement.undone else next(iter(judgement.suspects), None)
    number = sum(1 for seen in case.seen if seen.tool == METRICS)
    if case.asked.is_exact or top is None or not top.was_under_way or number >= len(WINDOWS):
        return
    for tool in (METRICS, LOGS, TRACES):
        if case.called(tool):
            yield tool, {"time_range": window_text(case, number)}


def _from_onset(case: Case, judgement: Judgement, signals: Signals) -> Iterator[Wish]:
    """No traces are older than the window: those before the onset serve as the baseline."""
    del signals
    traces = case.of(TRACES)
    if traces is None or traces.number("traces_before") or not traces.number("traces_after"):
        return
    top = next(iter(judgement.suspects), None)
    onset = top.since if top else None
    if case.asked.start is not None:
        onset = case.asked.start + BEFORE_CLAIMED
    end = case.asked.end or case.now
    if onset is not None and end is not None and onset < end:
        yield TRACES, {**traces.arguments, "time_range": f"{_instant(onset)}/{_instant(end)}"}


def _against_day(case: Case, judgement: Judgement, signals: Signals) -> Iterator[Wish]:
    """No cause was found: whether errors are usual is measured by more than the hour before."""
    del signals
    logs = swept(case, LOGS)
    if logs is not None and judgement.verdict != "cause" and errors_against_hour(logs):
        yield LOGS, {**logs.arguments, "against_day": True}


def _surroundings(case: Case, judgement: Judgement, signals: Signals) -> Iterator[Wish]:
    del signals
    if judgement.verdict == "unknown" and not judgement.suspects and not case.all_of(CLUSTER):
        return
    yield from wishes(case, next(iter(judgement.suspects), None), window_text(case))


def _closing(case: Case, judgement: Judgement, signals: Signals) -> Iterator[Wish]:
    yield REPORT, findings(judgement, details(case, judgement))
    if not open_proposal(case, judgement, signals) and not decided_before(case, judgement, signals):
        yield from _proposal(case, judgement, signals)


def open_proposal(case: Case, judgement: Judgement, signals: Signals) -> tuple[str, str] | None:
    """The id of the proposal that is open for what would be proposed, and where, if elsewhere."""
    top = next(iter(judgement.suspects), None)
    wanted = (signals.rollback_action, top.product if top else "")
    found = ((one, where) for one, *of, where in case.open_proposals if tuple(of) == wanted)
    return next(found, None)


def decided_before(case: Case, judgement: Judgement, signals: Signals) -> Decided | None:
    """What people decided of the same, unless it failed or something was deployed since."""
    top = next(iter(judgement.suspects), None)
    wanted = (signals.rollback_action, top.product if top else "")
    last = next((d for d in reversed(case.decided) if (d.action, d.product) == wanted), None)
    if top is None or last is None or not last.stands:
        return None
    return None if top.deploy is not None and top.deploy.at > last.at else last


def findings(judgement: Judgement, also_found: Sequence[str] = ()) -> dict[str, JsonValue]:
    """The arguments of the closing statement. `also_found` is what the answer has no room for."""
    return {
        "verdict": judgement.verdict,
        "suspects": [
            {
                "product": one.product,
                "kind": one.kind[:64],
                "since": _instant(one.since) if one.since else "",
                **({"until": _instant(one.over_since)} if one.over_since else {}),
                "score": round(one.weight, 1),
                "evidence": list(dict.fromkeys(mark_of(point.fact) for point in one.ordered[:5])),
            }
            for one in judgement.suspects[:5]
        ],
        "looked_at": list[JsonValue](judgement.looked_at[:20]),
        "missing": list[JsonValue](text[:300] for text in judgement.missing[:20]),
        "also_found": list[JsonValue](text[:300] for text in also_found[:20]),
    }


def mark_of(fact: object) -> str:
    """The evidence number that a fact is cited by."""
    seen = getattr(fact, "seen", None)
    return str(seen.mark if seen is not None else getattr(fact, "mark", ""))


def _proposal(case: Case, judgement: Judgement, signals: Signals) -> Iterator[Wish]:
    top = next(iter(judgement.suspects), None)
    if (
        top is None
        or not _may_propose(case)
        or not worth_rolling_back(judgement)
        or not is_asked_for(case, judgement)
    ):
        return
    deploy = top.deploy
    assert deploy is not None  # noqa: S101 - said by worth_rolling_back
    params: dict[str, JsonValue] = {"version": deploy.previous} if deploy.previous else {}
    yield (
        PROPOSE,
        {
            "action": signals.rollback_action,
            "product": top.product,
            "params": params,
            "rationale": (
                f"{left_open(deploy)}{_in_order(top, deploy, case.now)} No model was used."
            ),
            "blast_radius": "one service",
            "reversible": True,
        },
    )


def _in_order(top: Suspicion, deploy: DeployFact, now: datetime | None) -> str:
    when = "before" if top.began_before else "at"
    began = f"{when} {clock(top.since, now)}" if top.since else "right after"
    left = f"{top.product} left its baseline {began}"
    at = clock(deploy.at, now)
    if top.is_deploy_late:
        return (
            f"{left}. {deploy.version} is on record as deployed at {at}, after that: {TOLD_LATE}."
        )
    return f"{left}, after {deploy.version} was deployed at {at}."


def _may_propose(case: Case) -> bool:
    """Only where the cause, or what to do, is asked for now: a past time does not show how it is."""
    return not case.is_past and not case.asked.asks_when and case.asked.part in _WHOLE_LOOK


def is_asked_for(case: Case, judgement: Judgement) -> bool:
    """Whether a proposal for the first suspect would match the question."""
    if case.asked.wants_undone and case.names_subject:
        return judgement.suspects[0].product == case.subject
    return is_linked(case, judgement)


def left_open(deploy: DeployFact) -> str:
    """That it is not known here which version a rollback goes back to; empty where it is."""
    if deploy.previous:
        return ""
    return f"It goes back to the version before {deploy.version}. Your deploy system picks that version. "


def worth_rolling_back(judgement: Judgement) -> bool:
    """Whether there is a deploy that still runs, and a mechanism of the product's own that goes on."""
    top = judgement.suspects[0]
    if top.deploy is None or top.firm < BLAMED or top.over_since is not None:
        return False
    return not any(
        one.product == top.product and one.at > top.deploy.at for one in judgement.facts.deploys
    )


def _logs(case: Case, judgement: Judgement, signals: Signals) -> Iterator[Wish]:
    del judgement, signals
    yield from listed.log_wishes(case, window_text(case))


def _figures(case: Case, judgement: Judgement, signals: Signals) -> Iterator[Wish]:
    del judgement, signals
    yield from readings.wishes(case, window_text(case))


def _pods(case: Case, judgement: Judgement, signals: Signals) -> Iterator[Wish]:
    del judgement, signals
    yield CLUSTER, {"time_range": window_text(case)}


def _history(case: Case, judgement: Judgement, signals: Signals) -> Iterator[Wish]:
    del judgement, signals
    about = _about_cause(case) or f"{case.subject} {case.asked.symptom}".strip()
    yield HISTORY, {"query": about, "limit": 3}


def _runbook(case: Case, judgement: Judgement, signals: Signals) -> Iterator[Wish]:
    del judgement, signals
    symptom = {"latency": "slow", "errors": "fails"}.get(case.asked.symptom, "what to do")
    about = _about_cause(case) or f"{case.subject} {symptom}".strip()
    yield PATTERNS, {"intent": about, "limit": 3}


def _about_cause(case: Case) -> str:
    """The cause named in this thread, without its time; empty where the message names a product."""
    is_named = case.subject.lower() in case.question.lower()
    return "" if is_named else _LEAD_OR_TIME.sub("", case.answered).strip(". ")


def _order(case: Case, judgement: Judgement, signals: Signals) -> Iterator[Wish]:
    del judgement, signals
    yield from order.wishes(case)


def _deploys(case: Case, judgement: Judgement, signals: Signals) -> Iterator[Wish]:
    del judgement, signals
    start, end = case.asked.start, case.asked.end
    window = f"{_instant(start)}/{_instant(end)}" if start and end else DEPLOYS_WINDOW
    yield DEPLOYS, {"product": case.asked.subject or "*", "time_range": window}
