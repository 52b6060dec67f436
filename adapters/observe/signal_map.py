"""From existing names to signals: the meaning of each metric of some products, and its reading.

Knows no backend: the caller says where each product has each name.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from adapters.observe.conventions import SHIPPED, Conventions, Meaning, matchers, written_alike
from adapters.observe.metric_shape import unit_of
from tools.signals import DETAIL, UNKNOWN, MetricType, Place, Reading, Role, Signal

Places = Mapping[str, Sequence[Place]]

_PARTS: Final = ("_bucket", "_sum", "_count")
_QUANTILE: Final = re.compile(r"p(50|75|9\d|99\.?9)|0\.(5|75|9\d*)")
# `took_p95`, `tp99`, `wait_q90_inside`, `pct_95`
_NAMED_QUANTILE: Final = re.compile(
    r"(?:^|_)(?:t?p|q|pct|perc|percentile|quantile)_?(?:50|75|9\d|999)(?:_|$)"
)
_OF_SIZES: Final = re.compile(r"bytes|size|length|items|rows|batch|tokens|depth|lag|price|amount")
_HTTP_STATUS: Final = re.compile(r"[1-5](\d\d|xx)")
_LABEL_OF_MATCHER: Final = re.compile(r"(\w+)\s*(=~|!=|!~|=)")

# The labels that mark a failed request, and the values that do.
# https://opentelemetry.io/docs/specs/semconv/http/http-spans/#status
# https://opentelemetry.io/docs/specs/semconv/rpc/grpc/#grpc-status (what counts as a server's
# error)
_GRPC_FAULTS: Final = "Unknown|DeadlineExceeded|Unimplemented|Internal|Unavailable|DataLoss"
STATUS_LABELS: Final[Mapping[str, str]] = {
    "http_response_status_code": "5..",
    "http_status_code": "5..",
    "status_code": "5..|5xx|STATUS_CODE_ERROR|ERROR|Error",
    "response_code": "0|5..",  # Istio's 0: no answer came
    "envoy_response_code_class": "5",
    "envoy_response_code": "5..",
    "grpc_code": _GRPC_FAULTS,
    "rpc_grpc_status_code": "2|4|12|13|14|15",
    "status": "5..|5xx|error|Error|ERROR|failed|failure",
    "code": f"5..|5xx|{_GRPC_FAULTS}",
    "classification": "failure",  # Linkerd
    "outcome": "SERVER_ERROR|error|failure|failed",
    "result": "error|failure|failed",
}

# Labels whose values are variants of the same figure; only one is read.
VARIANT_LABELS: Final[Mapping[str, Sequence[str]]] = {
    "quantile": ("0.99", "0.95", "0.9", "0.999", "0.5"),
    "stat": ("p99", "p95", "p90", "Average", "Sum", "Maximum"),
    "statistic": ("p99", "p95", "p90", "Average", "Sum", "Maximum"),
}
# Of those the one that most requests see.
MIDDLES: Final[Mapping[str, Sequence[str]]] = {
    "quantile": ("0.5",),
    "stat": ("p50", "Average"),
    "statistic": ("p50", "Average"),
}
_OF_QUANTILE: Final = {"0.5": "p50"}


@dataclass(frozen=True, slots=True)
class KnownMetric:
    """A metric that exists. `values` are those of its labels that matter here, by label."""

    metric: str
    places: Places
    type: MetricType = ""
    unit: str | None = None
    values: Mapping[str, frozenset[str]] = field(default_factory=dict)


def signals_of(found: Sequence[KnownMetric], conventions: Conventions = SHIPPED) -> list[Signal]:
    by_name = {known.metric: known for known in found}
    signals: dict[str, Signal] = {}
    for known in found:
        for signal in _of(known, by_name, conventions):
            signals.setdefault(signal.name, signal)
            failed = _failing(known, signal)
            if failed is not None:
                signals.setdefault(failed.name, failed)
    return list(signals.values())


def dimension_labels() -> frozenset[str]:
    """The labels whose values `Known.values` must hold if they exist."""
    of_rows = {
        label for where in matchers() for label, _operator in _LABEL_OF_MATCHER.findall(where)
    }
    return frozenset({*STATUS_LABELS, *VARIANT_LABELS, *of_rows})


def base_of(metric: str, names: Mapping[str, object]) -> tuple[str, str]:
    """The histogram or summary that a name is a part of and which part, or the name itself."""
    for part in _PARTS:
        base = metric.removesuffix(part)
        siblings = any(f"{base}{other}" in names for other in _PARTS if other != part)
        if base != metric and (siblings or part == "_bucket"):
            return base, part
    return metric, ""


def _of(
    known: KnownMetric, names: Mapping[str, KnownMetric], conventions: Conventions
) -> Iterator[Signal]:
    base, part = base_of(known.metric, names)
    named = conventions.of(base)
    if named.role is None:
        return
    meaning = _by_labels(known, named, is_histogram=f"{base}_bucket" in names)
    role: Role = meaning.role or named.role
    one = replace(_signal(known, base, role, meaning), is_inferred=meaning is not named)
    match part:
        case "_bucket":
            if meaning.reading != "mean":
                yield replace(one, name=f"{base}_p99", reading="quantile", combine="max")
        case "_count":
            yield from _of_count(replace(one, metric=known.metric), meaning)
            has_tail = f"{base}_bucket" in names and meaning.reading != "mean"
            if f"{base}_sum" in names and (not has_tail or role == "latency"):
                rank = min(DETAIL, one.rank + has_tail)
                yield replace(one, name=f"{base}_mean", reading="mean", rank=rank)
        case "_sum":
            return
        case _:
            yield from _plain(known, one, meaning, names)


def _by_labels(known: KnownMetric, meaning: Meaning, *, is_histogram: bool) -> Meaning:
    """Of a name that says nothing: what has quantiles is a duration, what has a status is requests."""
    values = [value for label in VARIANT_LABELS for value in known.values.get(label, ())]
    alike = written_alike(known.metric)
    is_lag = meaning.role == "queue" and re.search("(^|_)lag(_|$)", alike)
    if is_lag and any(map(_QUANTILE.fullmatch, values)):
        return replace(meaning, role="latency", rank=DETAIL, worse="up", combine="max", limit=None)
    if meaning.role != "other" or meaning.rank != UNKNOWN:
        return meaning
    has_quantiles = any(map(_QUANTILE.fullmatch, values)) or _NAMED_QUANTILE.search(alike)
    if (has_quantiles or is_histogram) and not _OF_SIZES.search(alike):
        duration = replace(meaning, role="latency", rank=DETAIL, worse="up", combine="max")
        return replace(duration, counts="traffic")
    statuses = (known.values.get(label, frozenset()) for label in STATUS_LABELS)
    if known.type in ("counter", "") and any(map(_has_status, statuses)):
        return replace(meaning, role="traffic", rank=DETAIL, type="counter", combine="sum")
    return meaning


def _has_status(values: frozenset[str]) -> bool:
    """Whether they are codes of HTTP: of one digit or word they may be anything."""
    return any(map(_HTTP_STATUS.fullmatch, values))


def _of_count(one: Signal, meaning: Meaning) -> Iterator[Signal]:
    """How many observations a second: of a server's latency these are its requests."""
    if meaning.counts is None:
        return
    yield replace(
        one, role=meaning.counts, reading="rate", unit="per second", worse="either", combine="sum"
    )


