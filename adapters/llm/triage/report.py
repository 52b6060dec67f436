"""The conclusion in words. Every figure is copied from a tool result and cites it."""

from collections.abc import Iterator, Sequence
from datetime import datetime

from adapters.llm.triage.case import Case, Seen, Signals, names, plain
from adapters.llm.triage.findings import (
    COMPARE,
    DEPLOYS,
    LOGS,
    Deviation,
    Suspicion,
    deploys,
    suspicions,
)
from adapters.llm.triage.plan import PROPOSE, worth_rolling_back
from adapters.llm.triage.surroundings import around

_MOST_RULED_OUT = 3
_MOST_MARKS = 12
_UNITS = {"seconds": " s", "milliseconds": " ms"}


def report(case: Case, signals: Signals) -> str:
    """Markdown for people on call: cause, evidence, what was ruled out, what to do."""
    found = suspicions(case, signals)
    parts = _abnormal(case, found, signals) if found else _normal(case, signals)
    return "\n\n".join(p for p in parts if p)


def _abnormal(case: Case, found: Sequence[Suspicion], signals: Signals) -> Iterator[str]:
    top = found[0]
    yield f"**{_headline(top)}**"
    yield "\n".join(f"- {line}" for line in (*_evidence(top, signals), *_named_by(case, top)))
    if others := [s for s in found[1:] if s.deviations]:
        yield (
            "Also abnormal, most likely as a consequence: "
            + "; ".join(_consequence(s) for s in others[:4])
            + "."
        )
    if ruled_out := list(_ruled_out(case, found, signals)):
        yield "Looked at and not the cause: " + "; ".join(ruled_out[:_MOST_RULED_OUT]) + "."
    if surroundings := list(around(case)):
        yield "Around it:\n" + "\n".join(f"- {line}" for line in surroundings)
    yield _next_step(case, top)


def _headline(top: Suspicion) -> str:
    since = _since(top.since)
    if top.deploy:
        return (
            f"Most likely cause: the deploy of {top.product} {top.deploy.version} "
            f"at {top.deploy.at:%H:%M} UTC."
        )
    if top.saturated:
        return f"Most likely cause: {top.product} is saturated{since}."
    return f"The trouble seems to begin in {top.product}{since}; why is not established."


def _evidence(top: Suspicion, signals: Signals) -> Iterator[str]:
    if top.deploy:
        previous = f", replacing {top.deploy.previous}" if top.deploy.previous else ""
        yield (
            f"{top.deploy.version} went out at {top.deploy.at:%H:%M} UTC{previous}"
            f" [{top.deploy.seen.mark}]"
        )
    for deviation in top.deviations[:4]:
        yield _deviation(deviation, signals)
    if top.traces:
        seen, share = max(top.traces, key=lambda t: t[1])
        yield (
            f"in the slow requests that were traced, most of the time is spent in {top.product} "
            f"itself [{seen.mark}]"
            if share > 0.5
            else f"the slow requests that were traced spend time in {top.product} [{seen.mark}]"
        )


def _named_by(case: Case, top: Suspicion) -> Iterator[str]:
    """Whose logs complain about it: the logs of others, never its own word."""
    told = {top.product}
    for seen in case.all_of(LOGS):
        product = str(seen.arguments.get("product", ""))
        lines = [str(row.get("message", "")) for row in seen.rows("lines")]
        if product not in told and any(names(line, top.product) for line in lines):
            told.add(product)
            yield f"the logs of {plain(product)} name {top.product} [{seen.mark}]"


def _deviation(deviation: Deviation, signals: Signals) -> str:
    name = _metric_name(deviation, signals)
    seen = deviation.seen
    now, usual = seen.number("window_max"), seen.number("baseline_mean")
    since = _since(deviation.since)
    unit = _UNITS.get(seen.text("unit"), "")
    return f"{name} up to {_figure(now)}{unit}, usually {_figure(usual)}{unit}{since} [{seen.mark}]"


def _metric_name(deviation: Deviation, signals: Signals) -> str:
    words = {signals.latency: "p99 latency", signals.errors: "error ratio"}
    return words.get(deviation.metric, deviation.metric.replace("_", " "))


def _since(at: datetime | None) -> str:
    return f" since {at:%H:%M} UTC" if at else ""


def _figure(value: float | None) -> str:
    """As the tool told it, rounded to three digits."""
    if value is None:
        return "unknown"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def _consequence(suspicion: Suspicion) -> str:
    first = suspicion.deviations[0]
    since = _since(suspicion.since)
    return f"{suspicion.product}{since} [{first.seen.mark}]"


