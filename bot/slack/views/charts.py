"""A chart as a `data_visualization` block, and as plain text for modals and screen readers.

The block has no marks. So the onset is a label on the time axis, repeated below it, and the
baseline is a line of its own. Slack picks the colours.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from itertools import zip_longest

from pydantic import JsonValue

from bot.domain.chart import Chart, columns, marked
from bot.domain.tabled import Cell, Table
from bot.slack.text.blocks import Block, Part
from bot.slack.text.limits import (
    CHART_AXIS_CHARS,
    CHART_NAME_CHARS,
    CHART_POINTS,
    CHART_TITLE_CHARS,
    MAX_CHARTS,
)
from bot.slack.text.links import defanged
from bot.slack.text.mrkdwn import plain

USUAL = "usual (median)"
_DAY = timedelta(days=1)


def chart_block(chart: Chart) -> Block | None:
    """None where there is nothing to draw."""
    lines, drawn = columns(chart, CHART_POINTS)
    labels = times([each.at for each in drawn])
    drawn = tuple(column for column, label in zip(drawn, labels, strict=True) if label)
    labels = [label for label in labels if label]
    if len(drawn) < 2:
        return None
    since = marked(chart, drawn)
    if since is not None and chart.since is not None:
        own = f"{chart.since:%H:%M}" if len(labels[since]) == len("11:30") else labels[since]
        labels[since] = label(f"{own} {chart.event}", CHART_NAME_CHARS)
    named = [label(line.name, CHART_NAME_CHARS) or "measured" for line in lines]
    names = _unique([USUAL, *named])[1:]  # no series takes the baseline's name
    values = [[column.values[index] for column in drawn] for index in range(len(lines))]
    if chart.usual is not None:
        names.append(USUAL)
        values.append([chart.usual] * len(drawn))
    axis: Block = {"categories": list[JsonValue](labels), "x_label": _below(chart, drawn[-1].at)}
    if unit := label(chart.unit, CHART_AXIS_CHARS):
        axis["y_label"] = unit
    series = [_series(name, labels, row) for name, row in zip(names, values, strict=True)]
    return {
        "type": "data_visualization",
        "title": title(chart),
        "chart": {"type": "line", "series": list[JsonValue](series), "axis_config": axis},
    }


def with_charts(parts: Sequence[Part], charts: Sequence[Chart]) -> tuple[Part, ...]:
    """The messages, the last of them with its charts below the text."""
    *earlier, last = parts
    drawn = [block for chart in charts[:MAX_CHARTS] if (block := chart_block(chart))]
    return (*earlier, Part(last.text, (*last.blocks, *drawn)))


def title(chart: Chart) -> str:
    """`E1 checkout: http_request_duration_seconds_p99`; the head of a long name gives way."""
    number = f"E{chart.evidence} " if chart.evidence else ""
    head = label(f"{number}{chart.product}".strip(), CHART_NAME_CHARS + 10)
    room = CHART_TITLE_CHARS - len(head) - 2
    metric = label(chart.metric, 4_000)
    if len(metric) > room:
        metric = "…" + metric[len(metric) - room + 1 :]
    return ": ".join(filter(None, (head, metric))) or "Chart"


def label(text: str, max_chars: int) -> str:
    """Anybody's words as plain text in which nothing is a link, a mention or hidden."""
    return plain(defanged(plain(text, 4_000)), max_chars)


def times(moments: Sequence[datetime]) -> list[str]:
    """A label for each moment, in UTC; "" where it equals the label before."""
    if not moments:
        return []
    is_long = moments[-1] - moments[0] >= _DAY
    made = [f"{at:%d %b %H:%M}" if is_long else f"{at:%H:%M}" for at in moments]
    if len(set(made)) < len(made) and not is_long:
        made = [f"{at:%H:%M:%S}" for at in moments]
    return [name if name not in made[:index] else "" for index, name in enumerate(made)]


def _below(chart: Chart, until: datetime) -> str:
    if chart.since is None:
        return "UTC"
    what = "unusual since" if chart.event == "onset" else label(chart.event, CHART_NAME_CHARS)
    day = "" if chart.since.date() == until.date() else f"{chart.since:%d %b} "
    return f"UTC, {what} {day}{chart.since:%H:%M}"


def _series(name: str, labels: Sequence[str], values: Sequence[float]) -> Block:
    data: list[JsonValue] = [
        {"label": label, "value": value} for label, value in zip(labels, values, strict=True)
    ]
    return {"name": name, "data": data}


def _unique(names: Iterable[str]) -> list[str]:
    made: list[str] = []
    for name in names:
        number, told = 1, name
        while told in made:
            number += 1
            end = f" {number}"
            told = name[: CHART_NAME_CHARS - len(end)] + end
        made.append(told)
    return made


def described(chart: Chart) -> str:
    """What its picture shows, in words: `checkout: p99, from 0.2 to 1.8 s, usual (median) 0.2`."""
    lines, drawn = columns(chart, CHART_POINTS)
    told = [title(chart)]
    for index, line in enumerate(lines):
        first, last = drawn[0].values[index], drawn[-1].values[index]
        told.append(f"{label(line.name, CHART_NAME_CHARS)} from {first:.4g} to {last:.4g}")
    if chart.usual is not None:
        told.append(f"{USUAL} {chart.usual:.4g}")
    return ", ".join(told)


_POINTS = 20
_BAR_CHARS = 12  # a phone shows 36 characters of a line: clock, figure, bar and mark
_CELL_CHARS = 34
_ROWS = 40
_LINE_CHARS = 110


def plotted(chart: Chart) -> str:
    """A line for each moment: when, how much, and a bar as long as that; "" without points."""
    lines, drawn = columns(chart, _POINTS)
    if not drawn:
        return ""
    onset = marked(chart, drawn)
    high = max(0.0, *(value for column in drawn for value in column.values)) or 1.0
    heads = [label(line.name, 20) or "measured" for line in lines]
    told = [f"{title(chart)}{f', {unit}' if (unit := label(chart.unit, 30)) else ''} (UTC)"]
    told += [", ".join(heads)] if len(heads) > 1 else []
    clocks = times([column.at for column in drawn])
    for index, (clock, column) in enumerate(zip(clocks, drawn, strict=True)):
        figures = "  ".join(f"{value:>6.4g}" for value in column.values)
        bar = "█" * round(_BAR_CHARS * max(0.0, column.values[0]) / high) if len(heads) == 1 else ""
        mark = f" ◂ {chart.event}" if index == onset else ""
        told.append(f"{clock or '':>5}  {figures}  {bar}{mark}".rstrip())
    if chart.usual is not None:
        told.append(f"{USUAL}: {chart.usual:.4g}")
    return "\n".join(told)


def laid_out(table: Table) -> str:
    """Its rows under their heads, the columns aligned."""
    heads = [label(head, _CELL_CHARS) for head in table.heads]
    rows = [[_text(cell) for cell in row] for row in table.rows[:_ROWS]]
    told = [line[:_LINE_CHARS] for line in aligned([heads, *rows])]
    left_out = len(table.rows) - len(rows)
    return "\n".join([*told, f"… and {left_out} more rows"] if left_out else told)


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Lines of columns, two spaces apart. A row may be shorter than others."""
    widths = [max(map(len, column)) for column in zip_longest(*rows, fillvalue="")]
    return ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]


def _text(cell: Cell) -> str:
    return f"{cell:.6g}" if isinstance(cell, float) else label(cell, _CELL_CHARS)
