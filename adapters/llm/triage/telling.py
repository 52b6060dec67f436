"""Facts in words. Every figure is copied from a tool result, and the result is cited."""

from datetime import datetime
from typing import Final

from adapters.llm.triage.case import plain
from adapters.llm.triage.evidence import (
    DeployFact,
    IllFact,
    LogFact,
    Moved,
    SpanFact,
    StandingFact,
)
from adapters.llm.triage.surroundings import quoted
from adapters.llm.triage.weigh import Point, Suspicion, is_full
from tools.log_templates import without_clock

_UNITS: Final = {
    "seconds": " s",
    "milliseconds": " ms",
    "percent": " %",
    "per second": "/s",
    "bytes": " bytes",
    "millicores": " millicores",
    "cores": " cores",
}


def told(point: Point) -> str:
    """One piece of evidence as a line, with its mark."""
    fact = point.fact
    match fact:
        case Moved():
            text = _moved(fact)
        case StandingFact():
            text = _standing(fact)
        case LogFact():
            text = _log(point, fact)
        case SpanFact():
            text = _span(fact)
        case IllFact():
            text = _ill(fact)
        case DeployFact():
            previous = f", replacing {fact.previous}" if fact.previous else ""
            text = f"{fact.version} went out at {fact.at:%H:%M} UTC{previous}"
            return f"{text} [{fact.seen.mark}]"
    return f"{text} [{fact.mark}]"


def _line(text: str) -> str:
    return quoted(without_clock(text))


def errors_told(fact: LogFact) -> str:
    """`11 new error lines of cart since 01:32 UTC: "..."`, with its mark."""
    product, words = plain(fact.product), "new" if fact.change == "new" else "more"
    number = f"{fact.after} {words} {fact.level} line{'' if fact.after == 1 else 's'}"
    usual = f", usually {figure(fact.expected)}" if fact.change == "grown" else ""
    since = ""
    if fact.since is not None:
        since = f" since {'before ' if fact.since_before else ''}{clock(fact.since)}"
    return f'{number} of {product}{usual}{since}: "{_line(fact.example)}" [{fact.mark}]'


def headline(top: Suspicion) -> str:
    """Who, what and since when, as sure as the evidence is."""
    product, when = plain(top.product), since_text(top)
    deploy = top.deploy
    if deploy is not None:
        version = deploy.version
        return f"Most likely cause: the deploy of {product} {version} at {deploy.at:%H:%M} UTC."
    first = top.ordered[0].fact
    if isinstance(first, IllFact):
        what = first.mechanism or first.state
        return f"Most likely cause: {product}, {plain_words(what)} ({plain_words(first.state)})."
    full = next(
        (p.fact for p in top.ordered if isinstance(p.fact, Moved) and is_full(p.fact)), None
    )
    at_limit = next((p.fact for p in top.ordered if not p.is_weak), first)
    if isinstance(at_limit, StandingFact):
        role = "CPU" if at_limit.role == "cpu" else at_limit.role
        how = "runs out" if at_limit.runs_out_s is not None else "is at its limit"
        return f"Most likely cause: {product}, its {role} {how}."
    if full is not None:
        role = "CPU" if full.role == "cpu" else full.role
        return f"Most likely cause: {product} is saturated{when} ({role})."
    return f"The trouble seems to begin in {product}{when} ({top.kind}); why is not established."


def since_text(one: Suspicion) -> str:
    """` since 14:46 UTC`, or that it began before what was looked at."""
    if one.since is None:
        return ""
    return f" since {'before ' if one.began_before else ''}{clock(one.since)}"


def clock(at: datetime) -> str:
    """A time of the day."""
    return f"{at:%H:%M} UTC"


def figure(value: float) -> str:
    """As the tool told it, rounded to three digits."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def plain_words(text: str) -> str:
    """A text from outside as plain words."""
    return quoted(text)


def _moved(fact: Moved) -> str:
    unit = _UNITS.get(fact.unit.lower(), "")
    role = "CPU" if fact.role == "cpu" else fact.role
    way = "down" if fact.falls else "up"
    since = ""
    if fact.since is not None:
        since = f" since {'before ' if fact.since_before else ''}{clock(fact.since)}"
    return (
        f"{role} {way} to {figure(fact.worst)}{unit}{since}, usually {figure(fact.usual)}{unit} "
        f"({fact.signal.replace('_', ' ')})"
    )


def _standing(fact: StandingFact) -> str:
    unit = _UNITS.get(fact.unit.lower(), "")
    role = "CPU" if fact.role == "cpu" else fact.role
    text = f"{role} is {figure(fact.now)}{unit}"
    if fact.limit is not None:
        text += f", beyond {figure(fact.limit)}{unit}"
    if fact.size:
        text += f", {figure(fact.first)}{unit} when the recording began"
    if fact.runs_out_s is not None:
        text += f"; at this rate nothing is left in {max(1, round(fact.runs_out_s / 60))} min"
    return f"{text} ({fact.signal.replace('_', ' ')})"


def _log(point: Point, fact: LogFact) -> str:
    product, example = plain(fact.product), _line(fact.example)
    if fact.change == "gone":
        return f'{product} no longer writes lines like "{example}", {fact.before} before'
    words = "new" if fact.change == "new" else "more frequent"
    level = f" {fact.level}" if fact.level else ""
    names = f"; they mention {plain(fact.names[0])}" if fact.names else ""
    kind = "" if point.kind != "named by errors" else f"the log of {product} names it: "
    return f'{kind}{fact.after} {words}{level} lines of {product}, such as "{example}"{names}'


def _span(fact: SpanFact) -> str:
    before, after, operation = figure(fact.before), figure(fact.after), quoted(fact.operation)
    match fact.what:
        case "own":
            return f"{plain(fact.product)} itself spends {after} ms in {operation}, usually {before} ms"
        case "way":
            ends = f"{plain(fact.product)} to {plain(fact.callee)}"
            return f"the way from {ends} takes {after} ms, usually {before} ms"
        case _:
            return (
                f"the share of failed {operation} of {plain(fact.product)} is {after}, was {before}"
            )


def _ill(fact: IllFact) -> str:
    what = f"{fact.kind.lower()} {plain(fact.name)}"
    detail = f": {quoted(fact.detail)}" if fact.detail else ""
    state = quoted(fact.state)
    return f"{'Kubernetes warns of ' if fact.warned else ''}{what}, {state}{detail}"
