"""One live answer: events in, edits out when the workspace's scheduler allows, the final always."""

from collections.abc import Awaitable, Callable
from dataclasses import replace

from bot.domain.turn_events import TextDelta, TurnEvent, TurnFinished
from bot.ports.failures import SurfaceFailed
from bot.ports.platform import AnswerStream
from bot.privacy.stream import showable
from bot.slack.sending.persist import Patience, persist
from bot.slack.sending.scheduler import EditScheduler
from bot.slack.showing.answer_messages import AnswerMessages
from bot.slack.showing.render import AnswerView, render
from bot.slack.text.blocks import Part
from bot.slack.text.links import NO_LINKS, LinkPolicy
from bot.slack.text.markdown import hold_back
from tools.redactor import RedactionFailed


class SlackAnswerStream(AnswerStream):
    """Edits the messages of one answer. `on_end` is called once, after `finish` or `aclose`.

    `redact` masks secrets in the text as far as it has come: only there is one whole that a model
    wrote in pieces. `resolve` turns placeholders into what people may read.
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
        on_end: Callable[[], None] = lambda: None,
        show_cost: bool = True,
    ) -> None:
        self._messages = messages
        self._links = links
        self._patience = patience or Patience()
        self._redact = redact
        self._resolve = resolve
        self._on_end = on_end
        self._view = AnswerView(messages.turn, show_cost=show_cost)
        self._slot = scheduler.open(self._edit)
        self._text_is_due = False

    def feed(self, event: TurnEvent) -> None:
        """Show it when the workspace's edit budget allows; the newest state wins."""
        if self._view.apply(event):
            self._slot.changed(first=self._is_first_text(event))

    async def finish(self, final: TurnFinished) -> None:
        """Deliver the whole final text. Raises SurfaceGone, SurfaceFailed."""
        self._view.apply(final)
        parts = self._parts()
        try:
            if not self._messages.complete:
                await persist(self._patience, self._messages.discover)
            # An edit under way ends before the final begins, and none follows it.
            while (index := self._messages.stale(parts)) is not None:
                await persist(self._patience, self._final_edit(index))
            await persist(self._patience, lambda: self._messages.trim(len(parts)))
        finally:
            self._end()

    async def aclose(self) -> None:
        """Stop editing without a final text (the turn moved elsewhere)."""
        self._slot.edit = None
        try:
            await self._slot.idle.wait()
        finally:
            self._end()

    def _is_first_text(self, event: TurnEvent) -> bool:
        if self._text_is_due or not isinstance(event, TextDelta):
            return False
        self._text_is_due = bool(hold_back(showable(self._view.text)).strip())
        return self._text_is_due

    def _final_edit(self, index: int) -> Callable[[], Awaitable[None]]:
        async def edit() -> None:
            await self._slot.final()
            try:
                parts = self._parts()
                await self._messages.show(index, parts[index])
            finally:
                self._slot.done()

        return edit

    async def _edit(self) -> bool:
        """Bring one stale message up to date; the next one waits for its own permission."""
        parts = self._parts()
        index = self._messages.stale(parts)
        if index is None:
            return False
        await self._messages.show(index, parts[index])
        if self._messages.stale(parts) is not None:
            self._slot.changed()
        return True

    def _parts(self) -> tuple[Part, ...]:
        """Raises SurfaceFailed: what cannot be redacted is not shown."""
        text = self._view.text
        if self._view.finished is None:
            text = showable(text)
        try:
            pieces = [self._resolve(self._redact(text))]
        except RedactionFailed as error:
            raise SurfaceFailed("could not be redacted", retryable=False) from error
        final = self._view.finished
        if final is not None:
            final = replace(final, text=self._resolve(final.text))
        return render(replace(self._view, pieces=pieces, finished=final), self._links)

    def _end(self) -> None:
        self._slot.close()
        self._on_end()
