"""The last net before Slack: every text that people see goes through it, those of charts and tables, too."""

import json
from collections.abc import Mapping
from typing import Any

from pydantic import JsonValue

from bot.slack.api.calls import RedactedCalls

SECRET = "hunter2-key"


class Kept:
    """What would be sent."""

    def __init__(self) -> None:
        self.sent: dict[str, JsonValue] = {}

    async def call(self, method: str, **arguments: JsonValue) -> Mapping[str, JsonValue]:
        self.sent = {"method": method, **arguments}
        return {}


def masked(text: str) -> str:
    return text.replace(SECRET, "[masked]")


async def sent(method: str, **arguments: Any) -> str:
    kept = Kept()
    await RedactedCalls(kept, masked).call(method, **arguments)
    return json.dumps(kept.sent)


async def test_no_label_of_a_chart_carries_a_secret() -> None:
    point: JsonValue = {"label": SECRET, "value": 1}
    axis: JsonValue = {"categories": [SECRET], "x_label": SECRET, "y_label": SECRET}
    series: JsonValue = {"name": SECRET, "data": [point]}
    chart: JsonValue = {"type": "line", "series": [series], "axis_config": axis}
    block: JsonValue = {"type": "data_visualization", "title": SECRET, "chart": chart}

    shown = await sent("chat.stopStream", blocks=[block])

    assert SECRET not in shown
    assert shown.count("[masked]") == 6


async def test_no_cell_of_a_table_carries_a_secret() -> None:
    cells: JsonValue = [[{"type": "raw_text", "text": SECRET}]]
    block: JsonValue = {"type": "data_table", "caption": SECRET, "rows": cells}

    assert SECRET not in await sent("chat.postMessage", blocks=[block])


async def test_no_text_of_a_picture_carries_a_secret() -> None:
    files: JsonValue = [{"id": "F1", "title": SECRET}]

    assert SECRET not in await sent("files.getUploadURLExternal", alt_txt=SECRET, filename="a.png")
    assert SECRET not in await sent("files.completeUploadExternal", files=files)


async def test_values_that_return_to_us_are_unchanged() -> None:
    button: JsonValue = {"type": "button", "value": SECRET, "action_id": SECRET}

    assert SECRET in await sent("chat.update", blocks=[button])
