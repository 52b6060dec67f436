"""Tool calls and remarks as the task cards of a stream: a card each, and the line above them.

Chunks: https://docs.slack.dev/reference/methods/chat.appendStream. A card's texts are plain; a card
that is in progress when its stream ends is shown as an error, so none is left so.
"""

import html
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from bot.slack.text.blocks import Block
from bot.slack.text.mrkdwn import plain
from bot.slack.views.tool_chips import Chip, ChipState, activity

MODE = "plan"
THINKING = "Thinking…"
ANSWERING = "Writing the answer…"
_TITLE_CHARS = 150
_OUTPUT_CHARS = 200
# A plan holds a hundred (observed); more than these nobody reads.
_CARDS = 40
_IN_PROGRESS, _COMPLETE, _ERROR = "in_progress", "complete", "error"
_STATUS = {
    ChipState.RUNNING: _IN_PROGRESS,
    ChipState.SLOW: _IN_PROGRESS,
    ChipState.OK: _COMPLETE,
    ChipState.CUT: _COMPLETE,
    ChipState.WARNED: _ERROR,
    ChipState.BROKEN: _ERROR,
}


@dataclass(frozen=True, slots=True)
class Card:
    """One task card."""

    id: str
    title: str
    status: str
    output: str = ""

    @property
    def chunk(self) -> Block:
        """As Slack wants it."""
        made: Block = {
            "type": "task_update",
            "id": self.id,
            "title": self.title,
            "status": self.status,
        }
        return made | {"output": self.output} if self.output else made


def opening(name: str) -> Card:
    """The first card of every stream; its id says whose stream it is."""
    return Card(name, "Read the question", _COMPLETE)


def cards(chips: Mapping[str, Chip], notices: Sequence[str]) -> list[Card]:
    """What they show of the calls and the remarks; the newest are left out once there are many."""
    made = [_card(f"call:{key}"[-200:], chip) for key, chip in chips.items()]
    made += [
        Card(f"remark:{at}", plain(f"ℹ️ {text}", _TITLE_CHARS), _COMPLETE)
        for at, text in enumerate(notices)
    ]
    return made[:_CARDS]


def closed(card: Card) -> Card:
    """As it stands when its stream ends."""
    return replace(card, status=_COMPLETE) if card.status == _IN_PROGRESS else card


def headline(chips: Mapping[str, Chip], *, is_writing: bool) -> str:
    """What is going on now."""
    doing = activity(list(chips.values()))
    if doing:
        return plain(html.unescape(doing), _TITLE_CHARS)
    return ANSWERING if is_writing else THINKING


def last_headline(chips: Mapping[str, Chip]) -> str:
    """What was done, for the one who unfolds it later."""
    count = len(chips)
    if not count:
        return "Answered without a look at the systems"
    return f"Made {count} call{'' if count == 1 else 's'}"


def title_chunk(title: str) -> Block:
    """The line above the cards."""
    return {"type": "plan_update", "title": title}


def text_chunk(text: str) -> Block:
    """More of the answer."""
    return {"type": "markdown_text", "text": text}


# A call's card is looked at for every append of its answer, and changes twice or so.
@lru_cache(maxsize=1_024)
def _card(name: str, chip: Chip) -> Card:
    title = plain(f"{chip.name} {chip.subject}".strip(), _TITLE_CHARS)
    return Card(name, title, _STATUS[chip.state], plain(chip.detail, _OUTPUT_CHARS))
