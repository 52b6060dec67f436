"""Slack as the place where people read: placeholders, live answers, cards, whispers, notes.

Admins get direct messages.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import KW_ONLY, dataclass, field
from datetime import UTC, datetime

import structlog

from bot.domain.chart import Chart
from bot.domain.ids import ChannelId, MessageTs, Place, TeamId, TurnId, UserId
from bot.domain.markdown_blocks import without_bold
from bot.domain.proposal import Proposal, deciders
from bot.domain.session import Ask
from bot.ports.failures import SurfaceFailed, SurfaceGone
from bot.ports.platform import AnswerStream, ChatSurface, PlatformTraits
from bot.slack.api.single_flight import KeyedLock
from bot.slack.delivery.agent_sessions import AgentSessions
from bot.slack.delivery.chart_files import ChartFiles
from bot.slack.delivery.outbox import Outbox, Patience, card_mark, note_mark, persist
from bot.slack.delivery.pacing import Rates, Urgency
from bot.slack.delivery.streams import Streams
from bot.slack.roles.directory import NOT_PAGED, Paged, Paging, SlackRoleDirectory
from bot.slack.text.blocks import Part, markdown
from bot.slack.text.limits import MARKDOWN_CHARS, SECTION_CHARS
from bot.slack.text.links import NO_LINKS, LinkPolicy
from bot.slack.text.split import split
from bot.slack.views.answer_messages import AnswerMessages
from bot.slack.views.cards import OpenCards, Stored, card, nothing_stored
from bot.slack.views.charts import with_charts
from bot.slack.views.native_answer import NativeAnswer
from bot.slack.views.render import IN_LINE, WAITING, AnswerView, render
from bot.slack.views.stream import SlackAnswerStream, Stands

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


async def _own_clock() -> datetime:
    return datetime.now(UTC)


async def _not_kept(_turn: TurnId, _ts: MessageTs) -> None: ...


async def _no_warning(_proposal: Proposal) -> str:
    return ""


@dataclass(slots=True, eq=False, repr=False)
class SlackSurface(ChatSurface):
    """The surface of one workspace.

    `take_first_look` says, once per ask, that no earlier attempt posted an answer, which saves a
    look-up. `redact` masks secrets in growing answers; it may raise RedactionFailed. `now` is the
    database's clock, which decides whether a proposal is open. `resolve` replaces the placeholders
    of a session. `stored` reads a proposal. `paging` finds the people that a card mentions.
    `stands` stores a changed first message. `warning` is text for a card; it never raises.
    """

    outbox: Outbox
    _: KW_ONLY
    links: LinkPolicy = NO_LINKS
    paging: Paging | None = None
    now: Callable[[], Awaitable[datetime]] = _own_clock
    take_first_look: Callable[[Ask], bool] = lambda _ask: False
    patience: Patience = field(default_factory=Patience)
    redact: Callable[[str], str] = str
    show_cost: bool = True
    resolve: Callable[[str, Place], str] = lambda text, _place: text
    streams: Streams | None = None
    sessions: AgentSessions | None = None
    stored: Stored = nothing_stored
    stands: Stands = _not_kept
    chart_files: ChartFiles | None = None
    warning: Callable[[Proposal], Awaitable[str]] = _no_warning
    _growing: dict[TurnId, NativeAnswer] = field(init=False, default_factory=dict)
    _answers: dict[TurnId, AnswerMessages] = field(init=False, default_factory=dict)
    _live: dict[TurnId, SlackAnswerStream] = field(init=False, default_factory=dict)
    _locks: KeyedLock = field(init=False, default_factory=KeyedLock)

    @property
    def traits(self) -> PlatformTraits:
        return TRAITS

    async def open_answer(self, ask: Ask) -> MessageTs:
        ts = await self._opened(ask, AnswerView(ask.turn_id, question=ask.text))
        if self.sessions is not None:
            self.sessions.begins(ask)
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
                messages = self._messages(ask, complete=self.take_first_look(ask))
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
        if self.streams is not None and not view.waiting:
            native = NativeAnswer(self.streams, messages, ask.asker, self.links)

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
            await persist(self.patience, lambda: self._open(messages, placeholder))

    async def _open(self, messages: AnswerMessages, placeholder: Part) -> None:
        """Not posted where the turn for it does not come soon: then the first message says more."""
        if not messages.complete:
            await messages.discover()
        if messages.posted:
            return
        scheduler = self.outbox.scheduler
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
            ask=ask,
            messages=messages,
            scheduler=self.outbox.scheduler,
            native=self._growing.get(turn),
            links=self.links,
            patience=self.patience,
            redact=self.redact,
            resolve=self.resolve,
            on_end=lambda finished: self._ended(ask, finished),
            show_cost=self.show_cost,
            cards=OpenCards(self.outbox, self.stored, self.now),
            stands=self.stands,
            chart_files=self.chart_files,
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
        if self.sessions is not None:
            self.sessions.shows(proposal)
        return ts

    async def whisper(
        self, place: Place, user: UserId, text: str, charts: Sequence[Chart] = ()
    ) -> None:
        try:
            await self.outbox.whisper(place, user, with_charts(self._parts(text)[:1], charts)[0])
        except (SurfaceGone, SurfaceFailed) as error:
            _log.info("slack.ephemeral.undelivered", error=str(error))

    async def say(
        self, place: Place, text: str, key: str, charts: Sequence[Chart] = ()
    ) -> MessageTs:
        parts = with_charts(self._parts(text), charts)
        async with self._locks.hold(key):
            ts = await persist(self.patience, lambda: self._note(place, parts, key))
        if self.chart_files is not None:
            await self.chart_files.share(place, charts, key, ts)
        return ts

    async def _card(self, proposal: Proposal) -> MessageTs:
        ts = proposal.card_ts
        if not ts:
            oldest = f"{proposal.created_at.timestamp() - _CLOCK_SKEW_S:.6f}"
            found = await self.outbox.find(proposal.place, card_mark(proposal.id), oldest)
            ts = found.get(0)
        if not ts:
            paged = await self.paging.called(proposal) if self.paging else NOT_PAGED
            part = await self._drawn(proposal, paged)
            return await self.outbox.post(proposal.place, part, card_mark(proposal.id))
        await self.outbox.scheduler.edit_permit()
        paged = self.paging.listed(proposal) if self.paging else NOT_PAGED
        await self.outbox.edit(proposal.place.channel, ts, await self._drawn(proposal, paged))
        return ts

    async def _drawn(self, proposal: Proposal, paged: Paged) -> Part:
        warning = await self.warning(proposal)
        return card(proposal, deciders(proposal), await self.now(), paged, warning)

    async def _note(self, place: Place, parts: Sequence[Part], key: str) -> MessageTs:
        found = await self.outbox.find(place, note_mark(key))
        for index, part in enumerate(parts):
            if index not in found:
                found[index] = await self.outbox.post(place, part, note_mark(key, index))
        return found[0]

    def _parts(self, text: str) -> list[Part]:
        bodies = [piece.safe for piece in split(text.strip("\n"), self.links)]
        return [Part(without_bold(b), (markdown(b),)) for b in bodies if b.strip()] or [
            Part("…", ())
        ]

    def _messages(self, ask: Ask, *, complete: bool) -> AnswerMessages:
        return AnswerMessages(
            self.outbox, ask.place, ask.turn_id, ask.ts, complete=complete, streams=self.streams
        )

    def _ended(self, ask: Ask, finished: bool) -> None:
        self._forget(ask.turn_id)
        if finished and self.sessions is not None:
            self.sessions.ends(ask.place)

    def _forget(self, turn: TurnId) -> None:
        self._answers.pop(turn, None)
        self._growing.pop(turn, None)
        self._live.pop(turn, None)


@dataclass(slots=True, eq=False, repr=False)
class AdminMessages:
    """Sends to each admin; a failure for one does not affect the rest."""

    outbox: Outbox
    roles: SlackRoleDirectory
    team: TeamId
    admin_roles: Sequence[str]

    async def tell(self, text: str) -> int:
        reached = 0
        part = Part(without_bold(text), (markdown(text),))
        for user in await self.roles.members(self.admin_roles):
            # chat.postMessage takes a person's id for the direct message with them.
            place = Place(self.team, ChannelId(user), MessageTs(""))
            try:
                await self.outbox.post(place, part, note_mark("admins"))
                reached += 1
            except (SurfaceGone, SurfaceFailed) as error:
                _log.warning("slack.admin.not_reached", error=str(error))
        return reached
