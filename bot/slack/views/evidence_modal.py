"""One result as people open it: its picture, what was asked, over which time, and where to go on.

A modal takes no chart and no sortable table (https://docs.slack.dev/reference/block-kit/blocks), so
both are text there; the JSON is behind a button, or stands below where there is no picture of it.
"""

from collections.abc import Mapping
from datetime import datetime

from pydantic import JsonValue

from bot.domain.asked import link_of, query_of, window_of
from bot.domain.charted import charts_of
from bot.domain.tabled import table_of
from bot.domain.turn_events import Evidence
from bot.slack.text.blocks import Block, actions, button
from bot.slack.text.limits import BUTTON_URL_CHARS
from bot.slack.text.mrkdwn import visible
from bot.slack.views.modals import (
    View,
    evidence_view,
    fitting_parts,
    headline,
    paragraph,
    preformatted,
    view_of,
)
from bot.slack.views.plain_charts import laid_out, plotted

RAW_ACTION = "evidence:raw"
LINK_ACTION = "evidence:link"
_MOST_CHARTS = 6
_ASKED_CHARS = 2_500


def opened_view(
    evidence: Evidence,
    arguments: Mapping[str, JsonValue],
    templates: Mapping[str, str],
    value: str,
    metadata: str = "",
) -> View:
    """The modal. `value` comes back with the press that asks for the JSON, `metadata` with its view.

    `templates` are links by family of signals, of the operators' own.
    """
    pictures = [plotted(each) for each in charts_of(evidence, arguments)[:_MOST_CHARTS]]
    table = table_of(evidence)
    if table is not None and not pictures:
        pictures.append(laid_out(table))
    blocks: list[JsonValue] = [paragraph(headline(evidence))]
    for picture in filter(None, pictures):
        blocks += [preformatted(part) for part in fitting_parts(visible(picture))]
    blocks += _asked(evidence, arguments)
    buttons = _buttons(evidence, arguments, templates, value, with_raw=bool(pictures))
    if buttons:
        blocks.append(actions(buttons))
    if not pictures:
        held = evidence_view(evidence)["blocks"]
        blocks += held[1:] if isinstance(held, list) else []
    return view_of(f"Result E{evidence.number}", blocks) | {"private_metadata": metadata}


def _asked(evidence: Evidence, arguments: Mapping[str, JsonValue]) -> list[JsonValue]:
    asked, window = query_of(arguments), window_of(evidence)
    blocks: list[JsonValue] = []
    if asked:
        blocks += [paragraph("Asked"), preformatted(visible(asked)[:_ASKED_CHARS])]
    if window:
        blocks.append(paragraph(f"From {_moment(window[0])} to {_moment(window[1])} UTC"))
    return blocks


def _moment(at: datetime) -> str:
    return f"{at:%d %b %Y %H:%M:%S}"


def _buttons(
    evidence: Evidence,
    arguments: Mapping[str, JsonValue],
    templates: Mapping[str, str],
    value: str,
    *,
    with_raw: bool,
) -> list[Block]:
    made = []
    url = link_of(evidence, arguments, templates)
    if url and len(url) <= BUTTON_URL_CHARS:
        made.append(button("Open where it was measured", LINK_ACTION, value) | {"url": url})
    if with_raw:
        made.append(button("Raw JSON", RAW_ACTION, value))
    return made
