"""Facts in words. Every figure is copied from a tool result, and the result is cited."""

import re
from datetime import datetime
from typing import Final

import orjson

from adapters.llm.triage.case import plain
from adapters.llm.triage.cluster_facts import IllFact
from adapters.llm.triage.cluster_findings import ill_text
from adapters.llm.triage.deploy_facts import DeployFact
from adapters.llm.triage.evidence import LogFact, Moved, SpanFact, StandingFact
from adapters.llm.triage.figures import SHARES, figure, in_words
from adapters.llm.triage.surroundings import in_code, quoted
from adapters.llm.triage.vanished import GoneFact, RecordFact
from adapters.llm.triage.weigh import Point, Suspicion, is_full
from tools.log_templates import without_clock

# As people write what these roles measure, the signal's own name says nothing more.
_MINUTES_TOLD: Final = 120  # from there on hours
_PLAIN_ROLES: Final = frozenset({"latency", "errors", "traffic", "cpu", "memory", "disk"})
_KINDS: Final = {"cpu": "CPU", "way to others": "calls are slow on the way"}
_QUANTILE: Final = re.compile(r"(?<![a-z0-9])(p\d{2,3})(?![a-z0-9])")
_SAID_IN: Final = ("msg", "message", "error")
_LINE_CHARS: Final = 120  # of a log line in a line of evidence: three lines on a phone


def told(point: Point, now: datetime | None = None) -> str:
    """One piece of evidence as a line, with its mark. A time of another day than `now` has its date."""
    fact = point.fact
    match fact:
        case Moved():
            text = _moved(fact, now) + (f", {fact.where}" if fact.where else "")
        case StandingFact():
            text = _standing(fact, now)
        case LogFact():
            text = _log(point, fact) + _last(fact, now)
        case SpanFact():
            text = _span(fact)
        case IllFact():
            text = ill_text(fact)
        case GoneFact():
            text = _gone(fact, now)
        case RecordFact():
            text = _record(fact)
        case DeployFact():
            previous = f", replacing {fact.previous}" if fact.previous else ""
            text = f"{fact.version} went out at {clock(fact.at, now)}{previous}"
            return f"{text} [{fact.seen.mark}]"
    return f"{text} [{fact.mark}]"


def suspect_line(one: Suspicion, now: datetime | None = None) -> str:
    return named(one.product, told(one.ordered[0], now))


def named(whose: str, text: str) -> str:
    """A line of evidence with the product that it is of; no name twice."""
    product = plain(whose)
    begin = text.partition('"')[0]
    is_named = re.search(rf"(?<![\w.-]){re.escape(product)}(?![\w-]|\.\w)", begin) is not None
    return text if is_named else f"{product}: {text}"


def _line(text: str) -> str:
    """What a line says; of one written as JSON only its message and its error."""
    try:
        row = orjson.loads(text)
    except orjson.JSONDecodeError:
        row = None
    if isinstance(row, dict):
        said = (row.get(key) for key in _SAID_IN)
        text = ": ".join(part for part in said if isinstance(part, str)) or text
    return in_code(without_clock(text), _LINE_CHARS)


def errors_line(fact: LogFact, now: datetime | None = None) -> str:
    """`11 new error lines of cart since 01:32 UTC: ...`, with its mark."""
    product, words = plain(fact.product), "new" if fact.change == "new" else "more"
    number = f"{fact.after} {words} {fact.level} line{'' if fact.after == 1 else 's'}"
    usual = f", usually {figure(fact.expected)}" if fact.change == "grown" else ""
    since = ""
    if fact.since is not None:
        since = f" since {'before ' if fact.since_before else ''}{clock(fact.since, now)}"
    return f"{number} of {product}{usual}{since}: {_line(fact.example)}{_last(fact, now)} [{fact.mark}]"


TOLD_LATE: Final = "deploys are often reported only when they end"


def headline(top: Suspicion, now: datetime | None = None) -> str:
    """Who, what and since when, as sure as the evidence is; that it is over before all."""
    return f"{over_text(top, now)} {cause_text(top, now)}".strip()


def over_text(one: Suspicion, now: datetime | None = None) -> str:
    """`What moved in checkout is usual again since 09:40 UTC.`; empty while any of it is not."""
    if one.over_since is None:
        return ""
    is_past = any(isinstance(p.fact, Moved) and p.fact.is_past for p in one.points)
    again = "was back to normal from" if is_past else "is back to normal since"
    return f"What changed in {plain(one.product)} {again} {clock(one.over_since, now)}."


