"""Everything one incident left behind, computed where and when it is asked for.

The same (scenario, anchor, seed) gives identical data, in any order of asking.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import lru_cache

from adapters.recorded.simulator import requests
from adapters.recorded.simulator.loglines import lines_in, lines_of, versions_at
from adapters.recorded.simulator.requests import Request, trace_of
from adapters.recorded.simulator.scenario import Scenario
from adapters.recorded.simulator.series import STEP_S, Moments, Values, metrics_of
from adapters.recorded.simulator.topology import BY_NAME, PRODUCTS
from tools.capabilities import Deploy, LogLine, Trace

BEFORE = timedelta(hours=24)
AFTER = timedelta(hours=6)
_STEPS = (BEFORE + AFTER) // timedelta(seconds=STEP_S)

# Limits of the cache: some 10 MB when someone reads the logs of a whole day. Errors have none: a
# dataset has 21,600 minutes of all products.
_REMEMBERED_REQUEST_MINUTES = 512
_REMEMBERED_TOLD_MINUTES = 8  # of what requests left in the logs
_REMEMBERED_LINE_MINUTES = 4096


class Dataset:
    """One incident from 24 h before its anchor to 6 h after it; the fault stays until it is cured."""

    def __init__(self, scenario: Scenario, anchor: datetime, seed: int) -> None:
        self.products = PRODUCTS
        self._seed = f"{seed}-{scenario.name}"
        self.play(scenario, anchor)

    def play(self, scenario: Scenario, anchor: datetime) -> None:
        """Replace the scenario. Readers of the dataset see it at their next question."""
        self.scenario = scenario
        self.anchor = anchor
        self.start = anchor - BEFORE
        self.end = anchor + AFTER
        self._start_s = int(self.start.timestamp())
        self._moments = Moments(scenario.fault, self._start_s)
        self._values = lru_cache(maxsize=128)(self._values_of)
        self._samples = lru_cache(maxsize=128)(self._samples_of)
        self._requests = lru_cache(maxsize=_REMEMBERED_REQUEST_MINUTES)(self._requests_in)
        self._told = lru_cache(maxsize=_REMEMBERED_TOLD_MINUTES)(self._told_in)
        self._errors: dict[tuple[str, int], Sequence[LogLine]] = {}
        self._lines = lru_cache(maxsize=_REMEMBERED_LINE_MINUTES)(self._lines_in)

    def deploys(self, now: datetime, product: str = "") -> Sequence[Deploy]:
        """The deploys until `now`, newest first: all, or those of one product."""
        until = (one for one in self.scenario.deploys if one.at <= now)
        mine = (one for one in until if product in ("", one.product))
        return sorted(mine, key=lambda one: one.at, reverse=True)

    def metrics(self, product: str) -> Sequence[str]:
        return metrics_of(BY_NAME[product])

    def value(self, product: str, metric: str, at: datetime) -> float | None:
        """The last sample at or before an instant; None outside the dataset."""
        return next(
            (value for _at_s, value in self.points(product, metric, [at.timestamp()])), None
        )

    def points(
        self, product: str, metric: str, instants_s: Iterable[float]
    ) -> Sequence[tuple[float, float]]:
        """Each instant (seconds since the epoch) of the dataset with the last sample until then."""
        start_s = self._start_s
        there = [
            (at_s, step)
            for at_s in instants_s
            if 0 <= (step := int(at_s - start_s) // STEP_S) < _STEPS
        ]
        return self._values(product, metric).at(there)

    def samples(self, product: str, metric: str, now: datetime) -> Sequence[tuple[float, float]]:
        """Every sample until `now`, as (seconds since the epoch, value)."""
        count = int(now.timestamp() - self._start_s) // STEP_S + 1
        return self._samples(product, metric, max(0, min(count, _STEPS)))

    def minutes(self, start: datetime, end: datetime) -> range:
        """The minutes (since the epoch) of the dataset that [start, end) touches, oldest first."""
        first_s = max(start, self.start).timestamp()
        last_s = min(end, self.end).timestamp()
        return range(int(first_s // 60), int(-(-last_s // 60)))

    def lines(self, product: str, minute: int) -> Sequence[LogLine]:
        """A product's lines of a minute (since the epoch), newest first."""
        return self._lines(product, minute)

    def errors(self, product: str, minute: int) -> Sequence[LogLine]:
        """Those of its lines that are errors, remembered as long as it plays: they are few."""
        if (product, minute) not in self._errors:
            self._lines_in(product, minute)  # unremembered: a day's would drive the newest out
        return self._errors[product, minute]

    def trace(self, trace_id: str) -> Trace | None:
        minute = requests.minute_of(trace_id)
        if minute is None or minute not in self.minutes(self.start, self.end):
            return None
        asked = (one for one in self._requests(minute) if one.trace_id == trace_id)
        return next(self._traced(minute, asked), None)

    def traces(self, minute: int) -> Iterator[Trace]:
        return self._traced(minute, self._requests(minute))

    def _traced(self, minute: int, kept: Iterable[Request]) -> Iterator[Trace]:
        versions = versions_at(self.scenario, minute * 60.0)
        return (trace_of(request, self.scenario.fault, versions) for request in kept)

    def _values_of(self, product: str, metric: str) -> Values:
        return Values(self._seed, BY_NAME[product], metric, self._moments)

    def _samples_of(self, product: str, metric: str, count: int) -> Sequence[tuple[float, float]]:
        instants = (float(self._start_s + number * STEP_S) for number in range(count))
        return self.points(product, metric, instants)

    def _requests_in(self, minute: int) -> Sequence[Request]:
        return requests.requests_in(self._seed, minute, self.scenario.fault)

    def _lines_in(self, product: str, minute: int) -> Sequence[LogLine]:
        # A request that began in the minute before may end, and be logged, in this one.
        told = [line for at in (minute - 1, minute) for line in self._told(at).get(product, ())]
        lines = lines_in(self._seed, self.scenario, BY_NAME[product], minute, told)
        self._errors[product, minute] = tuple(line for line in lines if line.level == "error")
        return lines

    def _told_in(self, minute: int) -> Mapping[str, Sequence[LogLine]]:
        return lines_of(self._requests(minute))


def floored_to_minute(now: datetime) -> datetime:
    """The anchor for data that looks live."""
    return now.astimezone(UTC).replace(second=0, microsecond=0)
