"""A table as a `data_table` block, its texts safe, as large as the message has room for."""

from pydantic import JsonValue

from bot.domain.tabled import Cell, Table
from bot.slack.showing.charts import label
from bot.slack.showing.chips import short
from bot.slack.text.blocks import Block

_CELL_CHARS = 80
_HEAD_CHARS = 30
PAGE_ROWS = 5


def table_block(table: Table, room_chars: int) -> Block | None:
    """Its first rows that fit; None where not even three do."""
    rows: list[JsonValue] = [[_text(label(head, _HEAD_CHARS)) for head in table.heads]]
    caption = f"E{table.evidence} {short(table.tool)}"
    room = room_chars - len(caption) - sum(map(len, table.heads))
    for row in table.rows:
        cells = [_cell(value) for value in row]
        room -= sum(len(str(cell["text"])) for cell in cells)
        if room < 0:
            break
        rows.append(list[JsonValue](cells))
    if len(rows) < 4:
        return None
    left_out = len(table.rows) - len(rows) + 1
    more = f", the first {len(rows) - 1} of {len(table.rows)} rows" if left_out else ""
    return {"type": "data_table", "caption": caption + more, "rows": rows, "page_size": PAGE_ROWS}


def _cell(value: Cell) -> Block:
    if isinstance(value, float):
        return {"type": "raw_number", "value": value, "text": f"{value:.10g}"}
    return _text(label(value, _CELL_CHARS))


def _text(text: str) -> Block:
    return {"type": "raw_text", "text": text or "–"}
