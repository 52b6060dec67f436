"""Charts and tables as plain text: modals take neither block, and screen readers read it in order."""

from collections.abc import Sequence

from bot.domain.chart import Chart, columns, marked
from bot.domain.tabled import Cell, Table
from bot.slack.views.charts import USUAL, label, times, title

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
    widths = [max(map(len, column)) for column in zip(heads, *rows, strict=True)]
    told = [_line(row, widths) for row in (heads, *rows)]
    left_out = len(table.rows) - len(rows)
    return "\n".join([*told, f"… and {left_out} more rows"] if left_out else told)


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    padded = "  ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True))
    return padded.rstrip()[:_LINE_CHARS]


def _text(cell: Cell) -> str:
    return f"{cell:.6g}" if isinstance(cell, float) else label(cell, _CELL_CHARS)
