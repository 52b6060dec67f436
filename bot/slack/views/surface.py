"""Slack as the place where people read: placeholders, live answers, cards, whispers, notes."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime
from functools import partial

import structlog

from bot.domain.chart import Chart
from bot.domain.ids import MessageTs, Place, TurnId, UserId
from bot.domain.markdown_blocks import without_bold
from bot.domain.proposal import Proposal, deciders
from bot.domain.session import Ask
from bot.ports.failures import StorageUnavailable, SurfaceFailed, SurfaceGone
from bot.ports.platform import AnswerStream, ChatSurface, PlatformTraits
from bot.slack.api.single_flight import KeyedLock
from bot.slack.delivery.agent_sessions import AgentSessions
from bot.slack.delivery.chart_files import ChartFiles
from bot.slack.delivery.outbox import Outbox, Patience, card_mark, note_mark, persist
from bot.slack.delivery.pacing import Rates, Urgency
from bot.slack.delivery.streams import Streams
from bot.slack.roles.directory import NOT_PAGED, Paged, Paging
from bot.slack.text.blocks import Part, markdown
from bot.slack.text.limits import MARKDOWN_CHARS, SECTION_CHARS
from bot.slack.text.links import NO_LINKS, LinkPolicy
from bot.slack.text.split import split
from bot.slack.views.answer_messages import AnswerMessages
from bot.slack.views.cards import OpenCards, Stored, card, nothing_stored
from bot.slack.views.charts import with_charts
from bot.slack.views.native_answer import NativeAnswer
from bot.slack.views.render import IN_LINE, WAITING, AnswerView, render
from bot.slack.views.stream import SlackAnswerStream

_log = structlog.stdlib.get_logger(__name__)

# Answers opened here without a known end; a forgotten one is looked up in Slack again.
_ANSWERS_KEPT = 2_000
# A card is looked for from this long before its proposal was made, by our clock against Slack's.
_CLOCK_SKEW_S = 3_600
# What does not begin to grow at once is posted instead.
_ONCE = Patience(failures=1)


# A section holds the arguments and their frame: two fences, a heading.
TRAITS = PlatformTraits(
    name="slack",
    card_chars=SECTION_CHARS - 100,
    preview_chars=SECTION_CHARS - 500,
    message_chars=MARKDOWN_CHARS,
    edits_per_minute=Rates().edits_per_minute,
    private_messages=True,
    forms=True,
    charts=True,
)


Stands = Callable[[TurnId, MessageTs], Awaitable[None]]


async def _not_kept(_turn: TurnId, _ts: MessageTs) -> None: ...


async def _no_warning(_proposal: Proposal) -> str:
    return ""


class SlackSurface(ChatSurface):
    """The surface of one workspace.

    `take_first_look` says, once per ask, that no earlier attempt posted an answer, which saves a
    look-up. `redact` masks secrets in growing answers; it may raise RedactionFailed. `now` is the
    database's clock, which decides whether a proposal is open. `resolve` replaces the placeholders
    of a session. `stored` reads a proposal. `paging` finds the people that a card mentions.
    `stands` stores a changed first message; it may raise StorageUnavailable. `warning` is text for
    a card; it never raises.
    """

    def __init__(
        self,
        outbox: Outbox,
        *,
        links: LinkPolicy = NO_LINKS,
        roles_text: Callable[[Proposal], str] = deciders,
        paging: Paging | None = None,
        now: Callable[[], Awaitable[datetime]] | None = None,
        take_first_look: Callable[[Ask], bool] = lambda _ask: False,
        patience: Patience | None = None,
        redact: Callable[[str], str] = str,
        show_cost: bool = True,
        resolve: Callable[[str, Place], str] = lambda text, _place: text,
        streams: Streams | None = None,
        sessions: AgentSessions | None = None,
        stored: Stored = nothing_stored,
        stands: Stands = _not_kept,
        chart_files: ChartFiles | None = None,
        warning: Callable[[Proposal], Awaitable[str]] = _no_warning,
    ) -> None:
        self._outbox = outbox
        self._links = links
        self._roles_text = roles_text
        self._paging = paging
        self._now = now or _own_clock
        self._take_first_look = take_first_look
        self._patience = patience or Patience()
        self._redact = redact
        self._show_cost = show_cost
        self._resolve = resolve
        self._streams = streams
        self._sessions = sessions
        self._stands = stands
        self._chart_files = chart_files
        self._warning = warning
        self._cards = OpenCards(outbox, stored, self._now)
        self._growing: dict[TurnId, NativeAnswer] = {}
        self._answers: dict[TurnId, AnswerMessages] = {}
        self._live: dict[TurnId, SlackAnswerStream] = {}
        self._locks = KeyedLock()

    @property
    def traits(self) -> PlatformTraits:
        return TRAITS

    async def open_answer(self, ask: Ask) -> MessageTs:
        ts = await self._opened(ask, AnswerView(ask.turn_id, question=ask.text))
        if self._sessions is not None:
            self._sessions.begins(ask)
        return ts

    async def show_waiting(self, ask: Ask) -> None:
        """Post the placeholder of an answer that begins later; best effort."""
        await self._wait(ask, WAITING)

    async def show_in_line(self, ask: Ask) -> None:
        """The same for one that waits behind another of its thread."""
        await self._wait(ask, IN_LINE)

    async def _wait(self, ask: Ask, why: str) -> None:
        try:
            await self._opened(ask, AnswerView(ask.turn_id, waiting=why))
        except (SurfaceGone, SurfaceFailed) as error:
            _log.info("slack.queue_notice.not_shown", turn=ask.turn_id, error=str(error))

    async def _opened(self, ask: Ask, view: AnswerView) -> MessageTs:
        async with self._locks.hold(ask.turn_id):
            messages = self._answers.get(ask.turn_id)
            if messages is None:
                messages = self._messages(ask, complete=self._take_first_look(ask))
            if not messages.posted and not messages.is_opened:
                await self._begin(messages, ask, view)
                messages.is_opened = not view.waiting
            while len(self._answers) >= _ANSWERS_KEPT:
                self._forget(next(iter(self._answers)))
            self._answers[ask.turn_id] = messages
            return messages.posted[0] if messages.posted else MessageTs("")

    async def _begin(self, messages: AnswerMessages, ask: Ask, view: AnswerView) -> None:
        """A message that grows, or one that is edited: for what waits, and where Slack has none."""
        (placeholder,) = render(view)
        if self._streams is not None and not view.waiting:
            native = NativeAnswer(self._streams, messages, ask.asker, self._links)

            async def begin() -> bool:
                if not messages.complete:
                    await messages.discover()
                return bool(messages.posted) or await native.begin()

            try:
                await persist(_ONCE, begin)
            except SurfaceFailed as error:
                messages.complete = False  # it may be there all the same
                _log.info("slack.stream.not_started", error=str(error))
            if native.growth is not None:
                self._growing[ask.turn_id] = native
        if not messages.posted:
            await persist(self._patience, lambda: self._open(messages, placeholder))

    async def _open(self, messages: AnswerMessages, placeholder: Part) -> None:
        """Not posted where the turn for it does not come soon: then the first message says more."""
        if not messages.complete:
            await messages.discover()
        if messages.posted:
            return
        scheduler = self._outbox.scheduler
        try:
            async with asyncio.timeout(scheduler.rates.placeholder_s):
                await scheduler.post_permit(messages.place.channel, Urgency.PROGRESS)
        except TimeoutError:
            return
        await messages.show(0, placeholder, None)

    def stream(self, ask: Ask, ts: MessageTs) -> AnswerStream:
        turn = ask.turn_id
        messages = self._answers.get(turn)
        if messages is None:
            messages = self._messages(ask, complete=False)
            if ts:
                messages.posted.append(ts)
            else:
                messages.is_opened = True
                self._answers[turn] = messages
        live = self._live[turn] = SlackAnswerStream(
            messages,
            self._outbox.scheduler,
            links=self._links,
            patience=self._patience,
            redact=self._redact,
            resolve=lambda text: self._resolve(text, ask.place),
            on_end=lambda finished: self._ended(ask, finished),
            show_cost=self._show_cost,
            native=self._growing.get(turn),
            question=ask.text,
            cards=lambda text: self._cards.lines(text, ask.place),
            stands=partial(self._keep, turn),
            share=self._sharing(ask),
        )
        return live

    def stop_edits(self, turn: TurnId) -> None:
        """Another process shows its answer: nothing more is begun here, from this moment on."""
        if (live := self._live.get(turn)) is not None:
            live.stop_edits()

    async def show_card(self, proposal: Proposal) -> MessageTs:
        """Post the proposal's card, or bring the one already posted up to date.

        Tried once: who keeps on record that a card differs from its row tries again.
        """
        async with self._locks.hold(proposal.id):
            ts = await self._card(proposal)
        if self._sessions is not None:
            self._sessions.shows(proposal)
        return ts

    async def whisper(
        self, place: Place, user: UserId, text: str, charts: Sequence[Chart] = ()
    ) -> None:
        try:
            await self._outbox.whisper(place, user, with_charts(self._parts(text)[:1], charts)[0])
        except (SurfaceGone, SurfaceFailed) as error:
            _log.info("slack.ephemeral.undelivered", error=str(error))

    async def say(
        self, place: Place, text: str, key: str, charts: Sequence[Chart] = ()
    ) -> MessageTs:
        parts = with_charts(self._parts(text), charts)
        async with self._locks.hold(key):
            ts = await persist(self._patience, lambda: self._note(place, parts, key))
        await self._share(place, charts, key, ts)
        return ts

    def _sharing(self, ask: Ask) -> Callable[[Sequence[Chart]], Awaitable[None]] | None:
        if self._chart_files is None:
            return None
        return lambda charts: self._share(ask.place, charts, ask.turn_id, ask.ts)

    async def _share(self, place: Place, charts: Sequence[Chart], key: str, oldest: str) -> None:
        if self._chart_files is not None:
            await self._chart_files.share(place, charts, key, oldest)

    async def _card(self, proposal: Proposal) -> MessageTs:
        ts = proposal.card_ts
        if not ts:
            oldest = f"{proposal.created_at.timestamp() - _CLOCK_SKEW_S:.6f}"
            found = await self._outbox.find(proposal.place, card_mark(proposal.id), oldest)
            ts = found.get(0)
        if not ts:
            paged = await self._paging.called(proposal) if self._paging else NOT_PAGED
            part = await self._drawn(proposal, paged)
            return await self._outbox.post(proposal.place, part, card_mark(proposal.id))
        await self._outbox.scheduler.edit_permit()
        paged = self._paging.listed(proposal) if self._paging else NOT_PAGED
        await self._outbox.edit(proposal.place.channel, ts, await self._drawn(proposal, paged))
        return ts

    async def _drawn(self, proposal: Proposal, paged: Paged) -> Part:
        warning = await self._warning(proposal)
        return card(proposal, self._roles_text(proposal), await self._now(), paged, warning)

    async def _note(self, place: Place, parts: Sequence[Part], key: str) -> MessageTs:
        found = await self._outbox.find(place, note_mark(key))
        for index, part in enumerate(parts):
            if index not in found:
                found[index] = await self._outbox.post(place, part, note_mark(key, index))
        return found[0]

    def _parts(self, text: str) -> list[Part]:
        bodies = [piece.safe for piece in split(text.strip("\n"), self._links)]
        return [Part(without_bold(b), (markdown(b),)) for b in bodies if b.strip()] or [
            Part("…", ())
        ]

    def _messages(self, ask: Ask, *, complete: bool) -> AnswerMessages:
        return AnswerMessages(
            self._outbox,
            ask.place,
            ask.turn_id,
            ask.ts,
            complete=complete,
            streams=self._streams,
        )

    async def _keep(self, turn: TurnId, ts: MessageTs) -> None:
        try:
            await self._stands(turn, ts)
        except StorageUnavailable:  # a link in a report leads nowhere; the answer stays
            _log.info("slack.answer.place_not_stored", turn=turn)

    def _ended(self, ask: Ask, finished: bool) -> None:
        self._forget(ask.turn_id)
        if finished and self._sessions is not None:
            self._sessions.ends(ask.place)

    def _forget(self, turn: TurnId) -> None:
        self._answers.pop(turn, None)
        self._growing.pop(turn, None)
        self._live.pop(turn, None)


async def _own_clock() -> datetime:
    return datetime.now(UTC)
