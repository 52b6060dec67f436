"""Numbers of any size pass every writer: a counter may hold 2^64, and JSON writers stop at 64 bits."""

import json
import tempfile
from collections.abc import Callable
from contextlib import redirect_stdout
from datetime import UTC, datetime
from io import StringIO
from pathlib import Path

import httpx
import orjson
import pytest
from pydantic import JsonValue

from adapters.llm.wire_json import dump
from adapters.observe.log_source import Wanted
from adapters.observe.victorialogs import VictoriaLogs
from adapters.recorded.packs.capture import series_row
from adapters.recorded.packs.writing import WrittenCase, write_case
from bot.cli.display import print_json
from bot.store.columns import json_text
from tools.capabilities import Series
from tools.output import NotStrictJson, clean_value, json_number
from tools.outside_json import count_of
from tools.signals import Metric

NUMBERS = (
    0, 2**31, 2**53 + 1, 2**63 - 1, 2**63, 2**64 - 1, 2**64, 2**64 + 1, 10**30, 10**300,
    -(2**63), -(2**63) - 1, -(2**64), 1e308, 18446744073709552000.0,
)  # fmt: skip


def _recorded(number: float) -> bytes:
    series = Series({"job": "checkout"}, ((datetime(2026, 11, 27, tzinfo=UTC), float(number)),))
    row = series_row(Metric("process_virtual_memory_max_bytes", ""), series)
    assert row is not None
    points = row["points"]
    assert isinstance(points, list)
    assert isinstance(points[0], list)
    return orjson.dumps({"n": points[0][1]})


def _written(number: float) -> bytes:
    """As a row of a case, which holds whole objects of a cluster."""
    now = datetime(2026, 11, 27, tzinfo=UTC)
    row: dict[str, JsonValue] = {"kind": "Widget", "spec": {"n": number, "half": "\ud800"}}
    with tempfile.TemporaryDirectory() as folder:
        case = WrittenCase("c", "s", "why?", now, ["checkout"], {"rows": [row]}, {"one": row})
        write_case(Path(folder) / "case", case, lambda value: value)
        kept = (Path(folder) / "case" / "rows").read_bytes()
        assert orjson.loads((Path(folder) / "case" / "one").read_bytes()) == orjson.loads(kept)
    return orjson.dumps(orjson.loads(kept)["spec"])


def _printed(value: JsonValue) -> str:
    with redirect_stdout(StringIO()) as out:
        print_json(value)
    return out.getvalue()


WRITERS: dict[str, Callable[[float], bytes | str]] = {
    "a tool's result": lambda value: orjson.dumps(clean_value({"n": value})),
    "a row": lambda value: json_text({"n": value}),
    "a recorded case": _recorded,
    "an object of a recorded cluster": _written,
    "a request to a model": lambda value: dump({"n": value}),
    "JSON of a command": lambda value: _printed({"n": value}),
}


@pytest.mark.parametrize("number", NUMBERS)
@pytest.mark.parametrize("writer", WRITERS)
def test_a_number_of_any_size_is_written(writer: str, number: float) -> None:
    text = WRITERS[writer](number)

    assert json.loads(text)["n"] == pytest.approx(number)


@pytest.mark.parametrize("number", [2**63 - 1, 2**64 - 1, -(2**63), 1.5])
def test_a_number_of_64_bits_stays_exact(number: float) -> None:
    assert json_number(number) == number
    assert type(json_number(number)) is type(number)


@pytest.mark.parametrize("digits", [4300, 6000])
@pytest.mark.parametrize("writer", ["a row", "a request to a model", "JSON of a command"])
def test_a_number_that_python_cannot_write_in_decimal_breaks_no_writer(
    writer: str, digits: int
) -> None:
    assert json.loads(WRITERS[writer](10**digits))["n"] in (None, hex(10**digits))


@pytest.mark.parametrize("writer", ["a row", "an object of a recorded cluster"])
def test_a_number_that_no_float_holds_is_kept_as_its_digits(writer: str) -> None:
    assert json.loads(WRITERS[writer](10**400))["n"] == str(10**400)


def test_a_number_that_no_float_holds_is_refused() -> None:
    with pytest.raises(NotStrictJson):
        clean_value({"n": 10**400})


@pytest.mark.parametrize(
    "odd", ["9" * 5000, str(10**15), "-1", "1.5", "", "²", "٣", None, True, 2.0, [1]]
)
def test_an_invalid_count_is_ignored(odd: object) -> None:
    assert count_of(odd) is None


@pytest.mark.parametrize(
    ("given", "count"), [("0", 0), (7, 7), ("007", 7), (str(10**15 - 1), 10**15 - 1)]
)
def test_a_count_may_be_text_or_a_number(given: object, count: int) -> None:
    assert count_of(given) == count


@pytest.mark.parametrize("odd", ["9" * 5000, "²", "-1", ""])
async def test_an_odd_line_count_loses_no_other(odd: str) -> None:
    rows = [{"app": "checkout", "kortex_lines": "3"}, {"app": "cart", "kortex_lines": odd}]
    body = "\n".join(map(json.dumps, rows))
    transport = httpx.MockTransport(lambda _: httpx.Response(200, text=body))
    at = 1_795_795_200_000_000_000
    async with httpx.AsyncClient(transport=transport, base_url="http://logs.test") as client:
        found = await VictoriaLogs(client).counts(Wanted("app", ("checkout",), at, at + 10**9))

    assert found == {"checkout": 3}


@pytest.mark.parametrize("number", [2**64, -(2**64), 2**63])
def test_a_nested_number_of_any_size_is_written(number: int) -> None:
    value = {"a": [{"b": (number, {"\ud800": [number]})}]}

    assert json.loads(json_text(value))["a"][0]["b"][0] == pytest.approx(number)
    assert json.loads(dump(value))["a"][0]["b"][0] == pytest.approx(number)
