"""Numbers of any size pass every writer: a counter may hold 2^64, and JSON writers stop at 64 bits."""

import json
from collections.abc import Callable
from datetime import UTC, datetime

import orjson
import pytest

from adapters.llm.wire_json import dump
from adapters.recorded.packs.taking import series_row
from bot.store.columns import json_text
from tools.capabilities import Series
from tools.output import NotStrictJson, clean_value, json_number
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


WRITERS: dict[str, Callable[[float], bytes | str]] = {
    "a tool's result": lambda value: orjson.dumps(clean_value({"n": value})),
    "a row": lambda value: json_text({"n": value}),
    "a recorded case": _recorded,
    "a request to a model": lambda value: dump({"n": value}),
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


def test_a_number_that_no_float_holds_is_refused() -> None:
    with pytest.raises(NotStrictJson):
        clean_value({"n": 10**400})
