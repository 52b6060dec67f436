"""From results to ranked suspicions. Facts in, judgement out; no text for people here."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from pydantic import JsonValue

from adapters.llm.triage.case import Case, Seen, Signals, plain

DEPLOYS = "core__get_recent_deploys"
COMPARE = "core__compare_to_baseline"
LOGS = "core__get_logs"
TRACES = "core__get_traces"

# A deploy shows within minutes; what starts later than this has another cause.
BLAMED_WITHIN = timedelta(minutes=20)
CLOCK_TOLERANCE = timedelta(minutes=3)
SATURATED = 0.9  # a pool or a CPU in use beyond this queues
LEAST_SELF_SHARE = 0.3  # of a trace's time spent in one service, to say that the time goes there


@dataclass(frozen=True, slots=True)
class Deviation:
    """A metric of a product that left its baseline."""

    product: str
    metric: str
    seen: Seen
    since: datetime | None

    @property
    def z(self) -> float:
        """How far, in baseline deviations; a deviation from a constant baseline counts as far."""
        value = self.seen.number("max_z_score")
        return abs(value) if value is not None else 99.0


@dataclass(frozen=True, slots=True)
class DeployFact:
    """One deploy as the tool told it. `previous` is verbatim, and empty unless it is one plain word."""

    product: str
    version: str
    previous: str
    at: datetime
    seen: Seen


@dataclass(frozen=True, slots=True)
class Suspicion:
    """A possible cause, the stronger the higher `weight`."""

    product: str
    weight: float
    since: datetime | None
    deploy: DeployFact | None
    saturated: Deviation | None
    deviations: tuple[Deviation, ...]
    traces: tuple[tuple[Seen, float], ...]  # with the share of time spent in the product itself


def deviations(case: Case) -> Sequence[Deviation]:
    """Every metric that the baseline comparison calls anomalous, worst first."""
    found = [
        Deviation(
            product=plain(str(s.arguments.get("product", ""))),
            metric=plain(str(s.arguments.get("metric_name", ""))),
            seen=s,
            since=instant(s.text("first_anomaly_at")),
        )
        for s in case.all_of(COMPARE)
        if s.result.get("anomalous") is True and s.text("direction") != "down"
    ]
    return sorted(found, key=lambda d: -d.z)


def deploys(case: Case) -> Sequence[DeployFact]:
    """Every deploy seen, newest first."""
    facts = [
        DeployFact(
            product=plain(str(row.get("product") or seen.arguments.get("product", ""))),
            version=plain(str(row.get("version", ""))),
            previous=_if_plain(row.get("previous_version")),
            at=at,
            seen=seen,
        )
        for seen in case.all_of(DEPLOYS)
        for row in seen.rows("deploys")
        if (at := instant(str(row.get("ts", "")))) is not None
    ]
    return sorted(facts, key=lambda d: d.at, reverse=True)


def _if_plain(value: JsonValue) -> str:
    """A version to go back to is taken as it is or not at all."""
    return value if isinstance(value, str) and plain(value) == value else ""


def instant(text: str) -> datetime | None:
    """An RFC 3339 instant in UTC, None when it is not one of our times."""
    try:
        value = datetime.fromisoformat(text)
        return value.astimezone(UTC) if value.tzinfo and 1970 <= value.year < 3000 else None
    except (ValueError, OverflowError):
        return None


def suspicions(case: Case, signals: Signals) -> Sequence[Suspicion]:
    """Ranked, strongest first; empty when nothing is abnormal."""
    all_deviations = deviations(case)
    shares = time_shares(case)
    products = {d.product for d in all_deviations} | {
        p
        for p, found in shares.items()
        if all_deviations and _usual_share(found) > LEAST_SELF_SHARE
    }
    found = [_suspicion(p, all_deviations, shares, deploys(case), signals) for p in products]
    return sorted((s for s in found if s.weight > 0), key=lambda s: (-s.weight, s.product))


def _suspicion(
    product: str,
    all_deviations: Sequence[Deviation],
    shares: Mapping[str, Sequence[tuple[Seen, float]]],
    facts: Sequence[DeployFact],
    signals: Signals,
) -> Suspicion:
    own = tuple(d for d in all_deviations if d.product == product)
    since = min((d.since for d in own if d.since), default=None)
    saturated = next((d for d in own if d.metric in signals.saturation and _is_full(d)), None)
    deploy = _blamed(product, since, facts)
    traces = tuple(shares.get(product, ()))
    weight = 1.0 if own else 0.0
    weight += 3.0 if deploy else 0.0
    weight += 3.0 if saturated else 0.0
    weight += 4.0 * _usual_share(traces)
    weight += 0.5 if since and since == _earliest(all_deviations) else 0.0
    return Suspicion(product, weight, since, deploy, saturated, own, traces)


def _is_full(deviation: Deviation) -> bool:
    return (deviation.seen.number("window_max") or 0.0) >= SATURATED


def _earliest(found: Sequence[Deviation]) -> datetime | None:
    return min((d.since for d in found if d.since), default=None)


def _blamed(product: str, since: datetime | None, facts: Sequence[DeployFact]) -> DeployFact | None:
    """The product's own deploy shortly before its trouble began."""
    if since is None:
        return None
    return next(
        (
            d
            for d in facts
            if d.product == product and d.at - CLOCK_TOLERANCE <= since <= d.at + BLAMED_WITHIN
        ),
        None,
    )


def _usual_share(found: Sequence[tuple[Seen, float]]) -> float:
    return sum(share for _, share in found) / len(found) if found else 0.0


def time_shares(case: Case) -> Mapping[str, Sequence[tuple[Seen, float]]]:
    """For each product, the traces in which it spends time itself, with the share of the whole."""
    shares: dict[str, list[tuple[Seen, float]]] = {}
    for seen in case.all_of(TRACES):
        own = _self_times(seen)
        total = sum(own.values())
        for service, value in own.items():
            if service and total > 0:
                shares.setdefault(service, []).append((seen, value / total))
    return shares


def _self_times(seen: Seen) -> Mapping[str, float]:
    """Microseconds each service spends itself, children taken out."""
    own: dict[str, float] = {}
    waiting: list[JsonValue] = [seen.result.get("root"), *_list(seen.result.get("roots"))]
    while waiting:
        span = waiting.pop()
        if not isinstance(span, dict):
            continue
        children = _list(span.get("children"))
        waiting.extend(children)
        self_us = span.get("self_us")
        if not isinstance(self_us, int | float):
            inside = sum(_duration(c) for c in children)
            self_us = max(0.0, _duration(span) - inside)
        service = span.get("service")
        name = plain(service) if isinstance(service, str) else ""
        own[name] = own.get(name, 0.0) + max(0.0, float(self_us))
    return own


def _duration(span: JsonValue) -> float:
    value = span.get("duration_us") if isinstance(span, dict) else None
    return float(value) if isinstance(value, int | float) else 0.0


def _list(value: JsonValue) -> list[JsonValue]:
    return value if isinstance(value, list) else []
