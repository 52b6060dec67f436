"""What a metric is on Prometheus, VictoriaMetrics and Mimir, and how often it is sampled.

Types come from the metadata API where the backend has one, else from the names beside it.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Final

from adapters.observe.backend import Backend
from adapters.observe.conventions import SHIPPED, Conventions
from adapters.observe.instants import seconds_text
from adapters.observe.prometheus_answer import metadata_of, names_of, vector_of
from adapters.observe.remembered import Remembered
from adapters.observe.signal_promql import literal, quoted, spacing_of
from tools.capabilities import Interval
from tools.errors import UpstreamFailed
from tools.signals import MetricType

SPACING_WINDOW: Final = timedelta(minutes=20)
_TYPES_LAST: Final = timedelta(minutes=10)
_PARTS: Final = ("_bucket", "_sum", "_count")
_KINDS: Final[Mapping[str, MetricType]] = {
    "counter": "counter",
    "gauge": "gauge",
    "histogram": "histogram",
    "gaugehistogram": "histogram",
    "summary": "summary",
}


class Kinds:
    """`scrape_s` is how often targets are scraped, None: it is learned from the data.

    `conventions` say what names mean where the backend does not say.
    """

    def __init__(
        self,
        backend: Backend,
        scrape_s: float | None = None,
        conventions: Conventions = SHIPPED,
    ) -> None:
        self._backend = backend
        self._types: Remembered[Mapping[str, tuple[MetricType, str]]] = Remembered(_TYPES_LAST)
        self._spacing: Remembered[float | None] = Remembered(_TYPES_LAST)
        self.scrape_s = scrape_s
        self.conventions = conventions

    async def types(self) -> Mapping[str, tuple[MetricType, str]]:
        """Type and unit by name. A backend that knows none is no failure."""
        return await self._types.get("", self._ask_types)

    async def is_counter(self, metric: str, interval: Interval) -> bool:
        """Whether only its growth says anything. Raises UpstreamFailed, CapabilityUnavailable."""
        types = await self.types()
        kind = types.get(metric, ("", ""))[0]
        if kind:
            return kind == "counter"
        part = next((one for one in _PARTS if metric.endswith(one)), "")
        if metric.endswith("_total") or part == "_bucket":
            return True
        base = metric.removesuffix(part)
        if part:
            family = types.get(base, ("", ""))[0]
            return family in ("histogram", "summary") or await self._has_siblings(base, interval)
        return self.conventions.of(metric).type == "counter"

    async def spacing(self, selector: str, at: datetime) -> float | None:
        """Seconds between two samples of the selected series; None without any."""
        if self.scrape_s is not None:
            return self.scrape_s
        about = int(at.timestamp() // _TYPES_LAST.total_seconds())
        return await self._spacing.get((selector, about), lambda: self._measure(selector, at))

    async def _measure(self, selector: str, at: datetime) -> float | None:
        window_s = SPACING_WINDOW.total_seconds()
        form = {
            "query": f"max(count_over_time({selector}[{window_s:.0f}s]))",
            "time": seconds_text(at),
        }
        try:
            rows = vector_of(await self._backend.post_form("/api/v1/query", form))
        except UpstreamFailed:
            return None
        counts = [count for _labels, count in rows if count > 1]
        return spacing_of(window_s, max(counts)) if counts else None

    async def _has_siblings(self, base: str, interval: Interval) -> bool:
        params = {
            "match[]": "{__name__=~" + quoted(f"{literal(base)}_(bucket|sum|count)") + "}",
            "start": seconds_text(interval.start),
            "end": seconds_text(interval.end),
        }
        answer = await self._backend.get("/api/v1/label/__name__/values", params)
        return len(names_of(answer)) > 1

    async def _ask_types(self) -> Mapping[str, tuple[MetricType, str]]:
        try:
            found = metadata_of(await self._backend.get("/api/v1/metadata", {}))
        except UpstreamFailed:
            return {}
        return {name: (_KINDS.get(kind, ""), unit) for name, (kind, unit) in found.items()}