def _plain(
    known: KnownMetric, one: Signal, meaning: Meaning, names: Mapping[str, KnownMetric]
) -> Iterator[Signal]:
    counter = known.type == "counter" or (
        known.type in ("", "summary")
        and (meaning.type == "counter" or known.metric.endswith("_total"))
        and "quantile" not in known.values
    )
    over = next((name for name in names if _same(name, meaning.over)), "") if meaning.over else ""
    if meaning.reading in ("increase", "changes"):
        yield replace(one, reading=meaning.reading, unit=meaning.unit or "in a step")
    elif over:
        reading: Reading = "rate_ratio" if counter else "ratio"
        name = f"{known.metric}_ratio"
        yield replace(
            one, name=name, reading=reading, over=over, over_where=meaning.over_where, unit="ratio"
        )
    elif counter:
        unit = meaning.unit or unit_of(f"{known.metric.removesuffix('_total')}_total")
        yield replace(one, reading="rate", unit=unit)
    else:
        yield replace(one, where=_with_variant(known, one.where))
        if one.role == "latency":
            yield from _middle(known, one)


def _failing(known: KnownMetric, signal: Signal) -> Signal | None:
    """The share of requests that fail, if a label of the counter shows it; else None."""
    if signal.role != "traffic" or signal.reading != "rate":
        return None
    for label, pattern in STATUS_LABELS.items():
        values = known.values.get(label, frozenset())
        if _tells_status(values, pattern):
            failed = f'{label}=~"{pattern}"'
            return replace(
                signal,
                name=f"{signal.name}_error_ratio",
                role="errors",
                reading="rate_ratio",
                unit="ratio",
                worse="up",
                where=_and(signal.where, failed),
                over=signal.metric,
                over_where=signal.where,
            )
    return None


