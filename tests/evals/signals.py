"""What simulated services emit: counters, histograms and gauges with noise, log lines, spans."""

import math
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from pydantic import JsonValue

Row = dict[str, JsonValue]
Of = Callable[[float], float]  # of the minutes before now

NOW = datetime(2026, 11, 20, 14, 0, tzinfo=UTC)
BOUNDS = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5)


def since(minutes: float, usual: float, then: float) -> Of:
    """`usual`, and `then` from so many minutes before now on."""
    return lambda before: then if before <= minutes else usual


@dataclass(frozen=True)
class Stack:
    """What one case emits. `length` minutes of it, a sample each `every` minutes."""

    seed: str
    length: int = 160
    every: int = 1
    series: list[Row] = field(default_factory=list)
    lines: list[Row] = field(default_factory=list)
    spans: list[Row] = field(default_factory=list)

    def noise(self, *of: str) -> random.Random:
        """The same each time."""
        return random.Random("/".join((self.seed, *of)))

    def minutes(self) -> Sequence[int]:
        """Before now, oldest first."""
        return range(self.length, -1, -self.every)

    def counter(
        self,
        name: str,
        labels: Mapping[str, str],
        rate: Of,
        share: float = 0.05,
        *,
        until: float = 0.0,
    ) -> None:
        """Grows by `rate` a second, with that much noise, up to `until` minutes before now."""
        noise, total = self.noise(name, *labels.values()), 0.0
        points: list[tuple[int, float]] = []
        for before in self.minutes():
            total += max(0.0, rate(before) * (1 + noise.gauss(0, share))) * 60 * self.every
            points.append((before, round(total)))
        self._add(name, labels, [point for point in points if point[0] >= until])

    def gauge(
        self,
        name: str,
        labels: Mapping[str, str],
        value: Of,
        share: float = 0.05,
        *,
        until: float = 0.0,
        most: float = math.inf,
    ) -> None:
        """Is `value`, with that much noise and never above `most`, up to `until` minutes before now."""
        noise = self.noise(name, *labels.values())
        points: list[tuple[int, float]] = []
        for before in self.minutes():
            one = min(most, value(before) * max(0.0, 1 + noise.gauss(0, share)))
            points.append((before, float(f"{one:.4g}")))
        self._add(name, labels, [point for point in points if point[0] >= until])

    def histogram(
        self, name: str, labels: Mapping[str, str], rate: Of, median: Of, spread: float = 0.6
    ) -> None:
        """Log-normal durations around a median in seconds, in the buckets of BOUNDS."""
        noise = self.noise(name, *labels.values())
        buckets = [0.0] * (len(BOUNDS) + 1)
        points: list[list[tuple[int, float]]] = [[] for _ in buckets]
        for before in self.minutes():
            requests = max(0.0, rate(before) * (1 + noise.gauss(0, 0.05))) * 60 * self.every
            middle = median(before) * (1 + noise.gauss(0, 0.03))
            for at, bound in enumerate([*BOUNDS, math.inf]):
                deviations = (math.log(bound) - math.log(middle)) / spread
                buckets[at] += requests * (1 + math.erf(deviations / math.sqrt(2))) / 2
                points[at].append((before, round(buckets[at])))
        for le, of_bound in zip([*map(str, BOUNDS), "+Inf"], points, strict=True):
            self._add(f"{name}_bucket", {**labels, "le": le}, of_bound)

    def log(
        self,
        labels: Mapping[str, str],
        level: str,
        text: str,
        times: Of,
        trace: str = "",
    ) -> None:
        """So many lines a minute; `{n}` in the text is another number in each."""
        noise = self.noise(text, *labels.values())
        for before in self.minutes():
            expected = times(before)
            count = int(expected) + (noise.random() < expected % 1)
            for _ in range(count):
                at = NOW - timedelta(minutes=before) + timedelta(seconds=-noise.random() * 59)
                row: Row = {
                    "ts_ns": round(at.timestamp()) * 10**9 + noise.randrange(10**9),
                    "labels": {**labels, "level": level},
                    "line": text.replace("{n}", str(noise.randrange(1000, 9999))),
                }
                self.lines.append({**row, "trace_id": trace} if trace else row)

    def request(self, before: float, path: Sequence[tuple[str, str, float, bool]]) -> None:
        """A trace of nested calls: service, operation, own seconds, whether it fails."""
        noise = self.noise("trace", str(before))
        trace = f"{noise.getrandbits(128):032x}"
        start = (NOW - timedelta(minutes=before)).timestamp()
        left = sum(own for _, _, own, _ in path) * (1 + abs(noise.gauss(0, 0.05)))
        parent: str | None = None
        for service, operation, own, failed in path:
            span = f"{noise.getrandbits(64):016x}"
            self.spans.append(
                {
                    "trace_id": trace,
                    "span_id": span,
                    "parent_id": parent,
                    "service": service,
                    "name": operation,
                    "start_ns": round(start * 1e6) * 1000,
                    "end_ns": round((start + left) * 1e6) * 1000,
                    "status": "error" if failed else "ok",
                }
            )
            parent, start, left = span, start + own / 2, max(0.001, left - own)

    def _add(
        self, name: str, labels: Mapping[str, str], points: Sequence[tuple[int, float]]
    ) -> None:
        now = round(NOW.timestamp())
        self.series.append(
            {
                "name": name,
                "labels": dict(labels),
                "points": [[now - before * 60, value] for before, value in points],
            }
        )
