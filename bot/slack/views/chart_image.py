"""A chart as SVG, and as PNG through resvg (the extra `kortex[charts]`): why, docs/adr says.

On white, which both of Slack's themes show; nothing in it is loaded from anywhere.
"""

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from html import escape
from importlib import import_module
from importlib.util import find_spec
from typing import Final

from bot.domain.chart import Chart, Column, columns, marked
from bot.slack.views.charts import USUAL, label, times, title

Paint = Callable[[Chart], bytes]

_WIDTH, _HEIGHT, _LEFT, _RIGHT, _TOP, _BOTTOM = 720, 300, 64, 20, 46, 62
_POINTS: Final = 60
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
    lines, drawn = columns(chart, _POINTS)
    values = [value for column in drawn for value in column.values]
    ticks = _ticks([*values, *([chart.usual] if chart.usual is not None else [])])
    body = [f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="#ffffff"/>']
    unit = label(chart.unit, 40)
    body.append(_text(16, 26, title(chart) + (f", {unit}" if unit else ""), size=15, weight=700))
    for tick in ticks:
        y = _y(tick, ticks)
        body.append(_line(_LEFT, y, _WIDTH - _RIGHT, y, "#e4e1d9"))
        body.append(_text(_LEFT - 8, y + 4, f"{tick:.6g}", anchor="end"))
    body += _axis(drawn)
    if (since := marked(chart, drawn)) is not None:
        x = _x(since, len(drawn))
        body.append(_line(x, _TOP, x, _HEIGHT - _BOTTOM, "#b3372f", dash="3 3"))
        body.append(_text(x + 4, _TOP + 10, chart.event, colour="#b3372f"))
    if chart.usual is not None:
        y = _y(chart.usual, ticks)
        body.append(_line(_LEFT, y, _WIDTH - _RIGHT, y, "#686d69", dash="6 4"))
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
        _text(_x(at, len(told)), y, f"{clock} UTC" if at == 0 else clock, anchor="middle")
        for at, clock in enumerate(told)
        if clock and at % every == 0
    ]


def _legend(names: Sequence[str], *, with_usual: bool) -> list[str]:
    found, x, y = [], float(_LEFT), _HEIGHT - 16
    told = [(name, _TONES[at % len(_TONES)], "") for at, name in enumerate(names)]
    for name, tone, dash in [*told, *([(USUAL, "#686d69", "6 4")] if with_usual else [])]:
        found += [_line(x, y - 4, x + 18, y - 4, tone, dash=dash, width=3), _text(x + 24, y, name)]
        x += 40 + 7.5 * len(name)
    return found


def _line(
    x1: float, y1: float, x2: float, y2: float, colour: str, *, dash: str = "", width: int = 1
) -> str:
    dashed = f' stroke-dasharray="{dash}"' if dash else ""
    place = f'x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"'
    return f'<line {place} stroke="{colour}" stroke-width="{width}"{dashed}/>'


def _text(
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
