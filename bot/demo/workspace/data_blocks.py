"""Charts and sortable tables: the shapes of `data_visualization` and `data_table`.

Fields and limits: https://docs.slack.dev/reference/block-kit/blocks/data-visualization-block and
https://docs.slack.dev/reference/block-kit/blocks/data-table-block. That a message takes two charts
at most is not published: https://github.com/vercel/chat/pull/696. Both stand in messages only.
"""

import math
from collections.abc import Iterator, Mapping, Sequence

from pydantic import JsonValue

from bot.demo.workspace import block_elements as kit
from bot.demo.workspace.json_access import JsonObject, as_object, object_at, objects_at, text_at
from bot.demo.workspace.shapes import (
    Check,
    all_of,
    duplicates,
    listing,
    members,
    number,
    problem,
    string,
    tagged,
    texts_in,
)

MAX_CHARTS = 2
MAX_SERIES, MAX_POINTS, MAX_NAME_CHARS = 6, 20, 20
MAX_ROWS, MAX_COLUMNS, MAX_PAGE = 101, 20, 100
MAX_TABLE_CHARS = 10_000  # over all cells of a table

_ID: Mapping[str, Check] = {"block_id": kit.BLOCK_ID}
_NAME = string(MAX_NAME_CHARS)
_AXIS = members(
    {"categories": listing(_NAME, MAX_POINTS)}, {"x_label": string(50), "y_label": string(50)}
)


def _finite(value: JsonValue, pointer: str) -> Iterator[str]:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        yield problem("must be a finite number", pointer)


def _positive(value: JsonValue, pointer: str) -> Iterator[str]:
    yield from _finite(value, pointer)
    if isinstance(value, int | float) and value <= 0:
        yield problem("must be more than 0", pointer)


_POINT = members({"label": _NAME, "value": _finite}, {})
_SERIES = members({"name": _NAME, "data": listing(_POINT, MAX_POINTS)}, {})


def _one_point_for_each_category(value: JsonValue, pointer: str) -> Iterator[str]:
    chart = as_object(value)
    listed = object_at(chart, "axis_config").get("categories")
    categories = (
        [each for each in listed if isinstance(each, str)] if isinstance(listed, list) else []
    )
    if len(set(categories)) < len(categories):
        yield problem("categories must be unique", f"{pointer}/axis_config/categories")
    series = objects_at(chart, "series")
    for name in duplicates(series, "name"):
        yield problem(f"series name {name} already exists", f"{pointer}/series")
    for index, each in enumerate(series):
        labels = [text_at(point, "label") for point in objects_at(each, "data")]
        if sorted(labels) != sorted(categories):
            yield problem(
                "data must have one point for each category", f"{pointer}/series/{index}/data"
            )


_XY = all_of(
    members({"series": listing(_SERIES, MAX_SERIES), "axis_config": _AXIS}, {}),
    _one_point_for_each_category,
)
_SEGMENT = members({"label": _NAME, "value": _positive}, {})
CHART = members(
    {
        "title": string(50),
        "chart": tagged(
            {
                "line": _XY, "bar": _XY, "area": _XY,
                "pie": members({"segments": listing(_SEGMENT, MAX_SERIES)}, {}),
            }
        ),
    },
    _ID,
)  # fmt: skip

_RAW: Mapping[str, Check] = {
    "raw_text": members({"text": string(MAX_TABLE_CHARS)}, {}),
    "raw_number": members({"value": number, "text": string(255)}, {}),
}
_ROW = listing(tagged({**_RAW, "rich_text": kit.rich_text}), MAX_COLUMNS)


def _whole_between(least: int, most: int) -> Check:
    def check(value: JsonValue, pointer: str) -> Iterator[str]:
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            yield problem(f"must be a whole number from {least} to {most}", pointer)

    return check


def _rectangular(value: JsonValue, pointer: str) -> Iterator[str]:
    listed = as_object(value).get("rows")
    rows = [row for row in listed if isinstance(row, list)] if isinstance(listed, list) else []
    if not rows:
        return
    if len({len(row) for row in rows}) > 1:
        yield problem("all rows must have the same number of cells", f"{pointer}/rows")
    if any(as_object(cell).get("type") == "rich_text" for cell in rows[0]):
        yield problem("rich_text is not allowed in the header", f"{pointer}/rows/0")
    if sum(map(len, texts_in(list[JsonValue](rows)))) > MAX_TABLE_CHARS:
        yield problem(f"must be less than {MAX_TABLE_CHARS + 1} characters", f"{pointer}/rows")


TABLE = all_of(
    members(
        {"caption": string(3000), "rows": listing(_ROW, MAX_ROWS, minimum=2)},
        {
            **_ID, "page_size": _whole_between(1, MAX_PAGE),
            "row_header_column_index": _whole_between(0, MAX_COLUMNS - 1),
        },
    ),
    _rectangular,
)  # fmt: skip


def too_many(blocks: Sequence[JsonObject]) -> list[str]:
    """What is wrong with a message's charts and tables taken together."""
    kinds = [block.get("type") for block in blocks]
    problems = []
    if kinds.count("data_visualization") > MAX_CHARTS:
        problems.append(problem(f"no more than {MAX_CHARTS} charts are allowed", "/blocks"))
    if kinds.count("table") + kinds.count("data_table") > 1:
        problems.append(problem("only one table is allowed", "/blocks"))
    return problems
