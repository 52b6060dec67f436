"""One live answer: events in, calls out when the workspace's scheduler allows, the final always.

It grows by appends as long as Slack and the text allow it (`native_answer`), and else by edits.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise

from bot.domain.chart import Chart
from bot.domain.charted import chart_for
from bot.domain.ids import MessageTs
from bot.domain.turn_events import TextDelta, TurnEvent, TurnFinished
from bot.ports.failures import SurfaceFailed
from bot.ports.platform import AnswerStream, OnPart, no_part
from bot.privacy.redactor import showable
from bot.slack.delivery.edit_queue import EditSlot
from bot.slack.delivery.outbox import Patience, persist
from bot.slack.delivery.pacing import Urgency
from bot.slack.delivery.scheduler import EditScheduler
from bot.slack.text.blocks import Part
from bot.slack.text.links import NO_LINKS, LinkPolicy
from bot.slack.text.markdown import hold_back
from bot.slack.views.answer_messages import AnswerMessages
from bot.slack.views.native_answer import EXPIRE_S, NativeAnswer
from bot.slack.views.render import AnswerView, render
from tools.redactor import RedactionFailed


async def _no_cards(_text: str) -> Sequence[str]:
    return ()


async def _ignore_part(_ts: MessageTs) -> None: ...


class SlackAnswerStream(AnswerStream):
    """Shows one live answer by edits or appends.

    `on_end` is called once, after `finish` or `aclose`.

    `redact` masks secrets in the whole text, because a model may write one in pieces. `resolve`
    replaces placeholders. `cards` are links to open proposals that the text names. `stands` is
    called if the first message changed. `share` uploads charts that are not blocks. The last three
    never raise.
    """

    def __init__(
        self,
        messages: AnswerMessages,
        scheduler: EditScheduler,
        *,
        links: LinkPolicy = NO_LINKS,
        patience: Patience | None = None,
        redact: Callable[[str], str] = str,
        resolve: Callable[[str], str] = str,
        on_end: Callable[[bool], None] = lambda _finished: None,
        show_cost: bool = True,
        native: NativeAnswer | None = None,
        question: str = "",
        cards: Callable[[str], Awaitable[Sequence[str]]] = _no_cards,
        stands: Callable[[MessageTs], Awaitable[None]] = _ignore_part,
        share: Callable[[Sequence[Chart]], Awaitable[None]] | None = None,
    ) -> None:
        self._messages = messages
        self._native = native
        self._scheduler = scheduler
        self._links = links
        self._patience = patience or Patience()
        self._redact = redact
        self._resolve = resolve
        self._on_end = on_end
        self._cards = cards
        self._share = share
        self._has_ended = False
        self._view = AnswerView(messages.turn, show_cost=show_cost, question=question)
        grows = native is not None and native.growth is not None
        self._expiry: asyncio.TimerHandle | None = None
        self._stands = stands
        self._known_at = messages.posted[0] if messages.posted else None
        self._to_appear: EditSlot | None = None
        self._text_is_due = False
        if grows:
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
            self._slot = self._scheduler.open()
        try:
            # Before the view is final: an edit under way would show it without them.
            self._view.open_cards = tuple(await self._cards(final.text))
            self._view.apply(final)
            parts = await self._end_growth() or self._parts()
            if not self._messages.complete:
                await persist(self._patience, self._messages.discover)
            await self._let_go()
            if self._is_posted_sooner(parts):
                self._messages.replace()
            self._messages.seen = len(self._messages.posted) or None
            await self._post_missing(parts, on_part)
            while (index := self._messages.stale(parts)) is not None:
                await persist(self._patience, self._final_edit(index, parts[index]))
                await on_part()
            await persist(self._patience, lambda: self._messages.trim(len(parts)))
            if self._messages.posted[0] != self._known_at:
                await self._stands(self._messages.posted[0])
        finally:
            self._end(finished=True)
        if self._share is not None:
            chart = chart_for(final)
            await self._share([chart] if chart else [])

    async def _post_missing(self, parts: tuple[Part, ...], on_part: OnPart) -> None:
        while (index := len(self._messages.posted)) < len(parts):
            urgency = Urgency.FIRST if self._messages.replaced else Urgency.FINAL
            show = partial(self._messages.show, index, parts[index], urgency)
            await persist(self._patience, show)
            await on_part()

    def _is_posted_sooner(self, parts: tuple[Part, ...]) -> bool:
        """Whether to replace its one message; of several the order in the thread would change."""
        messages = self._messages
        if len(messages.posted) != 1 or messages.unmarked or messages.stale(parts) != 0:
            return False
        return self._scheduler.is_posted_sooner(messages.place.channel, len(parts))

    async def _let_go(self) -> None:
        await self._still()
        if self._slot is self._to_appear:
            self._show_by(self._scheduler.open())

    async def _still(self) -> None:
        slot: EditSlot | None = None
        while slot is not self._slot:  # what ends may go on in another
            slot = self._slot
            slot.edit = None
            await slot.idle.wait()

    def stop_edits(self) -> None:
        """Begin no call any more, from this moment on: another process shows this answer."""
        self._messages.is_left = True
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
                await self._messages.show(index, part)
            finally:
                self._slot.done()

        return edit

    async def _end_growth(self) -> tuple[Part, ...]:
        native = self._native
        if native is None or native.growth is None:
            return ()

        async def end() -> tuple[Part, ...]:
            await self._slot.permit()  # an append under way ends before, and none follows
            try:
                shown = self._shown()
                parts = render(shown, self._links)
                await native.finish(shown, parts)
            finally:
                self._slot.done()
            return parts

        parts = await persist(self._patience, end)
        self._go_on_by_edits()
        return parts

    async def _grow(self) -> bool:
        native = self._native
        if native is None:
            return False
        before = native.growth
        was_called = await native.grow(self._shown())
        if self._messages.is_left:
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
        edit = None if self._messages.is_left else self._edit
        self._show_by(self._scheduler.open(edit))

    def _show_by(self, slot: EditSlot) -> None:
        self._slot.edit = None
        self._slot.close()
        self._slot = slot

    async def _appear(self) -> bool:
        messages = self._messages
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
        index = self._messages.stale(parts)
        if index is None:
            return False
        is_edit = index < len(self._messages.posted)
        await self._messages.show(index, parts[index])
        if self._messages.stale(parts) is not None:
            self._slot.changed()
        return is_edit

    def _parts(self) -> tuple[Part, ...]:
        return render(self._shown(), self._links)

    def _shown(self) -> AnswerView:
        view, final = self._view, self._view.finished
        text = view.text if final else showable(view.text)
        ends = [len("".join(view.pieces[:start])) for start in view.starts]
        try:
            safe = self._redact(text)
            if safe != text:  # each part ends where its beginning does that is redacted alone
                befores = [self._redact(text[:end]) for end in ends]
                ends = [len(each) for each in befores if safe.startswith(each)]
        except RedactionFailed as error:
            raise SurfaceFailed("could not be redacted", retryable=False) from error
        bounds = pairwise([0, *ends, len(safe)])
        pieces = [self._resolve(safe[start:end]) for start, end in bounds]
        if final is not None:
            text, narration = self._resolve(final.text), self._resolve(final.narration)
            final = replace(final, text=text, narration=narration)
        return replace(view, pieces=pieces, starts=list(range(1, len(pieces))), finished=final)

    def _end(self, *, finished: bool) -> None:
        if self._expiry is not None:
            self._expiry.cancel()
        self._slot.close()
        if not self._has_ended:
            self._has_ended = True
            self._on_end(finished)
