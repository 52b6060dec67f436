"""An answer in Slack's own streams: final text is appended, tool calls are task cards.

Appended text stays. If it no longer fits (a mark at a claim, a replaced round), if Slack refuses,
or if an append may have been lost, the stream ends and the answer continues by edits. Reasons:
docs/adr/0016-slacks-own-streams.md.

Chunks: https://docs.slack.dev/reference/methods/chat.appendStream. Slack shows a card that is in
progress at the end of its stream as an error, so each card is completed before.
"""

import html
from collections.abc import Awaitable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache

import structlog

from bot.domain.ids import MessageTs, Person
from bot.domain.phone_screen import growing_screen, phone_screen
from bot.ports.failures import MessageGone, SurfaceFailed, SurfaceGone
from bot.slack.api.web_api import RateLimited
from bot.slack.delivery.outbox import answer_mark
from bot.slack.delivery.streams import Streams
from bot.slack.text.blocks import Block, Part
from bot.slack.text.limits import PART_BYTES
from bot.slack.text.links import LinkPolicy
from bot.slack.text.markdown import growing
from bot.slack.text.mrkdwn import clean, plain
from bot.slack.views.answer_messages import AnswerMessages
from bot.slack.views.render import AnswerView
from bot.slack.views.tool_chips import Chip, ChipState, activity

_log = structlog.stdlib.get_logger(__name__)
MODE = "plan"
THINKING = "Thinking…"
ANSWERING = "Writing the answer…"
_TITLE_CHARS = 150
_OUTPUT_CHARS = 200
# A plan holds a hundred (observed); people do not read more than these.
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
    id: str
    title: str
    status: str
    output: str = ""

    @property
    def chunk(self) -> Block:
        made: Block = {
            "type": "task_update",
            "id": self.id,
            "title": self.title,
            "status": self.status,
        }
        return made | {"output": self.output} if self.output else made


def task_cards(view: AnswerView) -> list[Card]:
    """Cards of the calls and notices; beyond forty the newest are left out."""
    made = [_card(f"call:{key}"[-200:], chip) for key, chip in view.chips.items()]
    made += [
        Card(f"remark:{at}", plain(f"ℹ️ {text}", _TITLE_CHARS), _COMPLETE)
        for at, text in enumerate(view.notices)
    ]
    return made[:_CARDS]


def plan_title(chips: Mapping[str, Chip], *, is_writing: bool) -> str:
    doing = activity(list(chips.values()))
    if doing:
        return plain(html.unescape(doing), _TITLE_CHARS)
    return ANSWERING if is_writing else THINKING


def screens_of(view: AnswerView) -> str:
    """What a phone shows of each part of the text: sent words stay, and none comes too many."""
    *before, last = [clean(part).strip("\n") for part in view.parts] or [""]
    told = [phone_screen(part).text for part in before]
    return "\n\n".join([*told, growing_screen(last, view.provider).text])


def title_chunk(title: str) -> Block:
    """The line above the cards."""
    return {"type": "plan_update", "title": title}


def text_chunk(text: str) -> Block:
    return {"type": "markdown_text", "text": text}


# A call's card is looked at for every append of its answer, and changes twice or so.
@lru_cache(maxsize=1_024)
def _card(name: str, chip: Chip) -> Card:
    title = plain(f"{chip.name} {chip.subject}".strip(), _TITLE_CHARS)
    return Card(name, title, _STATUS[chip.state], plain(chip.detail, _OUTPUT_CHARS))


# Slack ends a stream after five minutes, busy or not (slackapi/python-slack-sdk issue 1859): before
# that the answer goes on by edits of the same message.
EXPIRE_S = 270.0
# Above this wait for the end of a stream, its last words are appended first.
_LAST_WORDS_S = 0.5


@dataclass(slots=True)
class Growth:
    """The message that grows now: the text and the cards that Slack has taken."""

    ts: MessageTs
    index: int
    began: float
    sent: str = ""
    title: str = THINKING
    cards: dict[str, Card] = field(default_factory=dict)


