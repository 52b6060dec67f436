"""A turn as messages: the view folded from its events, and the parts it is shown as.

Pure. Events cost O(1) each; rendering costs O(text) and happens once per edit.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import assert_never

from bot.domain.charted import chart_for
from bot.domain.ids import TurnId
from bot.domain.turn_events import (
    Notice,
    ProposalRaised,
    RoundReplaced,
    RoundStarted,
    TextDelta,
    ToolProgress,
    TurnEvent,
    TurnFinished,
)
from bot.slack.text.blocks import Block, Part, actions, button, context, markdown
from bot.slack.text.card_spoofing import disclaimed
from bot.slack.text.links import NO_LINKS, LinkPolicy, remark
from bot.slack.text.markdown import hold_back
from bot.slack.text.mrkdwn import clean, inline
from bot.slack.text.notified import notified
from bot.slack.text.split import split
from bot.slack.views.answer_footer import closing
from bot.slack.views.charts import chart_block
from bot.slack.views.tool_chips import Chip, activity, advance, chip_texts
from tools.records import CallEnded, CallEvent

CURSOR = "▌"
PLACEHOLDER = "Thinking…"
IN_LINE = "Waiting: I answer the question before yours in this thread first."
WAITING = "Waiting: many asked at once. I begin as soon as an answer before yours is done."
STOP_ACTION = "turn:stop"
_NOTICES_SHOWN = 3
_NOTICE_CHARS = 200
_QUESTION_CHARS = 150


@dataclass(slots=True)
class AnswerView:
    """What is known of an answer so far. One per turn; not shared between tasks."""

    turn_id: TurnId
    pieces: list[str] = field(default_factory=list)
    chips: dict[str, Chip] = field(default_factory=dict)
    notices: list[str] = field(default_factory=list)
    finished: TurnFinished | None = None
    round_start: int = 0
    show_cost: bool = True
    waiting: str = ""  # for what
    question: str = ""  # as long as there is nothing else to be notified of
    open_cards: tuple[str, ...] = ()  # lines of mrkdwn, made by us
    heads: tuple[str, ...] = ()  # the source of messages that are full and stay as they are

    def apply(self, event: TurnEvent) -> bool:
        """Fold one event in; whether it changes what people see."""
        match event:
            case TextDelta():
                self.pieces.append(event.text)
            case RoundStarted():
                return self._next_round()
            case RoundReplaced():
                del self.pieces[self.round_start :]
            case ToolProgress():
                key = _call_id(event.event)
                self.chips[key] = advance(self.chips.get(key), event.event)
            case Notice():
                if event.text in self.notices:
                    return False  # each round says it
                self.notices.append(event.text)
            case ProposalRaised():
                return False  # its card is a message of its own
            case TurnFinished():
                self.finished = event
            case _:
                assert_never(event)
        return True

    @property
    def text(self) -> str:
        """The answer so far."""
        return "".join(self.pieces)

    def _next_round(self) -> bool:
        if self.pieces and self.pieces[-1] != "\n\n":
            self.pieces.append("\n\n")
        self.round_start = len(self.pieces)
        return False


def render(view: AnswerView, links: LinkPolicy = NO_LINKS) -> tuple[Part, ...]:
    """The messages that show the view now: at least one, in reading order.

    A finished answer is its text, one chart, a footer and one row of buttons.
    """
    if view.finished is None:
        return _live(view, links)
    final = view.finished
    text = final.text if final.text.strip() else view.text
    bodies = _bodies(text, links, view.heads)
    closed = closing(view.turn_id, final, text, show_cost=view.show_cost, cards=view.open_cards)
    *earlier, last = bodies or [""]
    shown = [markdown(last)] if last else []
    chart = chart_for(final)
    drawn = [block] if chart and (block := chart_block(chart)) else []
    told = (last if earlier else notified(last)) if last else closed.headline
    if last and closed.failure:
        told = f"{closed.failure}\n{told}"
    return (
        *(full_part(body, index) for index, body in enumerate(earlier)),
        Part(told, (*shown, *drawn, *closed.blocks)),
    )


def full_part(body: str, index: int) -> Part:
    """A message that is full. The first one is what people are notified of."""
    return Part(body if index else notified(body), (markdown(body),))


def _bodies(text: str, links: LinkPolicy, heads: Sequence[str] = ()) -> list[str]:
    """A message each: those that are full already, if the text still begins with them."""
    said = clean(text).lstrip("\n") if heads else text
    full = "".join(heads)
    if heads and said.startswith(full):
        return [b for head in heads for b in _bodies(head, links)] + _bodies(
            said[len(full) :], links
        )
    pieces = split(disclaimed(text.strip("\n")), links)
    return [piece.safe for piece in pieces if piece.safe.strip()]


def _live(view: AnswerView, links: LinkPolicy) -> tuple[Part, ...]:
    bodies = _bodies(hold_back(view.text), links, view.heads)
    *earlier, last = bodies or [""]
    chips = list(view.chips.values())
    status = activity(chips) or ("" if last else view.waiting or PLACEHOLDER)
    blocks: list[Block] = []
    if chips:
        blocks.append(context(*chip_texts(chips)))
    if last:
        blocks.append(markdown(_with_cursor(last)))
    blocks += [
        context(f"ℹ️ {remark(each, _NOTICE_CHARS)}") for each in view.notices[-_NOTICES_SHOWN:]
    ]
    if status:
        blocks.append(context(status))
    blocks.append(actions([button("Stop", STOP_ACTION, view.turn_id)]))
    told = (last if earlier else notified(last)) if last else _waited_for(view, status)
    return (
        *(full_part(body, index) for index, body in enumerate(earlier)),
        Part(told, tuple(blocks)),
    )


def _waited_for(view: AnswerView, status: str) -> str:
    """What a notification says of an answer that has no text yet."""
    if status != PLACEHOLDER or not view.question:
        return status
    return f"Looking into it: {inline(view.question, _QUESTION_CHARS)}"


def _with_cursor(body: str) -> str:
    # A cursor after a closed fence would end the fence's line.
    return f"{body}\n{CURSOR}" if body.endswith("```") else f"{body}{CURSOR}"


def _call_id(event: CallEvent) -> str:
    if isinstance(event, CallEnded):
        return event.outcome.record.tool_call_id
    return event.tool_call_id