def _tells_status(values: frozenset[str], pattern: str) -> bool:
    """A failure may not have happened yet, so the values that say "all is well" count too."""
    fine = r"[1-5]..|[1-5]xx|[1-5]|OK|ok|0|STATUS_CODE_\w+|success|SUCCESS|CLIENT_ERROR"
    return any(re.fullmatch(f"{pattern}|{fine}", value) for value in values)


def _signal(known: KnownMetric, base: str, role: Role, meaning: Meaning) -> Signal:
    unit = meaning.unit or known.unit or unit_of(base) or _shaped_unit(base)
    where = meaning.where
    if where and not _may_apply(where, known):
        where = ""
    ordinary = re.search(
        r"(?:^|_)(p50|p75|median|avg|mean|average|min|max|p999)(_|$)", written_alike(base)
    )
    return Signal(
        name=known.metric,
        role=role,
        reading="gauge",
        metric=base,
        unit=unit,
        worse=meaning.worse,
        rank=min(DETAIL, meaning.rank + 1) if ordinary and role == "latency" else meaning.rank,
        combine=meaning.combine,
        where=where,
        limit=meaning.limit,
        places=known.places,
    )


def _may_apply(where: str, known: KnownMetric) -> bool:
    """A matcher by a label that the metric does not have would hide all of it."""
    return all(
        operator in ("!=", "!~") or known.values.get(label)
        for label, operator in _LABEL_OF_MATCHER.findall(where)
    )


def _middle(known: KnownMetric, one: Signal) -> Iterator[Signal]:
    """The median or the average beside the tail: what most requests see, and far less noisy."""
    for label, middles in MIDDLES.items():
        values = known.values.get(label, frozenset())
        value = next((value for value in middles if value in values), "")
        where = _and(one.where, f'{label}="{value}"')
        if value and where != _with_variant(known, one.where):
            name = f"{one.metric}_{_OF_QUANTILE.get(value, value.lower())}"
            yield replace(one, name=name, where=where, rank=min(DETAIL, one.rank + 1))


def _with_variant(known: KnownMetric, where: str) -> str:
    for label, preferred in VARIANT_LABELS.items():
        values = known.values.get(label, frozenset())
        chosen = next((value for value in preferred if value in values), "")
        if len(values) > 1 and chosen:
            return _and(where, f'{label}="{chosen}"')
    return where


def _and(*matchers: str) -> str:
    return ",".join(matcher for matcher in matchers if matcher)


def _same(name: str, other: str) -> bool:
    return written_alike(name) == written_alike(other)


def _shaped_unit(base: str) -> str | None:
    alike = written_alike(base)
    if "percent" in alike:
        return "percent"
    return "ratio" if re.search(r"(^|_)ratio(_|$)", alike) else None  # not a duration
