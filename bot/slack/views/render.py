"""A turn as messages: the view folded from its events, and the parts it is shown as.

Pure. Events cost O(1) each; rendering costs O(text) and happens once per edit. A message shows what
fits a phone's screen, also while the answer grows: nothing is taken away at its end.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final, assert_never

from bot.domain.budget import NO_MODEL
from bot.domain.charted import chart_for
from bot.domain.claims import ClaimState
from bot.domain.findings import LOOKS_AT_NOTHING
from bot.domain.ids import TurnId
from bot.domain.markdown_blocks import without_bold
from bot.domain.phone_screen import Screen, growing_screen, screen_of, with_states
from bot.domain.turn_events import (
    Notice,
    ProposalRaised,
    RoundReplaced,
    RoundStarted,
    TextDelta,
    ToolProgress,
    TurnEnd,
    TurnEvent,
    TurnFinished,
)
from bot.slack.text.blocks import Block, Part, actions, button, context, markdown
from bot.slack.text.card_spoofing import disclaimed
from bot.slack.text.links import NO_LINKS, LinkPolicy, remark
from bot.slack.text.markdown import hold_back
from bot.slack.text.mrkdwn import inline
from bot.slack.text.split import split
from bot.slack.views.charts import chart_block
from bot.slack.views.modals import feedback_buttons
from bot.slack.views.sources import evidence_button, fits_view
from bot.slack.views.tool_chips import Chip, activity, advance, chip_texts
from tools.records import CallEnded, CallEvent, CallStarted

CURSOR = "▌"
PLACEHOLDER = "Thinking…"
WRITING = "Writing the rest of the answer…"
IN_LINE = "Queued: I answer the question before yours in this thread first."
WAITING = "Queued: I am at my limit of parallel answers. Yours starts as soon as one ends."
STOP_ACTION = "turn:stop"
_NOTICES_SHOWN = 3
_NOTICE_CHARS = 200
_QUESTION_CHARS = 150


@dataclass(slots=True)
class AnswerView:
    """The state of an answer, for edits and for streams. One per turn; used by one task.

    `starts`: the pieces with which a part of the text begins, the first text after a result.
    """

    turn_id: TurnId
    pieces: list[str] = field(default_factory=list)
    starts: list[int] = field(default_factory=list)
    has_read: bool = False
    chips: dict[str, Chip] = field(default_factory=dict)
    notices: list[str] = field(default_factory=list)
    finished: TurnFinished | None = None
    round_start: int = 0
    provider: str = ""  # of the round under way
    show_cost: bool = True
    waiting: str = ""  # for what
    question: str = ""  # as long as there is nothing else to be notified of
    open_cards: tuple[str, ...] = ()  # lines of mrkdwn, made by us

    def apply(self, event: TurnEvent) -> bool:
        """Fold one event in; whether it changes what people see."""
        match event:
            case TextDelta():
                self._say(event.text)
            case RoundStarted():
                self.provider = event.provider
                return self._next_round()
            case RoundReplaced():
                del self.pieces[self.round_start :]
                self.starts = [each for each in self.starts if each <= self.round_start]
            case ToolProgress():
                self._advance(event.event)
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
        return "".join(self.pieces)

    @property
    def parts(self) -> list[str]:
        """The text before and after each look at something; the last one concludes so far."""
        bounds = pairwise([0, *self.starts, len(self.pieces)])
        parts = ["".join(self.pieces[start:end]) for start, end in bounds]
        return [part for part in parts if part.strip()]

    def _say(self, text: str) -> None:
        if self.has_read:
            self.starts.append(len(self.pieces))
            self.has_read = False
        self.pieces.append(text)

    def _advance(self, event: CallEvent) -> None:
        key = _call_id(event)
        self.chips[key] = advance(self.chips.get(key), event)
        if isinstance(event, CallStarted):
            self.has_read |= event.name not in LOOKS_AT_NOTHING

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
    screen = _final_screen(view.text, final)
    *earlier, last = _bodies(screen.text, links) or [""]
    chart = chart_for(final)
    drawn = [block] if chart and (block := chart_block(chart)) else []
    ending = [each for each in _ending(final, screen.text) if each]
    below = (*drawn, *_below(view, final, screen, " ".join(ending)))
    if not last:
        return (Part(" ".join(ending) or "The model gave no text.", below),)
    told = without_bold(last) if earlier else notified(last)
    # Who stopped it is known to people in the thread.
    if ending and final.end is not TurnEnd.STOPPED:
        told = f"{ending[0]}\n{told}"
    full = [_full_part(body, index) for index, body in enumerate(earlier)]
    return (*full, Part(told, (markdown(last), *below)))


def _full_part(body: str, index: int) -> Part:
    """A message that is full. The first one is what people are notified of."""
    return Part(without_bold(body) if index else notified(body), (markdown(body),))


def _final_screen(streamed: str, final: TurnFinished) -> Screen:
    """Less than the whole text only where the whole is behind the button."""
    if not final.text.strip():
        return Screen(streamed)
    screen = screen_of(final)
    if not screen.more or (final.is_kept and fits_view(with_states(final))):
        return screen
    return Screen(final.text)


def _bodies(text: str, links: LinkPolicy) -> list[str]:
    pieces = split(disclaimed(text.strip("\n")), links)
    return [piece.safe for piece in pieces if piece.safe.strip()]


def _live(view: AnswerView, links: LinkPolicy) -> tuple[Part, ...]:
    screen = growing_screen(hold_back(view.text), view.provider)
    if screen.more and len(parts := view.parts) > 1:
        screen = growing_screen(hold_back(parts[-1]), view.provider)
    last = next(iter(_bodies(screen.text, links)), "")
    chips = list(view.chips.values())
    waits = (WRITING if screen.more else "") if last else view.waiting or PLACEHOLDER
    status = activity(chips) or waits
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
    return (Part(notified(last) if last else _waited_for(view, status), tuple(blocks)),)


def _waited_for(view: AnswerView, status: str) -> str:
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


_USER_ID = re.compile(r"[UW][A-Z0-9]{1,30}")
_REMARKS_SHOWN = 2
_REMARK_CHARS = 110
_CHANGES_CHARS = 600
# The ends that people may vote on: those that the turn reached by itself.
_JUDGED = frozenset({TurnEnd.ANSWERED, TurnEnd.DEPTH_EXCEEDED})


def _below(view: AnswerView, final: TurnFinished, screen: Screen, ending: str) -> list[Block]:
    """The blocks below the answer's text."""
    blocks = [context(ending)] if ending else []
    blocks += [context("\n".join(view.open_cards))] if view.open_cards else []
    remarks = [f"ℹ️ {remark(each, _REMARK_CHARS)}" for each in final.notices[:_REMARKS_SHOWN]]
    more = len(final.notices) - len(remarks)
    name, opens = evidence_button(
        view.turn_id, len(final.evidence), len(final.notices), has_more=bool(screen.more)
    )
    if more:
        remarks[-1] += f" · {more} more behind *{name}*"
    if screen.more:
        remarks.append(_left_out(screen, name))
    blocks.append(context("\n".join([*remarks, _footer(final, show_cost=view.show_cost)])))
    row = [opens] if final.evidence or more or screen.more else []
    row += feedback_buttons(view.turn_id) if final.end in _JUDGED else ()
    return [*blocks, actions(row)] if row else blocks


