"""What every metrics backend shares: the choice of step, and the unit that a name implies."""

import math
import re
from collections.abc import Collection
from typing import Final

from tools.capabilities import Interval
from tools.signals import MetricType

HISTOGRAM_PARTS: Final = ("_bucket", "_sum", "_count")
QUANTILE_NAME: Final = re.compile(r"(.+)_p(\d\d|999)")

TARGET_POINTS = 300  # enough to see a shape; a chat answer shows no more
MAX_STEPS = 11_000  # Prometheus and Mimir refuse (end - start) / step above it
_UNITS = {
    "seconds": "seconds",
    "milliseconds": "milliseconds",
    "bytes": "bytes",
    "ratio": "ratio",
    "percent": "percent",
    "celsius": "celsius",
    "volts": "volts",
    "joules": "joules",
    "meters": "meters",
}
_QUANTILE = re.compile(r"_(p\d{1,3}|avg|mean|max|min|sum|bucket)$")


def step_for(interval: Interval, asked_s: float | None, finest_s: float) -> tuple[float, str]:
    range_s = (interval.end - interval.start).total_seconds()
    if asked_s is None:
        return float(max(finest_s, math.ceil(range_s / TARGET_POINTS))), ""
    least_s = float(max(finest_s, math.ceil(range_s / MAX_STEPS)))
    if asked_s >= least_s:
        return float(asked_s), ""
    return least_s, f"step raised from {asked_s:g} s to {least_s:g} s, the finest possible here"


def unit_read(metric: str, *, is_counter: bool) -> str | None:
    """Of the values as they arrive: of a counter that is not called `_total`, its rate's."""
    if not is_counter or metric.endswith("_total"):
        return unit_of(metric)
    counts = metric.endswith(("_count", "_bucket"))
    return "per second" if counts else unit_of(f"{metric}_total")


def is_counter_by_name(metric: str, names: Collection[str], typed: MetricType) -> bool:
    """What its suffix says, with the parts of a histogram beside it among `names`.

    `typed` is what conventions say of the name, for one that says nothing itself.
    """
    part = next((one for one in HISTOGRAM_PARTS if metric.endswith(one)), "")
    if metric.endswith("_total") or part == "_bucket":
        return True
    if part:
        base = metric.removesuffix(part)
        return sum(f"{base}{one}" in names for one in HISTOGRAM_PARTS) > 1
    return typed == "counter"


def unit_of(metric: str) -> str | None:
    """The unit in which the values of a metric arrive, None when its name does not say.

    Exporters almost never fill the metadata's unit, so the name's suffix is what there is. Counters
    (`*_total`) are read as rates per second.
    """
    if metric.endswith("_per_second"):
        return "per second"
    if metric.endswith("_total"):
        counted = _UNITS.get(metric.removesuffix("_total").rsplit("_", 1)[-1])
        return f"{counted} per second" if counted else "per second"
    return _UNITS.get(_QUANTILE.sub("", metric).rsplit("_", 1)[-1])
