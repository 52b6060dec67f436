"""The simulated shop's data stay equal, so that it can be made faster safely."""

import hashlib
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from operator import attrgetter

import pytest

from adapters.recorded.simulator.dataset import Dataset
from adapters.recorded.simulator.scenario import INCIDENTS

ANCHOR = datetime(2026, 11, 21, 14, 3, tzinfo=UTC)
LINE = attrgetter("ts_ns", "level", "host", "message", "trace_id")
SPAN = attrgetter(
    "span_id", "parent_id", "service", "operation", "start_us", "duration_us", "status", "message"
)
AROUND = (ANCHOR - timedelta(minutes=40), ANCHOR + timedelta(minutes=5))

# What each of an incident's data came to when this was written.
SERIES = {
    "bad-deploy": "e94009bf2ac3c99e",
    "saturated-dependency": "43ffc01e2d5ff345",
    "quiet-day": "4a010d0292ab84c1",
}
LINES = {
    "bad-deploy": "9b59bdaa5d680fc6",
    "saturated-dependency": "885a7bd79bfd8313",
    "quiet-day": "e61e45c055657f26",
}
TRACES = {
    "bad-deploy": "b58a49480186f300",
    "saturated-dependency": "4fcb81e3b03052a3",
    "quiet-day": "6aef03932b8bcfc8",
}


@pytest.fixture(params=INCIDENTS)
def data(request: pytest.FixtureRequest) -> Dataset:
    return Dataset(INCIDENTS[request.param](ANCHOR), ANCHOR, 7)


def digest(found: Iterable[object]) -> str:
    return hashlib.sha256("\n".join(map(str, found)).encode()).hexdigest()[:16]


def test_series_are_unchanged(data: Dataset) -> None:
    start_s, end_s = data.start.timestamp(), data.end.timestamp()
    instants_s = [start_s + number * 420.0 for number in range(int((end_s - start_s) / 420.0))]
    # To nine digits: the last bit of a cosine differs between machines.
    found = digest(
        f"{product} {metric} {at_s:.0f} {value:.9g}"
        for product in data.products
        for metric in data.metrics(product)
        for at_s, value in data.points(product, metric, instants_s)
    )
    assert found == SERIES[data.scenario.name]


def test_lines_are_unchanged(data: Dataset) -> None:
    lines = (
        line
        for minute in data.minutes(*AROUND)
        for product in data.products
        for line in data.lines(product, minute)
    )
    assert digest(map(LINE, lines)) == LINES[data.scenario.name]


def test_traces_are_unchanged(data: Dataset) -> None:
    traces = [trace for minute in data.minutes(*AROUND) for trace in data.traces(minute)]
    found = digest((SPAN(span), span.tags) for trace in traces for span in trace.spans)
    assert found == TRACES[data.scenario.name]
    assert [data.trace(trace.trace_id) for trace in traces] == traces


def test_errors_are_the_error_lines(data: Dataset) -> None:
    other = Dataset(data.scenario, data.anchor, 7)
    places = [(name, minute) for minute in data.minutes(*AROUND) for name in data.products]
    found = {place: list(data.errors(*place)) for place in reversed(places)}
    lines = {place: other.lines(*place) for place in places}
    errors = {place: [one for one in of if one.level == "error"] for place, of in lines.items()}
    assert found == errors
    assert {place: list(other.errors(*place)) for place in places} == errors
