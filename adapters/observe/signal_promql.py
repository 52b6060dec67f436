"""Signals as PromQL: one query that answers many signals of many products at once.

Every row of the answer carries the labels `kortex_term` and `kortex_product`, and where a term answers
several signals the metric's name.
"""

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from adapters.observe.query_size import MOST_BYTES, MOST_NAME_BYTES, OR_BYTES, bytes_of, runs
from tools.product_names import POD_TAIL
from tools.signals import Combine, Discovered, Place, Signal, rate_window_s

PRODUCT: Final = "kortex_product"
TERM: Final = "kortex_term"
_USUAL_S: Final = (300.0, 120.0, 60.0, 30.0, 20.0, 15.0, 10.0, 5.0, 1.0)
QUANTILE: Final = "0.99"
_MOST_TERMS: Final = 9999  # for the digits of a number
_PLAIN_NAME: Final = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*", re.ASCII)
_QUOTABLE: Final = re.compile(r"[^\s\"'\\{},=$]+")
_PLAIN_METRIC: Final = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*", re.ASCII)
_SPECIAL: Final = re.compile(r"[\\.+*?()|\[\]{}^$]")  # in RE2


@dataclass(frozen=True, slots=True)
class Group:
    """Products found the same way: by the same label."""

    label: str
    pods: bool
    namespace: str
    namespace_label: str
    values: Mapping[str, str]  # the label's value, or what a pod's name begins with, to the product

    def matchers(self) -> str:
        tail = POD_TAIL if self.pods else ""
        names = "|".join(literal(value) for value in sorted(self.values))
        mine = f"{label_name(self.label)}=~{quoted(f'(?:{names}){tail}')}"
        if not self.namespace:
            return mine
        return f"{mine},{label_name(self.namespace_label)}={quoted(self.namespace)}"

    def named(self, selected: str) -> str:
        """An instant vector with the product's place in `kortex_product`."""
        shape = f"(.+?){POD_TAIL}" if self.pods else "(.+)"
        return (
            f'label_replace({selected}, "{PRODUCT}", "$1", {quoted(self.label)}, {quoted(shape)})'
        )


@dataclass(frozen=True, slots=True)
class Term:
    """A part of a query, with the signals that it answers: by metric, or one for all ("")."""

    promql: str
    group: Group
    signals: Mapping[str, Signal]

    def marked(self, number: int) -> str:
        return f'label_replace({self.promql}, "{TERM}", "{number}", "", "")'

    @property
    def size(self) -> int:
        """Bytes of a query that it takes."""
        return bytes_of(self.marked(_MOST_TERMS)) + OR_BYTES


def matchers_of(found: Discovered, metric: str, product: str) -> list[str]:
    """How a product's series of a metric are selected, by each label that they are found by."""
    one = next((each for each in found.metrics if each.name == metric), None)
    places = {product: one.places.get(product, ())} if one is not None else {}
    return [group.matchers() for group in groups_of(places)]


def groups_of(
    places: Mapping[str, Sequence[Place]], products: frozenset[str] | None = None
) -> list[Group]:
    """Products grouped by how they are found; all products if none are named.

    A group is small enough for a matcher, and holds all similar places of a product.
    """
    found: dict[tuple[str, bool, str, str], dict[str, str]] = defaultdict(dict)
    for product, at in places.items():
        if products is not None and product not in products:
            continue
        for place in at:
            key = (place.label, place.pods, place.namespace, place.namespace_label)
            found[key][place.value] = product
    return [Group(*key, some) for key, values in sorted(found.items()) for some in _small(values)]


def _small(values: Mapping[str, str]) -> Iterator[Mapping[str, str]]:
    by_product: dict[str, list[str]] = defaultdict(list)
    for value, product in values.items():
        by_product[product].append(value)
    for run in runs(by_product.values(), names_size, MOST_NAME_BYTES):
        yield {value: values[value] for alike in run for value in alike}


def terms_of(
    signals: Sequence[Signal], products: frozenset[str] | None, step_s: float
) -> list[Term]:
    """Gauges with the same reading share a term; every other signal has one per group."""
    alike: dict[tuple[str, Combine], tuple[Group, dict[str, Signal]]] = {}
    terms: list[Term] = []
    for signal in signals:
        for group in groups_of(signal.places, products):
            if signal.reading == "gauge" and not signal.where:
                key = (group.matchers(), signal.combine)
                alike.setdefault(key, (group, {}))[1][signal.metric] = signal
            else:
                terms.append(Term(expression(signal, group, step_s), group, {"": signal}))
    for (_matchers, combine), (group, members) in alike.items():
        terms.extend(
            _gauges(group, combine, {name: members[name] for name in run})
            for run in runs(members, lambda name: names_size([name]), MOST_NAME_BYTES)
        )
    return terms


def joined(terms: Sequence[Term]) -> str:
    return joined_by_or([term.marked(number) for number, term in enumerate(terms)])


def joined_by_or(parts: Sequence[str]) -> str:
    """A balanced tree, for `or` compares its sides at every step. At least one part."""
    while len(parts) > 1:
        pairs = [
            f"({left} or {right})" for left, right in zip(parts[::2], parts[1::2], strict=False)
        ]
        parts = [*pairs, *(parts[-1:] if len(parts) % 2 else ())]
    return parts[0]


