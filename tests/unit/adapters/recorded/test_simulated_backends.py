"""Simulated backends behave as real ones do, and never show the future."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest

from adapters.observe.cursor import UnsealedCodec
from adapters.recorded.simulator.backends import SimulatedBackends
from adapters.recorded.simulator.incidents import RecordedIncidents
from tests.fakes.set_clock import SetClock
from tools.capabilities import Interval, LogLine, LogQuery, MetricQuery
from tools.errors import InvalidArguments

NOW = datetime(2026, 11, 21, 14, 3, 20, tzinfo=UTC)
HALF_HOUR = Interval(NOW - timedelta(minutes=30), NOW)
DAY = Interval(NOW - timedelta(hours=24), NOW)
P99 = "http_request_duration_seconds_p99"


@pytest.fixture
def clock() -> SetClock:
    return SetClock(NOW)


@pytest.fixture
def incidents(clock: SetClock) -> RecordedIncidents:
    return RecordedIncidents(clock, UnsealedCodec())


@pytest.fixture
def noisy(incidents: RecordedIncidents) -> SimulatedBackends:
    return incidents.of("saturated-dependency")


async def pages(recorded: SimulatedBackends, query: LogQuery) -> list[Sequence[LogLine]]:
    """All pages, following cursors."""
    page = await recorded.logs.query(query)
    found = [page.lines]
    while page.next_cursor:
        page = await recorded.logs.query(
            LogQuery(
                query.product,
                query.interval,
                query.filter,
                query.min_level,
                query.limit,
                page.next_cursor,
            )
        )
        found.append(page.lines)
    return found


async def test_page_never_exceeds_100_lines_and_counts_all_matches(
    noisy: SimulatedBackends,
) -> None:
    page = await noisy.logs.query(LogQuery("inventory", HALF_HOUR, limit=5000))
    everything = await pages(noisy, LogQuery("inventory", HALF_HOUR))
    assert len(page.lines) == 100
    assert page.total_matches == sum(map(len, everything))


async def test_later_pages_keep_the_interval_and_total_of_the_first(
    noisy: SimulatedBackends, clock: SetClock
) -> None:
    query = LogQuery("inventory", HALF_HOUR, limit=100)
    first = await noisy.logs.query(query)
    clock.at = NOW + timedelta(minutes=10)
    slid = Interval(NOW - timedelta(minutes=20), NOW + timedelta(minutes=10))
    second = await noisy.logs.query(LogQuery("inventory", slid, cursor=first.next_cursor))
    assert second.total_matches == first.total_matches
    assert second.lines[0].ts_ns <= first.lines[-1].ts_ns


@pytest.mark.parametrize(
    "changed",
    [
        LogQuery("payments", HALF_HOUR),
        LogQuery("inventory", HALF_HOUR, filter="x"),
        LogQuery("inventory", HALF_HOUR, min_level="error"),
    ],
)
async def test_cursor_of_another_query_is_refused(
    noisy: SimulatedBackends, changed: LogQuery
) -> None:
    page = await noisy.logs.query(LogQuery("inventory", HALF_HOUR))
    with pytest.raises(InvalidArguments, match="another query"):
        await noisy.logs.query(
            LogQuery(
                changed.product,
                changed.interval,
                changed.filter,
                changed.min_level,
                cursor=page.next_cursor,
            )
        )


@pytest.mark.parametrize("cursor", ["nonsense!", "bnVsbA==", "W10=", "eyJhIjoxfQ=="])
async def test_damaged_cursor_is_refused(noisy: SimulatedBackends, cursor: str) -> None:
    with pytest.raises(InvalidArguments, match="cursor"):
        await noisy.logs.query(LogQuery("inventory", HALF_HOUR, cursor=cursor))


async def test_log_range_is_half_open(noisy: SimulatedBackends) -> None:
    page = await noisy.logs.query(LogQuery("inventory", HALF_HOUR, limit=1))
    newest = page.lines[0].ts_ns
    at = datetime.fromtimestamp(newest // 1_000_000_000, UTC) + timedelta(
        microseconds=newest % 1_000_000_000 // 1000
    )
    before = await noisy.logs.query(LogQuery("inventory", Interval(HALF_HOUR.start, at)))
    since = await noisy.logs.query(LogQuery("inventory", Interval(at, NOW)))
    assert max(line.ts_ns for line in before.lines) < newest
    assert min(line.ts_ns for line in since.lines) == newest


@pytest.mark.parametrize(
    ("text", "has", "has_not"),
    [
        ("CACHE TIMEOUT", "CACHE TIMEOUT", "falling back"),
        ('|= "falling back"', "falling back", "CACHE"),
        ('!= "CACHE" |= "stock"', "stock", "CACHE"),
        ("|~ `stock:[0-9a-f]{7}`", "stock:", "falling back"),
        ('!~ "CACHE|served|cache|healthz"', "falling back", "CACHE"),
    ],
)
async def test_filter_selects_lines(
    noisy: SimulatedBackends, text: str, has: str, has_not: str
) -> None:
    page = await noisy.logs.query(LogQuery("inventory", HALF_HOUR, filter=text))
    assert page.lines
    assert [line.message for line in page.lines if has not in line.message] == []
    assert [line.message for line in page.lines if has_not in line.message] == []


@pytest.mark.parametrize(
    "text",
    ['|~ "("', "| json", '|= "open', '{service="x"} |= "y"', '|= "a" | line_format "b"', "|= x"],
)
async def test_filter_that_cannot_be_evaluated_is_named(
    noisy: SimulatedBackends, text: str
) -> None:
    with pytest.raises(InvalidArguments):
        await noisy.logs.query(LogQuery("inventory", HALF_HOUR, filter=text))


@pytest.mark.parametrize(
    ("minimum", "levels"),
    [
        ("", {"info", "warn", "error"}),
        ("info", {"info", "warn", "error"}),
        ("WARNING", {"warn", "error"}),
        ("error", {"error"}),
        ("fatal", set()),
    ],
)
async def test_minimum_level(noisy: SimulatedBackends, minimum: str, levels: set[str]) -> None:
    found = await pages(noisy, LogQuery("inventory", HALF_HOUR, min_level=minimum))
    assert {line.level for page in found for line in page} == levels


async def test_unknown_level_is_refused_with_the_list(noisy: SimulatedBackends) -> None:
    with pytest.raises(InvalidArguments, match="debug, info, warn"):
        await noisy.logs.query(LogQuery("inventory", HALF_HOUR, min_level="loud"))


async def test_unknown_product_is_refused_with_the_list(noisy: SimulatedBackends) -> None:
    with pytest.raises(InvalidArguments, match=r"products are: web, gateway, checkout"):
        await noisy.logs.query(LogQuery("nope", HALF_HOUR))
    metric = await noisy.metrics.query_range(MetricQuery("nope", P99, HALF_HOUR))
    assert metric.notes[-1].startswith("no metric names nope; there are: web, gateway, checkout")
    with pytest.raises(InvalidArguments, match=r"products are: web"):
        await noisy.deploys.between("nope", HALF_HOUR)


async def test_nothing_later_than_now_is_shown(noisy: SimulatedBackends, clock: SetClock) -> None:
    ahead = Interval(NOW - timedelta(minutes=5), NOW + timedelta(hours=1))
    now_ns = int(NOW.timestamp()) * 1_000_000_000
    page = await noisy.logs.query(LogQuery("inventory", ahead))
    metric = await noisy.metrics.query_range(MetricQuery("payments", P99, ahead, step_s=60))
    assert max(line.ts_ns for line in page.lines) <= now_ns
    assert max(at for at, _value in metric.series[0].points) <= NOW
    clock.at = NOW + timedelta(hours=1)
    later = await noisy.metrics.query_range(MetricQuery("payments", P99, ahead, step_s=60))
    assert len(later.series[0].points) == 65


async def test_trace_is_shown_only_after_it_ended(
    noisy: SimulatedBackends, clock: SetClock
) -> None:
    page = await noisy.logs.query(LogQuery("payments-db", HALF_HOUR, filter="trace_id"))
    trace_id = page.lines[0].trace_id
    trace = await noisy.traces.get(trace_id.upper())
    assert trace is not None
    clock.at = datetime.fromtimestamp(min(span.start_us for span in trace.spans) / 1e6, UTC)
    assert await noisy.traces.get(trace_id) is None


async def test_metrics_at_60_s_cover_a_day(noisy: SimulatedBackends) -> None:
    anchor = NOW.replace(second=0)
    day = Interval(anchor - timedelta(hours=24), anchor)
    result = await noisy.metrics.query_range(MetricQuery("payments", P99, day, step_s=60))
    assert len(result.series) == 1
    assert len(result.series[0].points) == 1440
    assert result.unit == "seconds"
    assert result.series[0].labels["service"] == "payments"


@pytest.mark.parametrize(("asked_s", "step_s"), [(None, 288.0), (300.0, 300.0), (1.0, 60.0)])
async def test_step_fits_the_range(
    noisy: SimulatedBackends, asked_s: float | None, step_s: float
) -> None:
    result = await noisy.metrics.query_range(MetricQuery("payments", P99, DAY, step_s=asked_s))
    assert result.step_s == step_s


async def test_unknown_metric_says_what_exists(noisy: SimulatedBackends) -> None:
    result = await noisy.metrics.query_range(MetricQuery("payments-db", P99, HALF_HOUR))
    assert result.series == ()
    assert f"metric {P99} does not exist for product payments-db" in result.notes[0]
    assert "db_connections_in_use_ratio" in result.notes[0]


async def test_labels_without_series_say_that_the_metric_exists(noisy: SimulatedBackends) -> None:
    query = MetricQuery("payments", P99, HALF_HOUR, {"env": "staging"})
    result = await noisy.metrics.query_range(query)
    assert result.series == ()
    assert "exists, but no series has these labels" in result.notes[0]


async def test_range_before_the_data_says_what_it_covers(noisy: SimulatedBackends) -> None:
    old = Interval(NOW - timedelta(days=9), NOW - timedelta(days=8))
    result = await noisy.metrics.query_range(MetricQuery("payments", P99, old))
    page = await noisy.logs.query(LogQuery("payments", old))
    assert "recorded data covers" in result.notes[0]
    assert (page.lines, page.total_matches, page.next_cursor) == ((), 0, "")


async def test_deploys_are_newest_first_and_half_open(incidents: RecordedIncidents) -> None:
    deploys = incidents.of("bad-deploy").deploys
    found = await deploys.between("*", DAY)
    assert [(deploy.product, deploy.version) for deploy in found[:2]] == [
        ("recommendations", "v1.19.3"),
        ("checkout", "v2.4.0"),
    ]
    until = await deploys.between("*", Interval(DAY.start, found[0].at))
    since = await deploys.between("checkout", Interval(found[1].at, NOW))
    assert found[0] not in until
    assert list(since) == [found[1]]


async def test_deploy_of_the_future_is_not_shown(
    incidents: RecordedIncidents, clock: SetClock
) -> None:
    clock.at = NOW - timedelta(hours=1)
    found = await incidents.of("bad-deploy").deploys.between("checkout", DAY)
    assert list(found) == []


@pytest.mark.parametrize(
    ("channel", "name"),
    [
        ("incident-checkout", "bad-deploy"),
        ("#incident-payments", "saturated-dependency"),
        ("incident-quiet", "quiet-day"),
    ],
)
def test_channel_selects_its_incident(
    incidents: RecordedIncidents, channel: str, name: str
) -> None:
    assert incidents.name_in(channel) == name


def test_channel_without_incident_has_none(incidents: RecordedIncidents) -> None:
    assert incidents.name_in("random") is None
