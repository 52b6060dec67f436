"""One opened result: its arguments, its charts, its rows, and its whole text."""

from collections.abc import Mapping
from typing import Final

from pydantic import JsonValue

from bot.domain.asked import query_of
from bot.domain.chart import Chart, columns
from bot.domain.charted import charts_of
from bot.domain.tabled import table_of
from bot.domain.turn_events import Evidence
from bot.web.api import models
from bot.web.api.chat import wire

MOST_POINTS: Final = 120  # of a line; a screen's width shows no more of them


def opened(found: Evidence, arguments: Mapping[str, JsonValue]) -> models.Evidence:
    """Takes milliseconds: not for the loop. What cannot be drawn is left out."""
    drawn = [_chart(each) for each in charts_of(found, arguments)]
    table = table_of(found)
    return models.Evidence(
        **wire.evidence_line(found).model_dump(),
        content=found.content,
        asked=query_of(arguments),
        charts=[each for each in drawn if len(each.at) > 1],
        table=models.Table(heads=list(table.heads), rows=[list(row) for row in table.rows])
        if table
        else None,
    )


def _chart(chart: Chart) -> models.Chart:
    lines, points = columns(chart, MOST_POINTS)
    return models.Chart(
        product=chart.product,
        metric=chart.metric,
        unit=chart.unit,
        at=[each.at for each in points],
        lines=[
            models.ChartLine(name=line.name, values=[each.values[n] for each in points])
            for n, line in enumerate(lines)
        ],
        usual=chart.usual,
        since=chart.since,
    )
