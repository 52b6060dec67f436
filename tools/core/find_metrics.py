"""core__find_metrics: what can be read of a product, by role and by words."""

from collections.abc import Sequence
from typing import Annotated

from pydantic import Field

from tools.capabilities import CallContext, Capabilities
from tools.contract import ToolInput, ToolOutput
from tools.core.arguments import ProductOrAny, TimeRangeText
from tools.core.built_in import bound, entry_of, read_only
from tools.output import clean_text
from tools.product_names import ANY_PRODUCT
from tools.products import ProductScope, within
from tools.signals import ROLES, Discovered, Role, Signal
from tools.timerange import parse_time_range

MAX_FOUND = 60
MAX_OTHER_NAMES = 60


class FindInput(ToolInput):
    product: ProductOrAny
    role: Role | None = None
    words: Annotated[str, Field(max_length=200, description="Parts of names")] = ""
    time_range: TimeRangeText = "last 1h"


class FoundMetric(ToolOutput):
    """One thing to read. `name` is for get_metrics and compare_to_baseline, `reading` says how it
    comes: rate, quantile, ratio, gauge. `products` only when more than one was asked about.
    """

    name: str
    role: str
    reading: str
    unit: str | None = None
    metric: str | None = None
    labels: str | None = None
    samples_every_s: float | None = None
    products: list[str] | None = None


class FindOutput(ToolOutput):
    """The most important of each role first.

    `names` are further metrics without a meaning of their own.
    """

    range: str
    found: list[FoundMetric]
    names: list[str] | None = None
    without: list[str] | None = None
    truncated: bool
    notes: list[str] | None = None


class FindMetrics:
    contract = read_only(
        "find_metrics",
        "The metrics that a product has, with role, unit and reading. Use before guessing a name.",
        (FindInput, FindOutput),
        "metrics",
        ProductScope(("product",), narrows=True),
        "investigate",
    )

    async def execute(
        self, arguments: FindInput, call: CallContext, caps: Capabilities
    ) -> FindOutput:
        when = parse_time_range(arguments.time_range, call.now)
        all_of_them = arguments.product == ANY_PRODUCT
        products = call.products if all_of_them else (arguments.product,)
        found = await bound(caps.metrics, "metrics").discover(products, when.interval)
        fitting = [signal for signal in _ordered(found, call) if _fits(signal, arguments)]
        names = _other_names(found, arguments)
        notes = [clean_text(note) for note in found.notes]
        notes += when.notes
        if not found.signals:
            notes.append("no label of any metric holds this name; PromQL can look")
        return FindOutput(
            range=when.text,
            found=[_entry(one, call, all_of_them) for one in fitting[:MAX_FOUND]],
            names=names[:MAX_OTHER_NAMES] or None,
            without=[clean_text(one) for one in found.without] or None,
            truncated=len(fitting) > MAX_FOUND or len(names) > MAX_OTHER_NAMES,
            notes=notes or None,
        )

    def summarise(self, output: FindOutput, arguments: FindInput) -> str:
        roles = list(dict.fromkeys(one.role for one in output.found))
        known = ", ".join(roles[:6]) or "none"
        noun = "metric" if len(output.found) == 1 else "metrics"
        return f"{len(output.found)} {noun} of {arguments.product}: {known}"


def _ordered(found: Discovered, call: CallContext) -> Sequence[Signal]:
    there = [one for one in found.signals if any(within(call, name) for name in one.places)]
    return sorted(there, key=lambda one: (ROLES.index(one.role), one.rank, one.name))


def _fits(signal: Signal, arguments: FindInput) -> bool:
    if arguments.role is not None and signal.role != arguments.role:
        return False
    return _has_words(f"{signal.name} {signal.metric} {signal.role}", arguments.words)


def _has_words(text: str, words: str) -> bool:
    lowered = text.lower()
    return not words.strip() or any(word.lower() in lowered for word in words.split())


def _other_names(found: Discovered, arguments: FindInput) -> list[str]:
    if not arguments.words.strip() or arguments.role is not None:
        return []
    told = {one.metric for one in found.signals} | {one.name for one in found.signals}
    names = [one.name for one in found.metrics if one.name not in told]
    return [clean_text(name) for name in names if _has_words(name, arguments.words)]


def _entry(signal: Signal, call: CallContext, several: bool) -> FoundMetric:
    labels = {place.label for places in signal.places.values() for place in places}
    products = sorted(name for name in signal.products if within(call, name))
    return entry_of(
        FoundMetric,
        signal,
        metric=signal.metric if signal.metric != signal.name else None,
        labels=", ".join(sorted(labels)) or None,
        samples_every_s=signal.spacing_s,
        products=[clean_text(name) for name in products] if several else None,
    )
