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


async def test_what_is_new_stands_before_what_always_comes() -> None:
    outcome = await ask()
    body = orjson.loads(outcome.content)
    assert [(one["template"], one["change"]) for one in body["patterns"]] == [
        ("pool of payments exhausted after <n> ms", "new"),
        ("slow query <n>", "steady"),
    ]
    first = body["patterns"][0]
    assert (first["count"], first["before"], first["names"]) == (10, 0, ["payments"])
    assert (first["first"], first["hosts"]) == ("2026-04-07T14:25:00Z", ["h1"])
    assert body["earlier_range"] == "2026-04-07T13:05:00Z/2026-04-07T14:05:00Z"
    assert outcome.summary == "1 new of 2 patterns, 40 lines, last 30m"


async def test_star_is_the_products_of_the_channel() -> None:
    body = orjson.loads((await ask(product="*", level="error")).content)
    assert {one["product"] for one in body["patterns"]} == {"checkout", "payments"}


async def test_text_selects() -> None:
    body = orjson.loads((await ask(query="slow query")).content)
    assert [one["template"] for one in body["patterns"]] == ["slow query <n>"]


async def test_no_lines_are_no_patterns() -> None:
    outcome = await ask(query="nothing says this")
    assert orjson.loads(outcome.content)["patterns"] == []
    assert outcome.summary == "0 new of 0 patterns, 0 lines, last 30m"
