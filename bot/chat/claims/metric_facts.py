"""Facts of metrics: the signal, the product, the direction, the size and the onset of a change."""

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Final

from bot.chat.claims.facts import (
    Fact,
    Fields,
    Kind,
    at_of,
    is_number,
    names_of,
    numbers_of,
    rows_in,
    text_of,
    words_of,
)
from bot.chat.claims.quantities import KnownNumber
from bot.chat.claims.results import Result

_QUANTILE = re.compile(r"(?:^|[_-])(p\d{2,3})(?:$|[_-])")
_METRIC_ROLES: Final = (
    ("errors", re.compile(r"error|fail|5xx")), ("latency", re.compile(r"latenc|duration|_p\d\d|response_time")),
    ("pool", re.compile(r"connection|pool")), ("cpu", re.compile(r"cpu")),
    ("memory", re.compile(r"memory|heap|rss")), ("disk", re.compile(r"disk|volume|filesystem")),
    ("queue", re.compile(r"queue|backlog|lag")), ("restarts", re.compile(r"restart")),
    ("traffic", re.compile(r"request|traffic|throughput|rps|qps")),
)  # fmt: skip


def metric_facts(result: Result) -> Iterator[Fact]:
    """Those of a comparison with a baseline, of series, and of a sweep."""
    yield from _comparisons(result)
    yield from _series(result)
    yield from _sweep(result)


def _comparisons(result: Result) -> Iterator[Fact]:
    fields = result.fields
    if "baseline_window" not in fields:
        return
    metric = text_of(result.arguments, "metric_name")
    rows = rows_in(fields.get("products")) or [fields]
    for row in rows:
        product = text_of(row, "product") or text_of(result.arguments, "product")
        way = text_of(row, "direction") if row.get("anomalous") is True else "flat"
        if "direction" not in row:
            yield Fact(
                result.number, Kind.SIGNAL, names_of(product), role_of(metric), "", terms=_of_metric(metric) | {"state": words_of("unmeasured")}
            )  # fmt: skip
            continue
        yield Fact(
            result.number, Kind.SIGNAL, names_of(product), role_of(metric), way,
            _measured(result, row, fields), at_of(row, since="first_anomaly_at"), _of_metric(metric),
        )  # fmt: skip


def _measured(result: Result, row: Fields, fields: Fields) -> dict[str, tuple[KnownNumber, ...]]:
    family, size = result.unit
    now = numbers_of(row, ("window_max", "window_median", "window_mean"), family, size)
    usual = numbers_of(row, ("baseline_median", "baseline_mean"), family, size)
    return {
        "now": now,
        "usual": usual,
        "factor": factors(now, usual),
        "z": numbers_of(row, ("max_z_score",), "z", 1.0),
        "count": numbers_of(fields, ("anomaly_count",), "count", 1.0),
        "max": numbers_of(row, ("window_max",), family, size),
        "mean": numbers_of(row, ("window_mean",), family, size),
    }


def _series(result: Result) -> Iterator[Fact]:
    fields = result.fields
    if fields.keys().isdisjoint(("step_s", "stats")) or "shifts" in fields:
        return
    metric = text_of(result.arguments, "metric_name") or text_of(result.arguments, "query")
    family, size = result.unit
    for one in [fields, *rows_in(fields.get("series"))]:
        values = [v for row in rows_in(one.get("samples")) if is_number(v := row.get("value"))]
        labels = one.get("labels")
        named = labels.values() if isinstance(labels, dict) else ()
        stats = one.get("stats")
        ends = tuple(KnownNumber(v, v * size, family) for v in values[-1:])
        now = (
            numbers_of(stats, ("max", "mean", "min"), family, size)
            if isinstance(stats, dict)
            else ()
        )
        usual = tuple(KnownNumber(v, v * size, family) for v in values[:1])
        way = next((c.direction for c in result.compared if one is fields), "")
        if values or now:
            yield Fact(
                result.number, Kind.SIGNAL, names_of(text_of(result.arguments, "product"), text_of(one, "product"), *named), role_of(metric), way,
                {"now": now + ends, "usual": usual, "last": ends, "factor": factors(now + ends, usual)} | _stats(stats, family, size),
                {}, _of_metric(metric),
            )  # fmt: skip