def _ruled_out(case: Case, found: Sequence[Suspicion], signals: Signals) -> Iterator[str]:
    blamed = {s.product for s in found}
    for fact in deploys(case):
        compared = case.of(COMPARE, product=fact.product, metric_name=signals.latency)
        quiet = compared is not None and compared.text("direction") and not _fell(compared)
        if fact.product not in blamed and compared is not None and quiet:
            yield (
                f"the deploy of {fact.product} {fact.version} at {fact.at:%H:%M} UTC "
                f"[{fact.seen.mark}], whose latency is within its baseline [{compared.mark}]"
            )


def _next_step(case: Case, top: Suspicion) -> str:
    proposed = next((s for s in case.seen if s.tool == PROPOSE), None)
    if proposed is not None and proposed.ok:
        return (
            f"A rollback of {top.product} is proposed below. Nothing happens unless somebody "
            "with the role confirms it."
        )
    if proposed is not None:
        return f"A rollback could not be proposed here; see [{proposed.mark}]."
    if top.saturated:
        return (
            f"Next: find who holds {top.product}'s capacity and since when. A rollback would not "
            "help, so none is proposed."
        )
    if worth_rolling_back(top):
        return "Next: consider rolling that deploy back."
    return f"Next: look into {top.product} by hand, starting with the evidence above."


def _normal(case: Case, signals: Signals) -> Iterator[str]:
    compared = case.all_of(COMPARE)
    known = [s for s in compared if s.number("baseline_mean") is not None and s.text("direction")]
    blind = _products(compared) - _products(known)
    if not known:
        yield "**I could not look at any metric, so I cannot say whether anything is wrong.**"
        yield _what_failed(case, blind)
        return
    subject = plain(case.subject)
    if subject in _products(known):
        yield f"**Nothing is wrong that I can see with {subject}.**"
    else:
        yield f"**I have no figures of {subject}. Around it nothing is wrong that I can see.**"
    facts = list(_within(known, signals))
    if blind:
        unknown = [s for s in compared if _products([s]) <= blind]
        facts.append(f"there are no figures of {_listed(blind)} to look at {_marks(unknown)}")
    if subject in _products(known):
        facts += [*_quiet_facts(case), *around(case)]
    yield "\n".join(f"- {fact}" for fact in facts)
    yield (
        "Not established: anything these signals do not show, such as one customer or one region. "
        "If you see slowness now, tell me where and since when."
    )


def _what_failed(case: Case, blind: set[str]) -> str:
    failed = [s for s in case.seen if not s.ok]
    if failed:
        return f"What I asked failed: {_marks(failed)}."
    if blind:
        return f"There are no figures of {_listed(blind)}: {_marks(case.all_of(COMPARE))}."
    return f"No metrics can be asked for here. {_marks(case.seen)}".strip()


def _within(known: Sequence[Seen], signals: Signals) -> Iterator[str]:
    """Which signals were compared for whom; what fell is not called usual."""
    for metric, words in ((signals.latency, "latency is"), (signals.errors, "errors are")):
        usual = [s for s in known if s.arguments.get("metric_name") == metric and not _fell(s)]
        if usual:
            yield f"{words} within the 24 h baseline for {_listed(_products(usual))} {_marks(usual)}"
    if fallen := [s for s in known if _fell(s)]:
        yield f"lower than usual: {_listed(_products(fallen))} {_marks(fallen)}"


def _fell(seen: Seen) -> bool:
    return seen.result.get("anomalous") is True


def _products(found: Sequence[Seen]) -> set[str]:
    return {plain(str(s.arguments.get("product", ""))) for s in found}


def _listed(products: set[str]) -> str:
    return ", ".join(sorted(products))


def _marks(found: Sequence[Seen]) -> str:
    return " ".join(f"[{s.mark}]" for s in found[:_MOST_MARKS] if s.mark)


def _quiet_facts(case: Case) -> Iterator[str]:
    recent = deploys(case)
    seen = case.of(DEPLOYS)
    if recent:
        fact = recent[0]
        yield (
            f"the last deploy was {fact.product} {fact.version} at {fact.at:%H:%M} UTC; "
            f"nothing changed after it [{fact.seen.mark}]"
        )
    elif seen is not None:
        yield f"no deploys in that time [{seen.mark}]"
    logs = case.of(LOGS, product=case.subject)
    if logs is not None and logs.rows("lines"):
        yield f"its logs hold warnings, but latency and errors did not move with them [{logs.mark}]"
