"""Log pages: shape, paging without loss or repeat, frozen ranges, sealed cursors."""

from datetime import timedelta

import orjson
import pytest

from tests.fakes.capabilities import NOW, FakeLogs, fake_capabilities, nanoseconds
from tests.fakes.tools import Bench, bench
from tools.capabilities import LogLine
from tools.core.get_logs import GetLogs
from tools.cursor import CursorSigner
from tools.records import ToolOutcome

KEY = b"0123456789abcdef"


def line(number: int, message: str = "", level: str = "error", **more: str) -> LogLine:
    at = nanoseconds(NOW - timedelta(minutes=1)) - (number // 3) * 1_000_000
    return LogLine(at, level, "h1", message or f"line {number:04d}", **more)


def logs_bench(*lines: LogLine) -> tuple[Bench, FakeLogs]:
    logs = FakeLogs({"checkout": lines})
    return bench([GetLogs(CursorSigner(KEY))], caps=fake_capabilities(logs=logs)), logs


async def ask(b: Bench, /, session_id: str = "s1", **arguments: object) -> ToolOutcome:
    given = {"product": "checkout", "time_range": "last 30m", **arguments}
    return await b.run(orjson.dumps(given).decode(), "core__get_logs", session_id=session_id)


async def test_a_page_has_the_documented_shape() -> None:
    b, _ = logs_bench(line(0, "pool exhausted", trace_id="abc"))
    outcome = await ask(b, level="error")
    assert orjson.loads(outcome.content) == {
        "range": "2026-04-07T14:05:00Z/2026-04-07T14:35:00Z",
        "lines": [
            {
                "ts": "2026-04-07T14:34:00.000Z",
                "level": "error",
                "host": "h1",
                "message": "pool exhausted",
                "trace_id": "abc",
            }
        ],
        "truncated": False,
        "total_matches": 1,
        "query_latency_ms": 0,
    }
    assert outcome.summary == "1 error line, last 30m"


async def test_pages_neither_lose_nor_repeat_a_line() -> None:
    b, _ = logs_bench(*(line(number) for number in range(257)))
    first = orjson.loads((await ask(b)).content)
    outcome = await ask(b, cursor=first["next_cursor"])
    assert outcome.summary.startswith("next ")
    second = orjson.loads(outcome.content)
    third = orjson.loads((await ask(b, cursor=second["next_cursor"])).content)
    messages = [one["message"] for page in (first, second, third) for one in page["lines"]]
    assert sorted(messages) == [f"line {number:04d}" for number in range(257)]
    assert "next_cursor" not in third
    assert (first["truncated"], third["truncated"]) == (True, False)


async def test_wide_lines_make_a_smaller_page_and_not_a_gap() -> None:
    b, _ = logs_bench(*(line(number, f"{number:03d} " + "x" * 1500) for number in range(60)))
    seen: list[str] = []
    cursor: str | None = ""
    while cursor is not None:
        outcome = await ask(b, cursor=cursor)
        page = orjson.loads(outcome.content)
        seen += [one["message"][:3] for one in page["lines"]]
        cursor = page.get("next_cursor")
    assert sorted(seen) == [f"{number:03d}" for number in range(60)]
    assert len(b.records) > 1


async def test_a_relative_range_does_not_slide_between_pages() -> None:
    b, logs = logs_bench(*(line(number) for number in range(120)))
    first = orjson.loads((await ask(b)).content)
    later = NOW + timedelta(minutes=20)
    given = {"product": "checkout", "time_range": "last 30m", "cursor": first["next_cursor"]}
    outcome = await b.run(orjson.dumps(given).decode(), "core__get_logs", now=later)
    assert orjson.loads(outcome.content)["range"] == first["range"]
    assert logs.queries[0].interval == logs.queries[1].interval


@pytest.mark.parametrize(
    "change",
    [{"product": "other"}, {"level": "fatal"}, {"query": "x"}, {"session_id": "s2"}],
)
async def test_a_cursor_of_another_query_or_session_is_refused(change: dict[str, str]) -> None:
    b, logs = logs_bench(*(line(number) for number in range(120)))
    cursor = orjson.loads((await ask(b)).content)["next_cursor"]
    outcome = await ask(b, **{"cursor": cursor, **change})
    assert orjson.loads(outcome.content)["error"] == "validation"
    assert len(logs.queries) == 1


async def test_a_cursor_may_be_used_with_a_smaller_limit() -> None:
    b, _ = logs_bench(*(line(number) for number in range(120)))
    cursor = orjson.loads((await ask(b)).content)["next_cursor"]
    page = orjson.loads((await ask(b, cursor=cursor, limit=5)).content)
    assert len(page["lines"]) == 5


async def test_the_head_of_a_giant_line_is_kept_with_the_size_of_the_rest() -> None:
    b, _ = logs_bench(line(0, "y" * 2_000_000))
    message = orjson.loads((await ask(b)).content)["lines"][0]["message"]
    assert message == "y" * 2000 + "…[+1998000 chars]"


async def test_hostile_lines_are_cleaned_and_not_refused() -> None:
    b, _ = logs_bench(LogLine(nanoseconds(NOW) - 1, "error", "h\ud800", "a\ud800b\x00c\x1b[31m"))
    entry = orjson.loads((await ask(b)).content)["lines"][0]
    assert (entry["host"], entry["message"]) == ("h", "abc")


async def test_an_assumed_zone_is_reported() -> None:
    b, _ = logs_bench()
    outcome = await ask(b, time_range="2026-04-07T14:00:00/PT30M")
    assert orjson.loads(outcome.content)["notes"] == ["no zone given: UTC assumed"]


@pytest.mark.parametrize(
    "arguments",
    [
        {"limit": 101},
        {"limit": 0},
        {"level": "ERROR"},
        {"product": 'a"} or {b="'},
        {"product": "*"},
        {"time_range": "whenever"},
        {"time_range": "last 31d"},
    ],
)
async def test_arguments_outside_the_contract_do_not_reach_the_backend(
    arguments: dict[str, object],
) -> None:
    b, logs = logs_bench()
    outcome = await ask(b, **arguments)  # type: ignore[arg-type]
    assert orjson.loads(outcome.content)["error"] == "validation"
    assert logs.queries == []
