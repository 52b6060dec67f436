"""A recorded incident continues after a rollback, and does not age while unread."""

from datetime import UTC, datetime, timedelta

import pytest

from adapters.observe.cursor import UnsealedCodec
from adapters.recorded.simulator.incidents import REST, RecordedIncidents
from tests.fakes.capabilities import FakeClock
from tools.capabilities import Interval, LogQuery, MetricQuery

NOW = datetime(2026, 4, 7, 14, 35, 20, tzinfo=UTC)
HOUR = timedelta(hours=1)
P99, ERRORS = "http_request_duration_seconds_p99", "http_request_error_ratio"


def opened() -> tuple[RecordedIncidents, FakeClock]:
    clock = FakeClock(NOW)
    return RecordedIncidents(clock, UnsealedCodec()), clock


async def last(incidents: RecordedIncidents, clock: FakeClock, metric: str) -> float:
    """The newest sample of checkout."""
    window = Interval(clock.now() - timedelta(minutes=5), clock.now())
    seen = incidents.look("bad-deploy").metrics
    found = await seen.query_range(MetricQuery("checkout", metric, window, {}, 60.0))
    value = found.series[0].points[-1][1]
    assert value is not None
    return value


async def errors_since(incidents: RecordedIncidents, clock: FakeClock, since: datetime) -> int:
    query = LogQuery("checkout", Interval(since, clock.now()), "deadline", "error", 100)
    return len((await incidents.look("bad-deploy").logs.query(query)).lines)


async def test_a_rollback_of_the_culprit_ends_its_effects() -> None:
    incidents, clock = opened()
    before = await last(incidents, clock, P99), await last(incidents, clock, ERRORS)

    incidents.rolled_back("checkout", "v2.3.7", "v2.4.0")
    clock.advance(120)

    after = await last(incidents, clock, P99), await last(incidents, clock, ERRORS)
    assert after[0] < before[0] / 4
    assert after[1] < before[1] / 4
    assert await errors_since(incidents, clock, NOW - timedelta(minutes=5)) > 0
    assert await errors_since(incidents, clock, NOW + timedelta(seconds=60)) == 0


async def test_a_rollback_is_a_normal_deploy() -> None:
    incidents, clock = opened()

    incidents.rolled_back("checkout", "v2.3.7", "v2.4.0")
    clock.advance(60)

    window = Interval(NOW - HOUR, clock.now())
    newest, *_ = await incidents.look("bad-deploy").deploys.between("checkout", window)
    assert (newest.version, newest.previous_version, newest.at) == ("v2.3.7", "v2.4.0", NOW)
    assert incidents.running()["checkout"] == ("v2.3.7", "v2.4.0")


@pytest.mark.parametrize(
    ("product", "version", "before"),
    [
        ("recommendations", "v1.19.2", "v1.19.3"),  # not the culprit
        ("checkout", "v2.3.6", "v2.3.7"),  # not what runs
        ("checkout", "v2.3.7", "current"),
    ],
)
async def test_any_other_rollback_changes_nothing(product: str, version: str, before: str) -> None:
    incidents, clock = opened()
    bad = await last(incidents, clock, P99)

    incidents.rolled_back(product, version, before)
    clock.advance(120)

    assert await last(incidents, clock, P99) > bad / 2


async def test_an_unviewed_incident_has_just_happened() -> None:
    incidents, clock = opened()
    clock.advance(7 * HOUR.total_seconds())

    window = Interval(clock.now() - HOUR, clock.now())
    (_, bad) = await incidents.look("bad-deploy").deploys.between("*", window)

    assert (bad.version, bad.at) == ("v2.4.0", floored(clock.now()) - timedelta(minutes=25))
    assert await last(incidents, clock, P99) > 1


async def test_an_incident_does_not_restart_while_people_look() -> None:
    incidents, clock = opened()
    incidents.look("bad-deploy")
    clock.advance(REST.total_seconds() - 1)

    window = Interval(NOW - HOUR, clock.now())
    (_, bad) = await incidents.look("bad-deploy").deploys.between("*", window)

    assert bad.at == floored(NOW) - timedelta(minutes=25)


async def test_a_repaired_incident_stays_repaired() -> None:
    incidents, clock = opened()
    bad = await last(incidents, clock, P99)
    incidents.rolled_back("checkout", "v2.3.7", "v2.4.0")

    clock.advance(8 * HOUR.total_seconds())

    assert await last(incidents, clock, P99) < bad / 4


def floored(at: datetime) -> datetime:
    return at.replace(second=0)