def _left_out(screen: Screen, name: str) -> str:
    lines = f"{screen.more} more line{'' if screen.more == 1 else 's'} behind *{name}*"
    doubts = f"{screen.doubts} statement{'' if screen.doubts == 1 else 's'} not backed by it"
    return f"{lines}, {doubts}" if screen.doubts else lines


def _ending(final: TurnFinished, text: str) -> Sequence[str]:
    kept = _kept(final, text)
    match final.end:
        case TurnEnd.ANSWERED:
            return (
                () if final.text.strip() else ("⚠ The model returned no text.", kept, "Ask again.")
            )
        case TurnEnd.DEPTH_EXCEEDED:
            return (
                f"⚠ No conclusion within {final.rounds - 1} rounds of tools (`[llm] max_tool_depth`).",
                kept,
                "Ask a narrower question to go on.",
            )
        case TurnEnd.STOPPED:
            return f"⏹ Stopped{_by(final.stopped_by)}.", kept
        case TurnEnd.BUDGET:
            return (
                "⚠ A limit on model use is reached.",
                kept,
                "Ask again when it ends. `/kortex budget` shows the limits to admins.",
            )
        case TurnEnd.FAILED:
            changes = inline(final.changes, _CHANGES_CHARS) or "Nothing was changed; ask again."
            return "🔴 This answer could not be finished.", kept, changes
        case _:
            assert_never(final.end)


