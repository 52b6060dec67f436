"""Patterns of log lines: of a product, of all of the channel's, against the time before."""

from datetime import timedelta

import orjson

from tests.fakes.capabilities import NOW, FakeLogs, fake_capabilities, nanoseconds
from tests.fakes.tools import bench
from tools.capabilities import LogLine
from tools.core.error_patterns import ErrorPatterns
from tools.records import ToolOutcome


def line(minutes_ago: float, message: str, level: str = "error") -> LogLine:
    return LogLine(nanoseconds(NOW - timedelta(minutes=minutes_ago)), level, "h1", message)


LOGS = FakeLogs(
    {
        "checkout": [
            *(line(n, f"pool of payments exhausted after {n} ms") for n in range(1, 11)),
            *(line(n, f"slow query {n}", "warn") for n in range(1, 90)),
            *(line(n, f"served {n}", "info") for n in range(1, 90)),
        ],
        "payments": [line(3, "connection refused")],
        "secret": [line(3, "not of this channel")],
    }
)


async def ask(**arguments: object) -> ToolOutcome:
    b = bench([ErrorPatterns()], caps=fake_capabilities(logs=LOGS))
    given = {"product": "checkout", "time_range": "last 30m", **arguments}
    channel = ("checkout", "payments")
    return await b.run(orjson.dumps(given).decode(), "core__error_patterns", products=channel)


async def test_new_patterns_come_before_steady_ones() -> None:
    outcome = await ask()
    body = orjson.loads(outcome.content)
    assert [(one["example"], one["change"]) for one in body["changes"]] == [
        ("pool of payments exhausted after 1 ms", "new"),
        ("slow query 1", "steady"),
        ("served 1", "steady"),
    ]
    first = body["changes"][0]
    assert (first["after"], first["before"], first["names"]) == (10, 0, ["payments"])
    assert (first["since"], first["hosts"]) == ("2026-04-07T14:25:00Z", ["h1"])
    assert body["lines"] == {"checkout": "118/70"}
    assert outcome.summary == "1 new kind of errors, 1 change"


async def test_star_means_the_products_of_the_channel() -> None:
    body = orjson.loads((await ask(product="*", level="error")).content)
    assert {one["product"] for one in body["changes"]} == {"checkout", "payments"}


async def test_sweeping_other_products_reports_only_changes() -> None:
    body = orjson.loads((await ask(others=True)).content)
    assert {(one["product"], one["change"]) for one in body["changes"]} == {
        ("checkout", "new"),
        ("payments", "new"),
    }


async def test_text_filters_patterns() -> None:
    body = orjson.loads((await ask(query="slow query")).content)
    assert [one["example"] for one in body["changes"]] == ["slow query 1"]


async def test_no_lines_give_no_patterns() -> None:
    outcome = await ask(query="nothing says this")
    assert orjson.loads(outcome.content)["changes"] == []
    assert outcome.summary == "no new kinds of errors, 0 changes"
