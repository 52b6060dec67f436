"""What to say when a query found nothing, or series that end too early."""

import difflib
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Final

from tools.capabilities import Interval, MetricQuery, Series

_SHOWN_NAMES: Final = 30
_SHOWN_SERIES: Final = 3
# Backends carry a sample forward for 5 minutes, so a point that is missing at the end means data
# older than that; VictoriaMetrics hides the newest 30 s.
_LOOK_BACK: Final = timedelta(minutes=5)
_TOLERANCE: Final = timedelta(seconds=60)


def absence_note(
    query: MetricQuery, product_label: str, metrics: Sequence[str], products: Sequence[str]
) -> str:
    """Why there are no series. `metrics` are the product's, `products` are those there are."""
    if query.metric in metrics:
        labels = ", ".join(f"{name}={value}" for name, value in sorted(query.labels.items()))
        reason = f"no series has {labels}" if labels else "it has no samples in this time range"
        return f"metric {query.metric} exists for product {query.product}, but {reason}"
    if metrics:
        return (
            f"metric {query.metric} does not exist for product {query.product}; "
            f"it has: {_nearest(query.metric, metrics)}"
        )
    known = f"; products are: {_nearest(query.product, products)}" if products else ""
    by = f"{product_label}={query.product}" if product_label else f"the product {query.product}"
    return f"no metric has {by} in this time range{known}"


def staleness_notes(
    series: Sequence[Series], interval: Interval, step_s: float, now: datetime
) -> Iterator[str]:
    """Names the series whose last sample lies more than 5 minutes before the end of the range."""
    step = timedelta(seconds=step_s)
    end = min(interval.end, now)
    tolerance = max(step, _TOLERANCE)
    stale = [one for one in series if end - one.points[-1][0] > tolerance]
    for one in stale[:_SHOWN_SERIES]:
        last = one.points[-1][0]
        labels = ", ".join(f"{name}={value}" for name, value in one.labels.items())
        yield (
            f"no recent samples: {{{labels}}} ends at {last.isoformat()}, "
            f"{_minutes(end - last)} before the end of the range "
            f"(its last sample may be {_minutes(_LOOK_BACK)} older still)"
        )
    if len(stale) > _SHOWN_SERIES:
        yield f"{len(stale) - _SHOWN_SERIES} more series end early"


def _nearest(wanted: str, names: Sequence[str]) -> str:
    """The names, the most similar first, cut with a count."""
    near = difflib.get_close_matches(wanted, names, n=5, cutoff=0.5)
    ordered = [*near, *(name for name in names if name not in near)]
    rest = len(ordered) - _SHOWN_NAMES
    return ", ".join(ordered[:_SHOWN_NAMES]) + (f" and {rest} more" if rest > 0 else "")


def _minutes(span: timedelta) -> str:
    return f"{span.total_seconds() / 60:.0f} min"
