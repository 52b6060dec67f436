"""Builders of Block Kit blocks within Slack's limits, and the message made from them.

Every `mrkdwn` text is verbatim, so that Slack links no bare URL or name. Texts for `section` and
`context` must be escaped by the caller; texts of buttons must not be.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from pydantic import JsonValue

from bot.slack.text.limits import (
    ACTIONS_ELEMENTS,
    BUTTON_TEXT_CHARS,
    BUTTON_VALUE_CHARS,
    CONTEXT_ELEMENTS,
    MAX_OPTION_GROUPS,
    MAX_OPTIONS,
    OPTION_TEXT_CHARS,
    OPTION_VALUE_CHARS,
    PLACEHOLDER_CHARS,
    SECTION_CHARS,
    SPOKEN_CHARS,
)
from bot.slack.text.mrkdwn import plain

Block = dict[str, JsonValue]


@dataclass(frozen=True, slots=True)
class Part:
    """One message. `text` is what notifications show, and all there is when blocks are refused."""

    text: str
    blocks: tuple[Block, ...]


@dataclass(frozen=True, slots=True)
class Option:
    """One choice of a menu. `value` is an opaque id that comes back, unique in its menu."""

    text: str
    value: str


def markdown(text: str) -> Block:
    """Standard Markdown; see `bot.slack.text.markdown` for what makes a text fit for it."""
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


def actions(elements: Sequence[Block]) -> Block:
    """A row of buttons and menus, at most 25."""
    if len(elements) > ACTIONS_ELEMENTS:
        raise ValueError(f"actions hold {ACTIONS_ELEMENTS} elements, not {len(elements)}")
    return {"type": "actions", "elements": list(elements)}


def button(text: str, action_id: str, value: str, style: str = "", spoken: str = "") -> Block:
    """A button; `value` is an opaque id that comes back with a click. `style`: primary, danger.

    `spoken` is what a screen reader says in place of the text.
    """
    if len(value) > BUTTON_VALUE_CHARS:
        raise ValueError("a button's value holds 2,000 characters")
    made: Block = {
        "type": "button",
        "text": {"type": "plain_text", "text": plain(text, BUTTON_TEXT_CHARS)},
        "action_id": action_id,
        "value": value,
    }
    if spoken:
        made["accessibility_label"] = plain(spoken, SPOKEN_CHARS)
    return made | {"style": style} if style else made


def dialog(title: str, text: str, yes: str) -> Block:
    """What a client asks before it sends a click; the lengths are those of a confirm object.

    docs.slack.dev/reference/block-kit/composition-objects/confirmation-dialog-object
    """
    return {
        "title": {"type": "plain_text", "text": plain(title, 100)},
        "text": {"type": "plain_text", "text": plain(text, 300)},
        "confirm": {"type": "plain_text", "text": plain(yes, 30)},
        "deny": {"type": "plain_text", "text": "Back"},
    }


def select(placeholder: str, action_id: str, options: Sequence[Option]) -> Block:
    """A menu; above Slack's 100 options they are put in groups named "first to last" text."""
    made: Block = {
        "type": "static_select",
        "action_id": action_id,
        "placeholder": {"type": "plain_text", "text": plain(placeholder, PLACEHOLDER_CHARS)},
    }
    if len(options) <= MAX_OPTIONS:
        return made | {"options": [_option(each) for each in options]}
    starts = range(0, len(options), MAX_OPTIONS)
    if len(starts) > MAX_OPTION_GROUPS:
        raise ValueError(f"a menu holds {MAX_OPTION_GROUPS} groups, not {len(starts)}")
    groups = [options[start : start + MAX_OPTIONS] for start in starts]
    return made | {"option_groups": [_group(group) for group in groups]}


def text_chars(value: JsonValue | Sequence[Block]) -> int:
    """How many characters of text blocks hold, as Slack counts them for a whole message."""
    if isinstance(value, dict):
        own = value.get("text")
        inner = sum(text_chars(each) for each in value.values() if not isinstance(each, str))
        return inner + (len(own) if isinstance(own, str) else 0)
    return sum(text_chars(each) for each in value) if isinstance(value, list | tuple) else 0


def _group(options: Sequence[Option]) -> Block:
    first, last = (each.text.partition(" ")[0] for each in (options[0], options[-1]))
    return {
        "label": {"type": "plain_text", "text": plain(f"{first} to {last}", OPTION_TEXT_CHARS)},
        "options": [_option(each) for each in options],
    }


def _option(option: Option) -> Block:
    if len(option.value) > OPTION_VALUE_CHARS:
        raise ValueError(f"an option's value holds {OPTION_VALUE_CHARS} characters")
    text = plain(option.text, OPTION_TEXT_CHARS)
    return {"text": {"type": "plain_text", "text": text}, "value": option.value}


def _mrkdwn(text: str) -> Block:
    return {"type": "mrkdwn", "text": text, "verbatim": True}