def _stats(stats: object, family: str, size: float) -> dict[str, tuple[KnownNumber, ...]]:
    return {key: numbers_of(stats, (key,), family, size) for key in ("max", "mean", "min")}


def _sweep(result: Result) -> Iterator[Fact]:
    for row in rows_in(result.fields.get("shifts")):
        if "role" not in row:
            continue
        family, size = result.family_of(text_of(row, "unit"))
        now = numbers_of(row, ("worst", "last"), family, size)
        usual = numbers_of(row, ("usual",), family, size)
        last = numbers_of(row, ("last",), family, size)
        figures = {"now": now, "usual": usual, "last": last, "factor": factors(now, usual),
                   "z": numbers_of(row, ("score",), "z", 1.0)}  # fmt: skip
        terms = _of_metric(text_of(row, "signal"))
        times = at_of(row, since="since", until="until")
        figures["max" if row.get("direction") == "up" else "min"] = numbers_of(
            row, ("worst",), family, size
        )
        if "until" in row:
            terms = terms | {"state": words_of("recovered")}
            figures["took"] = _lasting(times)
        yield Fact(
            result.number, Kind.SIGNAL, names_of(text_of(row, "product")), text_of(row, "role"), text_of(row, "direction"),
            figures, times, terms,
        )  # fmt: skip
    yield from _standing(result)
    within = result.fields.get("within")
    for product, roles in within.items() if isinstance(within, dict) else ():
        for role in roles.split() if isinstance(roles, str) else ():
            yield Fact(result.number, Kind.SIGNAL, names_of(product), role, "flat")
    traffic = result.fields.get("traffic")
    for product, rate in traffic.items() if isinstance(traffic, dict) else ():
        if is_number(rate):
            yield Fact(
                result.number, Kind.SIGNAL, names_of(product), "traffic", "",
                {"now": (KnownNumber(rate, rate, "rate"), KnownNumber(rate, rate, "count"))},
            )  # fmt: skip


def _lasting(times: Mapping[str, Sequence[datetime]]) -> tuple[KnownNumber, ...]:
    spans = [end - since for since in times.get("since", ()) for end in times.get("until", ())]
    return tuple(KnownNumber(0.0, span.total_seconds(), "time") for span in spans)


def _standing(result: Result) -> Iterator[Fact]:
    for row in rows_in(result.fields.get("standing")):
        family, size = result.family_of(text_of(row, "unit"))
        figures = {
            "now": numbers_of(row, ("now", "limit"), family, size),
            "usual": numbers_of(row, ("first",), family, size),
            "took": numbers_of(row, ("runs_out_s",), "time", 1.0),
        }
        yield Fact(
            result.number, Kind.SIGNAL, names_of(text_of(row, "product")), text_of(row, "role"), text_of(row, "direction"),
            figures, at_of(row, since="first_at"), _of_metric(text_of(row, "signal")),
        )  # fmt: skip


def _of_metric(metric: str) -> dict[str, frozenset[str]]:
    found = _QUANTILE.search(metric.lower())
    return {"quantile": words_of(found[1] if found else ""), "signal": words_of(metric.lower())}


def role_of(metric: str) -> str:
    """What a metric's name says that it measures; empty when it does not say."""
    lowered = metric.lower()
    return next((role for role, pattern in _METRIC_ROLES if pattern.search(lowered)), "")


def factors(now: Sequence[KnownNumber], usual: Sequence[KnownNumber]) -> tuple[KnownNumber, ...]:
    """How many times the usual each value is."""
    made = [one.value / other.value for one in now for other in usual if other.value]
    return tuple(KnownNumber(each, each, "factor") for each in made)
