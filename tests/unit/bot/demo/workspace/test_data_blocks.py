"""Charts and tables that Slack would refuse are refused, and what it accepts passes."""

from collections.abc import Sequence
from typing import Any

import pytest

from bot.demo.workspace.block_rules import check_blocks
from bot.demo.workspace.errors import SlackRefused
from bot.demo.workspace.json_access import JsonObject

LABELS = [f"12:{minute:02d}" for minute in range(20)]


def series(name: str = "p99", labels: Sequence[str] = LABELS, value: Any = 1.5) -> JsonObject:
    return {"name": name, "data": [{"label": label, "value": value} for label in labels]}


def line(*drawn: Any, categories: Sequence[str] = LABELS, **more: Any) -> JsonObject:
    axis: JsonObject = {"categories": list(categories), "x_label": "x" * 50, "y_label": "y" * 50}
    chart: JsonObject = {"type": "line", "series": list(drawn or [series()]), "axis_config": axis}
    return {"type": "data_visualization", "title": "t" * 50, "chart": chart | more}


def text(said: str = "x") -> JsonObject:
    return {"type": "raw_text", "text": said}


def rich(said: str = "x") -> JsonObject:
    element: JsonObject = {"type": "text", "text": said}
    return {"type": "rich_text", "elements": [{"type": "rich_text_section", "elements": [element]}]}


def table(*rows: Any, **more: Any) -> JsonObject:
    return {"type": "data_table", "caption": "Deploys", "rows": list(rows), **more}


HEAD = [text("ts"), text("n")]
ROW = [text("12:36"), {"type": "raw_number", "value": 3, "text": "3"}]

ACCEPTED: list[JsonObject] = [
    line(),
    line(*[series(f"s{n}") for n in range(6)]),
    line(series("n" * 20), series("usual", value=-0.5)),
    line(series(labels=["x" * 20]), categories=["x" * 20]),
    line() | {"chart": {"type": "pie", "segments": [{"label": "a", "value": 1}]}},
    table(HEAD, ROW),
    table(HEAD, *[ROW] * 100, page_size=100, row_header_column_index=1),
    table([text()] * 20, [rich()] * 20),
]

REFUSED: list[JsonObject] = [
    line() | {"title": "t" * 51},
    line() | {"title": ""},
    line() | {"colour": "red"},
    {"type": "data_visualization", "title": "t"},
    line(type="scatter"),
    line(series=[]),
    line(*[series(f"s{n}") for n in range(7)]),
    line(series("n" * 21)),
    line(series(), series()),
    line(series(labels=LABELS[:19])),
    line(series(labels=[*LABELS[:19], "another"])),
    line(series(value=None)),
    line(series(value="1")),
    line(series(labels=["x" * 21]), categories=["x" * 21]),
    line(series(labels=["a", "a"]), categories=["a", "a"]),
    line(
        series(labels=[f"l{n}" for n in range(21)]), categories=[f"l{n}" for n in range(21)]
    ),
    line(axis_config={"categories": LABELS, "x_label": "x" * 51}),
    line() | {"chart": {"type": "pie", "segments": [{"label": "a", "value": 0}]}},
    table(HEAD),
    table(HEAD, *[ROW] * 101),
    table(HEAD, ROW[:1]),
    table([text()] * 21, [text()] * 21),
    table([rich(), text()], ROW),
    table(HEAD, [text("x" * 10_000), text()]),
    table(HEAD, ROW, page_size=0),
    table(HEAD, ROW, page_size=101),
    table(HEAD, [text(), {"type": "raw_number", "value": 3}]),
    table(HEAD, ROW, caption=""),
]  # fmt: skip


@pytest.mark.parametrize("block", ACCEPTED, ids=range(len(ACCEPTED)))
def test_charts_and_tables_that_slack_accepts_pass(block: JsonObject) -> None:
    check_blocks([block], "message")


@pytest.mark.parametrize("block", REFUSED, ids=range(len(REFUSED)))
def test_charts_and_tables_that_slack_refuses_are_refused(block: JsonObject) -> None:
    with pytest.raises(SlackRefused, match="invalid_blocks"):
        check_blocks([block], "message")


def test_a_message_takes_two_charts_and_one_table() -> None:
    check_blocks([line(), line(), table(HEAD, ROW)], "message")
    with pytest.raises(SlackRefused, match="invalid_blocks"):
        check_blocks([line(), line(), line()], "message")
    with pytest.raises(SlackRefused, match="invalid_blocks"):
        check_blocks([table(HEAD, ROW), table(HEAD, ROW)], "message")


@pytest.mark.parametrize("block", [line(), table(HEAD, ROW)], ids=["chart", "table"])
def test_charts_and_tables_are_refused_in_a_modal_and_a_home_tab(block: JsonObject) -> None:
    with pytest.raises(SlackRefused, match="invalid_blocks"):
        check_blocks([block], "modal")
    with pytest.raises(SlackRefused, match="invalid_blocks"):
        check_blocks([block], "home")