def _by(user: str) -> str:
    return f" by <@{user}>" if _USER_ID.fullmatch(user) else ""


def _kept(final: TurnFinished, text: str) -> str:
    count = len(final.evidence)
    if count == 0:
        if text.strip():
            return "The text so far is kept above."
        # A turn without a round may have been resumed: what it had shown before is not known here.
        return "No results were gathered." if final.rounds else ""
    return f"{count} result{'s' if count > 1 else ''} behind *Evidence*."


def _footer(final: TurnFinished, *, show_cost: bool) -> str:
    rounds = f"{final.rounds} round{'' if final.rounds == 1 else 's'}"
    held = _held(final)
    if final.provider == NO_MODEL:
        asked = final.usage.input + final.usage.output
        how = "answered without a model" if asked else "no model was used"
        return " · ".join(filter(None, (how, NO_MODEL, rounds, held)))
    if not final.provider and not final.rounds and final.end is TurnEnd.ANSWERED:
        return "no model was used"
    model = "/".join(inline(each, 60) for each in (final.provider, final.model) if each)
    cost = _dollars(final.cost_usd_micros) if show_cost else ""
    return " · ".join(filter(None, (model, rounds, cost, held)))


def _held(final: TurnFinished) -> str:
    # Triage copies its figures from results. What no rule reads there is its judgement, or a pointer.
    is_own = final.provider == NO_MODEL
    unread = ClaimState.UNCHECKED
    count = sum(not is_own or bool(one.note) or one.state is not unread for one in final.claims)
    if not count:
        return ""
    entailed = sum(claim.state is ClaimState.SUPPORTED for claim in final.claims)
    return f"{entailed} of {count} statement{'' if count == 1 else 's'} checked"


def _dollars(usd_micros: int | None) -> str:
    if usd_micros is None:
        return ""
    return f"${usd_micros / 1_000_000:.4f}"


_MOST: Final = 300  # characters of a first sentence; beyond it, the line
_ENDS: Final = re.compile(
    r"(?<!\be\.g)(?<!\bi\.e)(?<!\bvs)(?<!\bca)(?<!\bapprox)[.!?](?:\*\*)?(?:\s?\[E\d[E\d, ]*\])*(?=\s|$)"
)
_HEADING: Final = re.compile(r"^(?:#{1,6}|[-*+]|\d{1,2}[.)]|>)\s+")
# Separate parts stay separate: two halves of a name would make a link.
_CITED: Final = re.compile(r"\s\[E\d{1,4}(?:, ?E\d{1,4})*\](?=$|\s|[.,;:!?)](?:\s|$))")
_NO_PROSE: Final = ("```", "~~~", "|")


def notified(body: str) -> str:
    """The same text, not bold, with its first sentence on a line of its own. `body` is safe."""
    body = without_bold(body)
    text = body.lstrip()
    if text.startswith(_NO_PROSE):
        return body
    line, _, below = text.partition("\n")
    found = _ENDS.search(line, 0, _MOST)
    if found is None and not below:
        return body  # it may be half a sentence yet
    first, rest = (line[: found.end()], line[found.end() :]) if found else (line, "")
    plain = _HEADING.sub("", first).strip()
    if plain.count("**") % 2 == 0:
        plain = plain.replace("**", "")
    elif plain.startswith("**"):
        plain, rest = plain[2:], f"**{rest.lstrip()}"
    plain = _CITED.sub("", plain)
    return "\n".join(each for each in (plain, rest.strip(), below) if each) or body
