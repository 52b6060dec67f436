"""What to look at next, given what was seen. An empty plan means: conclude."""

from collections.abc import Callable, Iterator, Sequence

import orjson
from pydantic import JsonValue

from adapters.llm.messages import ToolCall
from adapters.llm.triage.case import Case, Seen, Signals
from adapters.llm.triage.findings import (
    COMPARE,
    DEPLOYS,
    LOGS,
    TRACES,
    Suspicion,
    deviations,
    suspicions,
    time_shares,
)
from adapters.llm.triage.surroundings import Wish, wishes

PROPOSE = "core__propose_action"
MOST_PRODUCTS = 12  # compared in one round; a channel with more names them in its question
MOST_TRACES = 4
MOST_SUSPECTS = 3
MOST_ROUNDS = 6  # of looking; a proposal may follow, and the loop allows eight
WINDOW = "last 30m"
DEPLOY_WINDOW = "last 6h"
_PROPOSE_ABOVE = 5.0  # a deploy and the time it takes, or a deploy that came first

_Stage = Callable[[Case, Signals], Iterator[Wish]]


def next_calls(case: Case, signals: Signals) -> Sequence[ToolCall]:
    """The next round's calls; those already made, and tools that are not there, are left out."""
    for stage in _stages(case.rounds):
        wishes = [w for w in stage(case, signals) if w[0] in case.tools and not _done(case, w)]
        if wishes:
            offset = len(case.seen)
            return [
                ToolCall(f"triage-{offset + i}", tool, orjson.dumps(dict(arguments)).decode())
                for i, (tool, arguments) in enumerate(wishes)
            ]
    return ()


def _stages(rounds: int) -> Sequence[_Stage]:
    """What may still be looked at after so many rounds, so that every case is concluded."""
    if rounds < MOST_ROUNDS:
        return (_first_look, _around, _blind_spots, _suspects, _traces_of_suspects, _conclusion)
    return (_proposal,) if rounds == MOST_ROUNDS else ()


def _done(case: Case, wish: Wish) -> bool:
    tool, arguments = wish
    if tool == PROPOSE:
        return case.asked(PROPOSE)
    key = {k: v for k, v in arguments.items() if isinstance(v, str)}
    return case.asked(tool, **key)


def _compare(product: str, metric: str) -> Wish:
    return COMPARE, {"product": product, "metric_name": metric, "time_range": WINDOW}


def _first_look(case: Case, signals: Signals) -> Iterator[Wish]:
    yield DEPLOYS, {"product": "*", "time_range": DEPLOY_WINDOW}
    if case.subject:
        yield _compare(case.subject, signals.latency)
        yield _compare(case.subject, signals.errors)
        yield LOGS, {"product": case.subject, "time_range": WINDOW, "level": "warn", "limit": 50}


def _around(case: Case, signals: Signals) -> Iterator[Wish]:
    """Where the subject's time goes, and how its neighbours are."""
    for trace_id in _traced(case, case.subject):
        yield TRACES, {"request_id": trace_id}
    yield from _next_page(case, case.subject)
    others = [p for p in case.products if p != case.subject][:MOST_PRODUCTS]
    for product in others:
        yield _compare(product, signals.latency)


def _traced(case: Case, product: str) -> Sequence[str]:
    """The traces that a product's log lines name, newest first."""
    pages = _pages(case, product)
    rows = pages[0].rows("lines") if pages else []
    ids = dict.fromkeys(str(r.get("trace_id") or "") for r in rows)
    return [i for i in ids if i][:MOST_TRACES]


def _pages(case: Case, product: str) -> Sequence[Seen]:
    """The pages of a product's log, newest first."""
    return [s for s in case.all_of(LOGS) if s.arguments.get("product") == product]


def _next_page(case: Case, product: str) -> Iterator[Wish]:
    """The second page, where the first was full: what began the trouble is older than its noise."""
    pages = _pages(case, product)
    if len(pages) == 1 and (cursor := pages[0].text("next_cursor")):
        yield LOGS, {**pages[0].arguments, "cursor": cursor}


def _blind_spots(case: Case, signals: Signals) -> Iterator[Wish]:
    """Where there is no latency to compare, as with datastores, capacity is."""
    if not deviations(case):
        return
    for seen in case.all_of(COMPARE):
        product = str(seen.arguments.get("product", ""))
        unknown = seen.arguments.get("metric_name") == signals.latency
        if unknown and seen.number("baseline_mean") is None:
            for metric in signals.saturation:
                yield _compare(product, metric)


def _traces_of_suspects(case: Case, signals: Signals) -> Iterator[Wish]:
    """When the subject's own logs named no trace, those of the suspects may."""
    if case.all_of(TRACES):
        return
    for suspicion in suspicions(case, signals)[:MOST_SUSPECTS]:
        for trace_id in _traced(case, suspicion.product):
            yield TRACES, {"request_id": trace_id}


def _suspects(case: Case, signals: Signals) -> Iterator[Wish]:
    """A closer look at where it seems to begin; with nothing abnormal, at what is loud."""
    if not deviations(case):
        return
    shares = time_shares(case)
    by_time = sorted(shares, key=lambda p: -sum(s for _, s in shares[p]))
    ranked = [s.product for s in suspicions(case, signals)]
    known = [p for p in dict.fromkeys([*by_time[:2], *ranked]) if p in case.products]
    for product in known[:MOST_SUSPECTS]:
        yield _compare(product, signals.latency)
        for metric in signals.saturation:
            yield _compare(product, metric)
        yield LOGS, {"product": product, "time_range": WINDOW, "level": "warn", "limit": 50}


def _conclusion(case: Case, signals: Signals) -> Iterator[Wish]:
    """The judgement is made: what stands around it, and a proposal where one is due."""
    yield from wishes(case, next(iter(suspicions(case, signals)), None))
    yield from _proposal(case, signals)


def _proposal(case: Case, signals: Signals) -> Iterator[Wish]:
    found = suspicions(case, signals)
    if not found or not worth_rolling_back(found[0]):
        return
    top = found[0]
    assert top.deploy is not None  # noqa: S101 - said by worth_rolling_back
    params: dict[str, JsonValue] = {"version": top.deploy.previous} if top.deploy.previous else {}
    began = f"{top.since:%H:%M} UTC" if top.since else "right after"
    yield (
        PROPOSE,
        {
            "action": signals.rollback_action,
            "product": top.product,
            "params": params,
            "rationale": (
                f"{top.product} left its baseline at {began}, after {top.deploy.version} was "
                f"deployed at {top.deploy.at:%H:%M} UTC. No model was used for this suspicion."
            ),
            "blast_radius": "one service",
            "reversible": True,
        },
    )


def worth_rolling_back(suspicion: Suspicion) -> bool:
    """Whether the evidence for a bad deploy is strong enough to ask people."""
    return suspicion.deploy is not None and suspicion.weight >= _PROPOSE_ABOVE
