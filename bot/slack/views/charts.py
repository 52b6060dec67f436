"""A chart as a `data_visualization` block, as text for modals and screen readers, and as an image.

The block has no marks. So the onset is a label on the time axis, repeated below it, and the
baseline is a line of its own. Slack picks the colours. The image is SVG, and PNG through resvg (the
extra `kortex[charts]`): why, docs/adr says. It is on white, which both of Slack's themes show, and
nothing in it is loaded from anywhere.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta
from functools import lru_cache
from html import escape
from importlib import import_module
from importlib.util import find_spec
from itertools import zip_longest
from typing import Final

from pydantic import JsonValue

from bot.domain.chart import Chart, Column, columns, marked
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


Paint = Callable[[Chart], bytes]

_WIDTH, _HEIGHT, _LEFT, _RIGHT, _TOP, _BOTTOM = 720, 300, 64, 20, 46, 62
_IMAGE_POINTS: Final = 60
_LABEL_ROOM: Final = 90  # pixels of the axis that a time needs
_FONTS: Final = "DejaVu Sans, Liberation Sans, Noto Sans, Arial, Helvetica"
# Distinguishable without seeing red or green: Okabe and Ito.
_TONES: Final = ("#0b6fb3", "#b4690e", "#17745d", "#a3457f", "#6a6d00", "#4d4f57")
_PROBE: Final = f'<svg xmlns="http://www.w3.org/2000/svg" width="60" height="20"><text y="15" font-family="{_FONTS}">{{}}</text></svg>'


def painter() -> Paint | None:
    """None without the extra. It blocks for a tenth of a second.

    It raises ValueError where this machine has no font to write the labels with.
    """
    return _painted if find_spec("resvg_py") else None


def _painted(chart: Chart) -> bytes:
    if not _has_font():
        raise ValueError(f"no font to draw charts with: {_FONTS}")
    return _png(svg_of(chart))


@lru_cache(maxsize=1)
def _has_font() -> bool:
    return _png(_PROBE.format("0")) != _png(_PROBE.format(""))


def _png(svg: str) -> bytes:
    return bytes(import_module("resvg_py").svg_to_bytes(svg_string=svg, zoom=2.0))


def svg_of(chart: Chart) -> str:
    """The chart as SVG: lines, a dashed baseline, a vertical line at the onset."""
    lines, drawn = columns(chart, _IMAGE_POINTS)
    values = [value for column in drawn for value in column.values]
    ticks = _ticks([*values, *([chart.usual] if chart.usual is not None else [])])
    body = [f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="#ffffff"/>']
    unit = label(chart.unit, 40)
    body.append(
        _svg_text(16, 26, title(chart) + (f", {unit}" if unit else ""), size=15, weight=700)
    )
    for tick in ticks:
        y = _y(tick, ticks)
        body.append(_svg_line(_LEFT, y, _WIDTH - _RIGHT, y, "#e4e1d9"))
        body.append(_svg_text(_LEFT - 8, y + 4, f"{tick:.6g}", anchor="end"))
    body += _axis(drawn)
    if (since := marked(chart, drawn)) is not None:
        x = _x(since, len(drawn))
        body.append(_svg_line(x, _TOP, x, _HEIGHT - _BOTTOM, "#b3372f", dash="3 3"))
        body.append(_svg_text(x + 4, _TOP + 10, chart.event, colour="#b3372f"))
    if chart.usual is not None:
        y = _y(chart.usual, ticks)
        body.append(_svg_line(_LEFT, y, _WIDTH - _RIGHT, y, "#686d69", dash="6 4"))
    for index in range(len(lines)):
        points = " ".join(
            f"{_x(at, len(drawn)):.1f},{_y(column.values[index], ticks):.1f}"
            for at, column in enumerate(drawn)
        )
        tone = _TONES[index % len(_TONES)]
        body.append(f'<polyline fill="none" stroke="{tone}" stroke-width="2" points="{points}"/>')
    body += _legend([label(line.name, 20) for line in lines], with_usual=chart.usual is not None)
    frame = f'width="{_WIDTH}" height="{_HEIGHT}" viewBox="0 0 {_WIDTH} {_HEIGHT}"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {frame}>{"".join(body)}</svg>'


def _ticks(values: Sequence[float]) -> list[float]:
    low, high = min([0.0, *values]), max([0.0, *values])
    rough = (high - low) / 4 or 0.25
    power = 10.0 ** math.floor(math.log10(rough))
    step = next((n * power for n in (1, 2, 5) if n * power >= rough), 10 * power)
    first = math.floor(low / step)
    return [n * step for n in range(first, max(math.ceil(high / step), first + 1) + 1)]


def _x(index: int, number: int) -> float:
    return _LEFT + (_WIDTH - _LEFT - _RIGHT) * (index / (number - 1) if number > 1 else 0.5)


def _y(value: float, ticks: Sequence[float]) -> float:
    low, high = ticks[0], ticks[-1]
    return _TOP + (_HEIGHT - _TOP - _BOTTOM) * (1 - (value - low) / (high - low))


def _axis(drawn: Sequence[Column]) -> list[str]:
    told = times([column.at for column in drawn])
    every = max(1, math.ceil(len(told) * _LABEL_ROOM / (_WIDTH - _LEFT - _RIGHT)))
    y = _HEIGHT - _BOTTOM + 18
    return [
        _svg_text(_x(at, len(told)), y, f"{clock} UTC" if at == 0 else clock, anchor="middle")
        for at, clock in enumerate(told)
        if clock and at % every == 0
    ]


def _legend(names: Sequence[str], *, with_usual: bool) -> list[str]:
    found, x, y = [], float(_LEFT), _HEIGHT - 16
    told = [(name, _TONES[at % len(_TONES)], "") for at, name in enumerate(names)]
    for name, tone, dash in [*told, *([(USUAL, "#686d69", "6 4")] if with_usual else [])]:
        found += [
            _svg_line(x, y - 4, x + 18, y - 4, tone, dash=dash, width=3),
            _svg_text(x + 24, y, name),
        ]
        x += 40 + 7.5 * len(name)
    return found


def _svg_line(
    x1: float, y1: float, x2: float, y2: float, colour: str, *, dash: str = "", width: int = 1
) -> str:
    dashed = f' stroke-dasharray="{dash}"' if dash else ""
    place = f'x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"'
    return f'<line {place} stroke="{colour}" stroke-width="{width}"{dashed}/>'


def _svg_text(
    x: float,
    y: float,
    said: str,
    *,
    size: int = 12,
    weight: int = 400,
    anchor: str = "start",
    colour: str = "#1d1f1e",
) -> str:
    style = f'font-size="{size}" font-weight="{weight}" text-anchor="{anchor}" fill="{colour}"'
    where = f'x="{x:.1f}" y="{y:.1f}" font-family="{_FONTS}"'
    return f"<text {where} {style}>{escape(said, quote=False)}</text>"