def cause_text(top: Suspicion, now: datetime | None = None) -> str:
    """The same without that it is over."""
    product, when = plain(top.product), since_text(top, now)
    is_over = top.over_since is not None
    deploy = top.deploy
    if deploy is not None:
        told = f"the deploy of {product} {deploy.version} at {clock(deploy.at, now)}"
        if top.is_deploy_late:
            return f"Perhaps the cause: {told}. The trouble began before that{when}; {TOLD_LATE}."
        return f"Most likely cause: {told}."
    first = top.ordered[0].fact
    if isinstance(first, GoneFact):
        return f"Most likely cause: {product} is down{when}."
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
        verb = "was" if is_over else "is"
        return (
            f"Most likely cause: {product} {verb} saturated{when} ({_in_order(top, role, full)})."
        )
    kind = _KINDS.get(top.kind, top.kind)
    begin = "to have begun" if is_over else "to begin"
    what = _in_order(top, kind, first)
    return f"The trouble seems {begin} in {product}{when} ({what}); the reason is not known."


def cause_mark(top: Suspicion) -> str:
    """The evidence number of what `cause_text` says."""
    if top.deploy is not None:
        return top.deploy.seen.mark
    shown = (top.ordered[0].fact, top.first)
    marks = (one.mark for one in shown if one is not None and not isinstance(one, DeployFact))
    return ", ".join(dict.fromkeys(marks))


def _in_order(top: Suspicion, kind: str, fact: object) -> str:
    """`pool, then latency` where the onset is of another figure than what weighs most."""
    first, since = top.first, getattr(fact, "since", None)
    if first is None or first.since is None or since is None:
        return kind
    if clock(since, first.since) == clock(first.since, first.since):
        return kind
    earlier = _KINDS.get(first.role, first.role)
    return kind if earlier == kind else f"{earlier}, then {kind}"


def since_text(one: Suspicion, now: datetime | None = None) -> str:
    """` since 14:46 UTC`, or that it began before the range; ` from` if it is over."""
    if one.since is None:
        return ""
    word = "since" if one.over_since is None else "from"
    return f" {word} {'before ' if one.began_before else ''}{clock(one.since, now)}"


def clock(at: datetime, now: datetime | None = None) -> str:
    """A time of the day, in UTC, with its date where that is another than that of `now`."""
    return (
        f"{at:%H:%M} UTC" if now is None or at.date() == now.date() else f"{at:%Y-%m-%d %H:%M} UTC"
    )


def plain_words(text: str) -> str:
    return quoted(text)


def now_text(fact: Moved, now: datetime | None = None, *, verb: str = "is") -> str:
    """`p99 latency of checkout is still 1.8 s (normally 0.21 s)`; of a past time `was`, at its worst."""
    figure_now = fact.last if verb == "is" else fact.worst
    value, usual = in_words(figure_now, fact.usual, fact.unit)
    product = plain(fact.product)
    still = " still" if verb == "is" and fact.since is not None else ""
    if _is_share(fact):
        what = "succeed" if _counts_success(fact) else "fail"
        verbs = what if verb == "is" else f"{what}ed"
        return f"{value} of requests of {product}{still} {verbs} (normally {usual})"
    begin = ""
    if verb != "is" and fact.since is not None:
        begin = f" from {clock(fact.since, now)}"
    return f"{_what(fact.role, fact.signal)} of {product} {verb}{still} {value}{begin} (normally {usual})"


def _is_share(fact: Moved | StandingFact) -> bool:
    return fact.role == "errors" and fact.unit.lower() in {*SHARES, "percent", "%"}


def _counts_success(fact: Moved) -> bool:
    whole = 1.0 if fact.unit.lower() in SHARES else 100.0
    return fact.usual > whole / 2


def _moved(fact: Moved, now: datetime | None) -> str:
    worst, usual = in_words(fact.worst, fact.usual, fact.unit)
    when = ""
    if fact.since is not None:
        when = f" {'before' if fact.since_before else 'at'} {clock(fact.since, now)}"
    if fact.role == "errors" and fact.falls:
        kind = "successful" if _counts_success(fact) else "failing"
        what = f"the share of {kind} requests" if _is_share(fact) else f"`{fact.signal}`"
        return f"{what} fell to {worst}{when} (normally {usual}){_end(fact, now)}"
    if _is_share(fact) and not _counts_success(fact):
        is_over = fact.until is not None or fact.is_back or fact.is_past
        since = when.replace(" at ", " from " if is_over else " since ")
        since = since.replace(" before ", " from before " if is_over else " since before ")
        verb = "failed" if is_over else "fail"
        return f"up to {worst} of requests {verb}{since} (normally {usual}){_end(fact, now)}"
    way = "fell" if fact.falls else "rose"
    text = f"{_what(fact.role, fact.signal)} {way} to {worst}{when} (normally {usual})"
    return f"{text}{_limit_reached(fact)}{_end(fact, now)}"


def _limit_reached(fact: Moved) -> str:
    if fact.full_in_s is None or fact.until is not None or fact.last_at is not None:
        return ""
    minutes = max(1, round(fact.full_in_s / 60))
    when = f"{minutes} min" if minutes < _MINUTES_TOLD else f"{round(minutes / 60)} h"
    return f"; at this rate {'nothing is left' if fact.falls else 'full'} in about {when}"


