"""The few Block Kit shapes we use, built within Slack's limits, and the message they make up.

Every `mrkdwn` text is verbatim: Slack then links no bare URL and no name of its own accord. Texts
given to `section` and `context` must be escaped already; those of buttons must not be.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from pydantic import JsonValue

from bot.slack.limits import (
    ACTIONS_ELEMENTS,
    BUTTON_TEXT_CHARS,
    BUTTON_VALUE_CHARS,
    CONTEXT_ELEMENTS,
    SECTION_CHARS,
)
from bot.slack.mrkdwn import plain

Block = dict[str, JsonValue]


@dataclass(frozen=True, slots=True)
class Part:
    """One message. `text` is what notifications show, and all there is when blocks are refused."""

    text: str
    blocks: tuple[Block, ...]


def markdown(text: str) -> Block:
    """Standard Markdown; see `bot.slack.markdown` for what makes a text fit for it."""
    return {"type": "markdown", "text": text}


def section(text: str) -> Block:
    """A paragraph of mrkdwn. Raises ValueError above Slack's 3,000 characters."""
    if len(text) > SECTION_CHARS:
        raise ValueError(f"a section holds {SECTION_CHARS} characters, not {len(text)}")
    return {"type": "section", "text": _mrkdwn(text)}


def context(*texts: str) -> Block:
    """Small print, at most ten elements; the oldest are dropped by the caller, not here."""
    if len(texts) > CONTEXT_ELEMENTS:
        raise ValueError(f"a context holds {CONTEXT_ELEMENTS} elements, not {len(texts)}")
    return {"type": "context", "elements": [_mrkdwn(text) for text in texts]}


def header(text: str) -> Block:
    """A title: plain text, at most 150 characters."""
    return {"type": "header", "text": {"type": "plain_text", "text": plain(text, 150)}}


def actions(buttons: Sequence[Block]) -> Block:
    """A row of buttons, at most 25."""
    if len(buttons) > ACTIONS_ELEMENTS:
        raise ValueError(f"actions hold {ACTIONS_ELEMENTS} elements, not {len(buttons)}")
    return {"type": "actions", "elements": list(buttons)}


def button(text: str, action_id: str, value: str, style: str = "") -> Block:
    """A button; `value` is an opaque id that comes back with a click. `style`: primary, danger."""
    if len(value) > BUTTON_VALUE_CHARS:
        raise ValueError("a button's value holds 2,000 characters")
    made: Block = {
        "type": "button",
        "text": {"type": "plain_text", "text": plain(text, BUTTON_TEXT_CHARS)},
        "action_id": action_id,
        "value": value,
    }
    return made | {"style": style} if style else made


def _mrkdwn(text: str) -> Block:
    return {"type": "mrkdwn", "text": text, "verbatim": True}