@dataclass(slots=True, eq=False, repr=False)
class NativeAnswer:
    """The streamed message of one answer. `growth` is None after it continues by edits."""

    streams: Streams
    messages: AnswerMessages
    reader: Person
    links: LinkPolicy
    growth: Growth | None = field(init=False, default=None)

    async def begin(self) -> bool:
        """Its message, if Slack lets it grow. Raises LockedOut, Unreachable."""
        if not self.streams.may_begin(self.messages.place, self.reader):
            return False
        index = len(self.messages.posted)
        # The first card of every stream: its id names the answer's part.
        card = Card(answer_mark(self.messages.turn, index).name, "Read the question", _COMPLETE)
        ts = await self.streams.begin(
            self.messages.place, self.reader, MODE, [title_chunk(THINKING), card.chunk]
        )
        if ts is None:
            return False
        self.messages.posted.append(ts)
        self.messages.unmarked.add(index)
        self.growth = Growth(ts, index, self.streams.scheduler.clock(), cards={card.id: card})
        return True

    async def grow(self, view: AnswerView) -> bool:
        """Append new text in at most a few calls. True if an append was sent.

        Raises RateLimited and SurfaceGone; any other failure sets `growth` to None.
        """
        growth = self.growth
        if growth is None:
            return False
        age_s = self.streams.scheduler.clock() - growth.began
        text = growing(screens_of(view), self.links)
        is_over = age_s >= EXPIRE_S or len(text.encode()) > PART_BYTES
        chunks = None if is_over else self._chunks(growth, text, view)
        if chunks is None:
            self.growth = None
            return False
        return await self._append(growth, chunks, text, view)

    async def finish(self, view: AnswerView, parts: tuple[Part, ...]) -> None:
        """Send the rest of the message and the blocks below it. Raises RateLimited, SurfaceGone."""
        growth = self.growth
        if growth is None:
            return
        part = parts[growth.index] if growth.index < len(parts) else None
        text, below = _split(part) if part else ("", ())
        if part is None or not text.startswith(growth.sent):
            await self._end(growth, self._closing(growth))
            return
        more = text[len(growth.sent) :]
        if more and self.streams.scheduler.stop_wait_s() > _LAST_WORDS_S:
            await self._append(growth, [text_chunk(more)], text, view)
            if self.growth is None:
                return
            more = ""
        chunks = [text_chunk(more)] if more else []
        count = len(view.chips)
        made = f"Made {count} call{'' if count == 1 else 's'}"
        title = made if count else "Answered from this thread only"
        chunks += [title_chunk(title), *self._closing(growth, view)]
        if await self._end(growth, chunks, below):
            self.messages.shown[growth.index] = part

    async def _append(
        self, growth: Growth, chunks: list[Block], text: str, view: AnswerView
    ) -> bool:
        """Whether a call was made. Where Slack did not take it, `growth` is None."""
        if not chunks:
            return False
        # While the call is under way the view goes on.
        title = plan_title(view.chips, is_writing=bool(text))
        cards = {card.id: card for card in task_cards(view)}
        call = self.streams.append(self.messages.place.channel, growth.ts, chunks)
        if await self._is_taken(growth, call, "slack.stream.lost"):
            growth.sent, growth.title = text, title
            growth.cards |= cards
        return True

    async def _end(
        self, growth: Growth, chunks: list[Block], blocks: tuple[Block, ...] = ()
    ) -> bool:
        mark = answer_mark(self.messages.turn, growth.index)
        call = self.streams.end(self.messages.place.channel, growth.ts, mark, chunks, blocks)
        is_taken = await self._is_taken(growth, call, "slack.stream.not_ended")
        self.growth = None
        if is_taken:
            self.messages.unmarked.discard(growth.index)
        return is_taken

    async def _is_taken(self, growth: Growth, call: Awaitable[None], event: str) -> bool:
        """Whether Slack took the call. If not, an edit with the whole text follows."""
        try:
            await call
        except MessageGone as gone:
            await self.messages.lose(growth.index, gone)
        except (RateLimited, SurfaceGone):
            raise
        except SurfaceFailed as error:  # refused, or perhaps taken
            _log.info(event, error=str(error))
        else:
            return True
        self.growth = None
        return False

    def _chunks(self, growth: Growth, text: str, view: AnswerView) -> list[Block] | None:
        # The certain text may shrink while more arrives; that is not a change.
        if not (text.startswith(growth.sent) or growth.sent.startswith(text)):
            return None
        more = text[len(growth.sent) :]
        title = plan_title(view.chips, is_writing=bool(growth.sent or more))
        chunks = [title_chunk(title)] if title != growth.title else []
        chunks += [c.chunk for c in task_cards(view) if growth.cards.get(c.id) != c]
        return [*chunks, text_chunk(more)] if more else chunks

    def _closing(self, growth: Growth, view: AnswerView | None = None) -> list[Block]:
        now = {card.id: card for card in task_cards(view)} if view else {}
        known = growth.cards
        last = {
            name: replace(card, status=_COMPLETE) if card.status == _IN_PROGRESS else card
            for name, card in (known | now).items()
        }
        return [card.chunk for name, card in last.items() if known.get(name) != card]


def _split(part: Part) -> tuple[str, tuple[Block, ...]]:
    first = part.blocks[0] if part.blocks else {}
    if first.get("type") != "markdown":
        return "", part.blocks
    return str(first.get("text", "")), part.blocks[1:]