def _end(fact: Moved, now: datetime | None) -> str:
    if fact.last_at is not None:
        return f"; no sample of it after {clock(fact.last_at, now)}"
    if fact.until is not None:
        return f"; back to normal {'from' if fact.is_past else 'since'} {clock(fact.until, now)}"
    if not fact.is_back:
        return ""
    when = "at the end" if fact.is_past else "now"
    return f"; {in_words(fact.last, fact.usual, fact.unit)[0]} {when}"


def _what(role: str, signal: str) -> str:
    quantile = _QUANTILE.search(signal)
    if role == "latency" and quantile:
        return f"{quantile[1]} latency"
    words = signal.replace("_", " ")
    named = {"cpu": "CPU"}.get(role, role)
    return named if role in _PLAIN_ROLES else f"{named} ({words})"


def _standing(fact: StandingFact, today: datetime | None) -> str:
    now, first = in_words(fact.now, fact.first, fact.unit)
    beside = []
    if fact.limit is not None:
        limit = in_words(fact.limit, fact.limit, fact.unit)[0]
        beside.append(f"limit {limit}" if fact.unit else f"the other products are below {limit}")
    if fact.size:
        began = (
            f"when its data began, at {clock(fact.first_at, today)}"
            if fact.first_at
            else "at first"
        )
        beside.append(f"{first} {began}")
    text = f"{_what(fact.role, fact.signal)} is {now}"
    if _is_share(fact):
        text = f"{now} of requests {'succeed' if fact.falls else 'fail'}"
    text += f" ({'; '.join(beside)})" if beside else ""
    if fact.runs_out_s is not None:
        text += f"; at this rate nothing is left in {max(1, round(fact.runs_out_s / 60))} min"
    return text


def _log(point: Point, fact: LogFact) -> str:
    product, example = plain(fact.product), _line(fact.example)
    if fact.change == "gone":
        return f"{product} no longer writes lines like {example}, {fact.before} before"
    words = "new" if fact.change == "new" else "more frequent"
    level = f" {fact.level}" if fact.level else ""
    lines = f"{words}{level} line{'' if fact.after == 1 else 's'}"
    if fact.names and point.kind != "named by errors":
        whose = {"warn": "warnings", "error": "errors"}.get(fact.level, "lines")
        mention = f"`{product}`'s {whose} mention `{plain(fact.names[0])}`"
        return f"{mention}: {fact.after} {lines}, such as {example}"
    kind = "" if point.kind != "named by errors" else f"the log of {product} names it: "
    such = ":" if fact.after == 1 else ", such as"
    return f"{kind}{fact.after} {lines} of {product}{such} {example}"


def _last(fact: LogFact, now: datetime | None) -> str:
    return f"; none after {clock(fact.until, now)}" if fact.until is not None else ""


def _span(fact: SpanFact) -> str:
    operation, product = in_code(fact.operation), plain(fact.product)
    unit = "ratio" if fact.what in {"failing", "cut"} else "milliseconds"
    after, before = in_words(fact.after, fact.before, unit)
    match fact.what:
        case "cut":
            whose = plain(fact.caller or fact.product)
            end = f"end after the call to {plain(fact.callee)}"
            if not fact.callee or fact.callee == fact.caller:
                end = "end before a call that they used to make"
            usual = f"normally {before}" if fact.before else "none before"
            return f"{after} of the {operation} requests of {whose} {end} ({usual})"
        case "way" if fact.is_outlier:
            ends = f"{product} to {plain(fact.callee)}"
            return f"calls from {ends} lose {after} on the way (other calls lose {before})"
        case "own":
            return f"{product} itself spends {after} in {operation} (normally {before})"
        case "way":
            ends = f"{product} to {plain(fact.callee)}"
            return f"calls from {ends} lose {after} on the way (normally {before})"
        case _:
            usual = f"normally {before}" if fact.before else "none before"
            return f"{after} of {operation} of {product} fail ({usual})"


def _gone(fact: GoneFact, now: datetime | None) -> str:
    when = f" {clock(fact.since, now)}" if fact.since is not None else ""
    what = f"{_what(fact.role, fact.signal)}{f' ({fact.where})' if fact.where else ''}"
    if fact.how == "down":
        where = f", {fact.where}" if fact.where else ""
        since = f" since{' before' if fact.since_before else ''}{when}" if when else ""
        return f"a metrics target is unreachable{since} ({fact.signal}{where})"
    if fact.how == "ended":
        return f"no samples of its {what}{' after' if when else ''}{when}"
    usual = (
        f" (normally {in_words(fact.usual, fact.usual, fact.unit)[0]})"
        if fact.usual is not None
        else ""
    )
    return f"{what} fell to zero{' at' if when else ''}{when}{usual}"


def record_line(fact: RecordFact) -> str:
    """That a series is beyond all before, with its product and its mark."""
    return f"{plain(fact.product)}: {_record(fact)} [{fact.mark}]"


def _record(fact: RecordFact) -> str:
    most = "lowest" if fact.falls else "highest"
    signal = fact.signal.replace("_", " ")
    return f"{signal} at {figure(fact.worst)}, its {most} so far (normally {figure(fact.usual)})"