def expression(signal: Signal, group: Group, step_s: float) -> str:
    """One signal of one group as an instant vector with `kortex_product`."""
    window = window_of(step_s, signal.spacing_s)
    of = _Selected(signal, group, window)
    match signal.reading:
        case "gauge":
            return of.combined(signal.combine, of.gauge(signal.metric, signal.where))
        case "rate" | "increase" | "changes":
            inner = of.over_time(signal.reading, signal.metric, signal.where)
            return of.combined(signal.combine, inner)
        case "quantile":
            buckets = group.named(of.over_time("rate", f"{signal.metric}_bucket", signal.where))
            return f"histogram_quantile({QUANTILE}, sum by (le, {PRODUCT}) ({buckets}))"
        case "mean":
            total = of.combined("sum", of.over_time("rate", f"{signal.metric}_sum", signal.where))
            count = of.combined("sum", of.over_time("rate", f"{signal.metric}_count", signal.where))
            return f"({total} / ({count} > 0))"
        case "ratio":
            part = of.combined("sum", of.gauge(signal.metric, signal.where))
            whole = of.combined("sum", of.gauge(signal.over, signal.over_where))
            return f"({part} / ({whole} > 0))"
        case "rate_ratio":
            part = of.combined("sum", of.over_time("rate", signal.metric, signal.where))
            whole = of.combined("sum", of.over_time("rate", signal.over, signal.over_where))
            # A failure that never happened has no series: that is nought, not unknown.
            return f"(({part} or {whole} * 0) / ({whole} > 0))"


def counted_metric(signal: Signal) -> str:
    return {"quantile": f"{signal.metric}_bucket", "mean": f"{signal.metric}_count"}.get(
        signal.reading, signal.metric
    )


def window_of(step_s: float, spacing_s: float | None) -> str:
    return f"{math.ceil(rate_window_s(step_s, spacing_s))}s"


def spacing_of(window_s: float, samples: float) -> float:
    """The seconds between samples, from their number in a window.

    Scrapes jitter, so the nearest usual setting counts.
    """
    # A window of k intervals holds k samples, and one more where it counts both of its ends.
    near = (usual for usual in _USUAL_S if abs(window_s / usual - samples) <= 1 + samples / 20)
    return next(near, window_s / samples)


def literal(value: str) -> str:
    """A regular expression that matches this alone; shorter than Python's, which escapes a dash."""
    return _SPECIAL.sub(r"\\\g<0>", value)


def names_size(names: Iterable[str]) -> int:
    """Bytes that they take in a matcher of several."""
    return sum(bytes_of(quoted(literal(name))) for name in names)


def is_plain_name(name: str) -> bool:
    """Whether every server reads the name without quotes, as that of a label."""
    return _PLAIN_NAME.fullmatch(name) is not None


def is_quotable(name: str) -> bool:
    """Whether Kortex writes the name into a query: `$` is a reference in label_replace."""
    return name.isprintable() and _QUOTABLE.fullmatch(name) is not None


def label_name(name: str) -> str:
    """A label as a query names it: quoted where it holds other signs than letters, digits and `_`.

    Prometheus 3 reads quoted names (https://prometheus.io/docs/guides/utf8/); older servers answer 400.
    """
    return name if is_plain_name(name) else quoted(name)


def quoted(value: str) -> str:
    """A PromQL string literal; the value stays inside it."""
    escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


@dataclass(frozen=True, slots=True)
class _Selected:
    signal: Signal
    group: Group
    window: str

    def gauge(self, metric: str, where: str) -> str:
        return selector(metric, self.group.matchers(), where)

    def over_time(self, function: str, metric: str, where: str) -> str:
        return f"{function}({self.gauge(metric, where)}[{self.window}])"

    def combined(self, combine: Combine, inner: str) -> str:
        return f"{combine} by ({PRODUCT}) ({self.group.named(inner)})"


def selector(metric: str, *matchers: str) -> str:
    """By a name that may hold dots, as OpenTelemetry's do where they are kept."""
    name = f"__name__={quoted(metric)}"
    return "{" + ",".join(part for part in (name, *matchers) if part) + "}"


def selected(metric: str, matchers: Sequence[str]) -> str:
    """The same with a plain name before the braces, as people write it."""
    if _PLAIN_METRIC.fullmatch(metric):
        return f"{metric}{{{','.join(matchers)}}}"
    return selector(metric, *matchers)


def any_of(metrics: Iterable[str]) -> str:
    return f"__name__=~{quoted('|'.join(literal(name) for name in sorted(metrics)))}"


def _gauges(group: Group, combine: Combine, members: Mapping[str, Signal]) -> Term:
    selected = "{" + f"{any_of(members)},{group.matchers()}" + "}"
    named = group.named(selected)
    return Term(f"{combine} by (__name__, {PRODUCT}) ({named})", group, dict(members))


def chunks(terms: Sequence[Term], points_each: int, most_points: int) -> Iterator[list[Term]]:
    """Terms that fit one request (a term at least): the points of its answer, and its own bytes."""

    def points(term: Term) -> int:
        return points_each * len(term.group.values) * len(term.signals)

    for few in runs(terms, points, most_points):
        yield from runs(few, lambda term: term.size, MOST_BYTES)
