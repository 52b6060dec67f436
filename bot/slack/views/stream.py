"""One live answer: events in, calls out when the workspace's scheduler allows, the final always.

It grows by appends as long as Slack and the text allow it (`native_answer`), and else by edits.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise

import structlog

from bot.domain.charted import chart_for
from bot.domain.ids import MessageTs, Place, TurnId
from bot.domain.session import Ask
from bot.domain.turn_events import TextDelta, TurnEvent, TurnFinished
from bot.ports.failures import StorageUnavailable, SurfaceFailed
from bot.ports.platform import AnswerStream, OnPart, no_part
from bot.privacy.redactor import showable
from bot.slack.delivery.chart_files import ChartFiles
from bot.slack.delivery.edit_queue import EditSlot
from bot.slack.delivery.outbox import Patience, persist
from bot.slack.delivery.pacing import Urgency
from bot.slack.delivery.scheduler import EditScheduler
from bot.slack.text.blocks import Part
from bot.slack.text.links import LinkPolicy
from bot.slack.text.markdown import hold_back
from bot.slack.views.answer_messages import AnswerMessages
from bot.slack.views.cards import OpenCards
from bot.slack.views.native_answer import EXPIRE_S, NativeAnswer
from bot.slack.views.render import AnswerView, render
from tools.redactor import RedactionFailed

_log = structlog.stdlib.get_logger(__name__)


# Stores that the first message of an answer is another one. May raise StorageUnavailable.
Stands = Callable[[TurnId, MessageTs], Awaitable[None]]


@dataclass(slots=True, eq=False, kw_only=True, repr=False)
class SlackAnswerStream(AnswerStream):
    """Shows one live answer by edits or appends.

    `on_end` is called once, after `finish` or `aclose`, with whether it finished. `redact` masks
    secrets in the whole text, because a model may write one in pieces. `resolve` replaces the
    placeholders of its place. `cards` finds links to open proposals that the text names.
    `chart_files` uploads charts that are not blocks.
    """

    ask: Ask
    messages: AnswerMessages
    scheduler: EditScheduler
    native: NativeAnswer | None
    links: LinkPolicy
    patience: Patience
    redact: Callable[[str], str]
    resolve: Callable[[str, Place], str]
    on_end: Callable[[bool], None]
    show_cost: bool
    cards: OpenCards
    stands: Stands
    chart_files: ChartFiles | None
    _view: AnswerView = field(init=False)
    _slot: EditSlot = field(init=False)
    _known_at: MessageTs | None = field(init=False)
    _to_appear: EditSlot | None = None
    _expiry: asyncio.TimerHandle | None = None
    _text_is_due: bool = False
    _has_ended: bool = False

    def __post_init__(self) -> None:
        messages, scheduler = self.messages, self.scheduler
        self._view = AnswerView(messages.turn, show_cost=self.show_cost, question=self.ask.text)
        self._known_at = messages.posted[0] if messages.posted else None
        if self.native is not None and self.native.growth is not None:
            self._slot = scheduler.open_stream(self._grow)
            self._expiry = self._wake_up()
        elif messages.posted:
            self._slot = scheduler.open(self._edit)
        else:
            self._slot = scheduler.open_post(messages.place.channel, self._appear)
            self._to_appear = self._slot
            self._slot.changed()

    def feed(self, event: TurnEvent) -> None:
        if self._view.apply(event):
            self._slot.changed(first=self._is_first_text(event))

    async def finish(self, final: TurnFinished, on_part: OnPart = no_part) -> None:
        if self._has_ended:  # an earlier try failed, and closed its place in the queue
            self._slot = self.scheduler.open()
        try:
            # Before the view is final: an edit under way would show it without them.
            self._view.open_cards = tuple(await self.cards.lines(final.text, self.ask.place))
            self._view.apply(final)
            parts = await self._end_growth() or self._parts()
            if not self.messages.complete:
                await persist(self.patience, self.messages.discover)
            await self._let_go()
            if self._is_posted_sooner(parts):
                self.messages.replace()
            self.messages.seen = len(self.messages.posted) or None
            await self._post_missing(parts, on_part)
            while (index := self.messages.stale(parts)) is not None:
                await persist(self.patience, self._final_edit(index, parts[index]))
                await on_part()
            await persist(self.patience, lambda: self.messages.trim(len(parts)))
            if self.messages.posted[0] != self._known_at:
                await self._keep_place(self.messages.posted[0])
        finally:
            self._end(finished=True)
        if self.chart_files is not None and (chart := chart_for(final)):
            ask = self.ask
            await self.chart_files.share(ask.place, [chart], ask.turn_id, ask.ts)

    async def _keep_place(self, ts: MessageTs) -> None:
        try:
            await self.stands(self.ask.turn_id, ts)
        except StorageUnavailable:  # a link in a report leads nowhere; the answer stays
            _log.info("slack.answer.place_not_stored", turn=self.ask.turn_id)

    async def _post_missing(self, parts: tuple[Part, ...], on_part: OnPart) -> None:
        while (index := len(self.messages.posted)) < len(parts):
            urgency = Urgency.FIRST if self.messages.replaced else Urgency.FINAL
            show = partial(self.messages.show, index, parts[index], urgency)
            await persist(self.patience, show)
            await on_part()

    def _is_posted_sooner(self, parts: tuple[Part, ...]) -> bool:
        """Whether to replace its one message; of several the order in the thread would change."""
        messages = self.messages
        if len(messages.posted) != 1 or messages.unmarked or messages.stale(parts) != 0:
            return False
        return self.scheduler.is_posted_sooner(messages.place.channel, len(parts))

    async def _let_go(self) -> None:
        await self._still()
        if self._slot is self._to_appear:
            self._show_by(self.scheduler.open())

    async def _still(self) -> None:
        slot: EditSlot | None = None
        while slot is not self._slot:  # what ends may go on in another
            slot = self._slot
            slot.edit = None
            await slot.idle.wait()

    def stop_edits(self) -> None:
        """Begin no call any more, from this moment on: another process shows this answer."""
        self.messages.is_left = True
        self._slot.edit = None

    async def aclose(self) -> None:
        """Stop editing without a final text (the turn moved elsewhere).

        A call under way is waited for; none follows it, for its successor's answer may be there.
        """
        self.stop_edits()
        try:
            await self._still()
        finally:
            self._end(finished=False)

    def _is_first_text(self, event: TurnEvent) -> bool:
        if self._text_is_due or not isinstance(event, TextDelta):
            return False
        self._text_is_due = bool(hold_back(showable(self._view.text)).strip())
        return self._text_is_due

    def _final_edit(self, index: int, part: Part) -> Callable[[], Awaitable[None]]:
        async def edit() -> None:
            await self._slot.permit()
            try:
                await self.messages.show(index, part)
            finally:
                self._slot.done()

        return edit

    async def _end_growth(self) -> tuple[Part, ...]:
        native = self.native
        if native is None or native.growth is None:
            return ()

        async def end() -> tuple[Part, ...]:
            await self._slot.permit()  # an append under way ends before, and none follows
            try:
                shown = self._shown()
                parts = render(shown, self.links)
                await native.finish(shown, parts)
            finally:
                self._slot.done()
            return parts

        parts = await persist(self.patience, end)
        self._go_on_by_edits()
        return parts

    async def _grow(self) -> bool:
        native = self.native
        if native is None:
            return False
        before = native.growth
        was_called = await native.grow(self._shown())
        if self.messages.is_left:
            return was_called
        if native.growth is None:
            self._go_on_by_edits()
            self._slot.changed()
        elif native.growth is not before:
            self._expiry = self._wake_up()
            self._slot.changed()
        return was_called

    def _wake_up(self) -> asyncio.TimerHandle:
        """A stream in which nothing happens is ended too, before Slack ends it."""
        if self._expiry is not None:
            self._expiry.cancel()
        return asyncio.get_running_loop().call_later(EXPIRE_S, self._slot.changed)

    def _go_on_by_edits(self) -> None:
        edit = None if self.messages.is_left else self._edit
        self._show_by(self.scheduler.open(edit))

    def _show_by(self, slot: EditSlot) -> None:
        self._slot.edit = None
        self._slot.close()
        self._slot = slot

    async def _appear(self) -> bool:
        messages = self.messages
        if not messages.complete:
            await messages.discover()
        is_post = not messages.posted
        if messages.is_left:
            return False
        if is_post:
            await messages.show(0, self._parts()[0], None)
        self._go_on_by_edits()
        self._slot.changed()
        return is_post

    async def _edit(self) -> bool:
        parts = self._parts()
        index = self.messages.stale(parts)
        if index is None:
            return False
        is_edit = index < len(self.messages.posted)
        await self.messages.show(index, parts[index])
        if self.messages.stale(parts) is not None:
            self._slot.changed()
        return is_edit

    def _parts(self) -> tuple[Part, ...]:
        return render(self._shown(), self.links)

    def _shown(self) -> AnswerView:
        view, final, place = self._view, self._view.finished, self.ask.place
        text = view.text if final else showable(view.text)
        ends = [len("".join(view.pieces[:start])) for start in view.starts]
        try:
            safe = self.redact(text)
            if safe != text:  # each part ends where its beginning does that is redacted alone
                befores = [self.redact(text[:end]) for end in ends]
                ends = [len(each) for each in befores if safe.startswith(each)]
        except RedactionFailed as error:
            raise SurfaceFailed("could not be redacted", retryable=False) from error
        bounds = pairwise([0, *ends, len(safe)])
        pieces = [self.resolve(safe[start:end], place) for start, end in bounds]
        if final is not None:
            text, narration = (self.resolve(each, place) for each in (final.text, final.narration))
            final = replace(final, text=text, narration=narration)
        return replace(view, pieces=pieces, starts=list(range(1, len(pieces))), finished=final)

    def _end(self, *, finished: bool) -> None:
        if self._expiry is not None:
            self._expiry.cancel()
        self._slot.close()
        if not self._has_ended:
            self._has_ended = True
            self.on_end(finished)
