"""One turn, end to end: open the answer, run the loop, check it, keep it, deliver it.

A workflow body: everything with an effect is a step of the journal, so a turn that lost its process
goes on from its last finished step on another one.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace

import structlog
from pydantic import JsonValue

from adapters.llm.messages import CompleteRequest, ToolCall
from bot.chat.attachments import PictureAt, no_picture_at, reading_of
from bot.chat.delivery import NOT_YET, Delivery, ProposalsOf, no_proposals
from bot.chat.history import HISTORY_TOKENS, remembered
from bot.chat.loop import Loop, Renew
from bot.chat.recap import Recaps
from bot.chat.round_record import QuietReplay
from bot.chat.tool_calls import TurnTools
from bot.chat.turn_budget import Budget, TurnBudget
from bot.chat.turn_permissions import NO_RULES, UNKNOWN_NOTICE, RolesOf, TurnPermissions
from bot.chat.turn_request import Notes, Opened, TurnConfig, TurnRequests
from bot.chat.turn_result import (
    Investigated,
    broken,
    depth_finding,
    final_of,
    history_of,
    lost,
    not_kept,
    refused_turn,
    state_of,
    without_extras,
)
from bot.domain.channel import channel_of, session_name
from bot.domain.ids import MessageTs
from bot.domain.phone_screen import whole_of
from bot.domain.session import Ask, TurnState
from bot.domain.turn_events import Notice, TurnEnd, TurnFinished
from bot.ports.durability import Journal, Stops
from bot.ports.failures import StepAbandoned, StorageUnavailable, SurfaceFailed, SurfaceGone
from bot.ports.platform import (
    AnswerStream,
    AnswerSurface,
    ChannelNames,
    People,
    ReadersOf,
    ZoneOf,
    by_id,
    own_readers,
    unknown_zone,
)
from bot.ports.sessions import SessionStore, Undelivered
from bot.privacy.session_memory import Placeholders
from bot.telemetry.metrics import Metrics
from tools.call_limits import Spent
from tools.capabilities import CallContext, Clock
from tools.records import CallEvent, ToolOutcome
from tools.redactor import Redacted, Redactor

log = structlog.get_logger(__name__)


@dataclass(slots=True, eq=False, repr=False, kw_only=True)
class Turns:
    """Answers asks. One instance per process; `answer` is the durable workflow's body."""

    config: TurnConfig
    sessions: SessionStore
    channels: ChannelNames
    roles_of: RolesOf
    zone_of: ZoneOf = unknown_zone
    readers_of: ReadersOf = own_readers
    picture_at: PictureAt = no_picture_at
    surface: AnswerSurface
    undelivered: Undelivered
    proposals_of: ProposalsOf = no_proposals
    budget: Budget
    tools: TurnTools
    stops: Stops
    clock: Clock
    redactor: Redactor
    placeholders: Placeholders = field(default_factory=Placeholders)
    notes: Notes
    people: People = by_id
    metrics: Metrics
    recaps: Recaps | None = None
    _requests: TurnRequests = field(init=False)
    _delivery: Delivery = field(init=False)

    def __post_init__(self) -> None:
        self._requests = TurnRequests(
            self.config, self.sessions, self.tools, self.redactor, self.notes, self.zone_of,
            self.picture_at, self.people,
        )  # fmt: skip
        self._delivery = Delivery(self.surface, self.sessions, self.undelivered, self.proposals_of)

    async def answer(self, ask: Ask, journal: Journal) -> TurnFinished | None:
        """Answer one ask; None if the place is gone.

        A bug ends the turn as failed, with a reference for people. Raises StorageUnavailable, after
        people got a message.
        """
        with self.placeholders.within(ask.place.key):
            try:
                opened = await self._open(ask, journal)
            except Exception as error:
                final = await self._tell_unopened(ask, error)
                self.metrics.turn_ended(final.end.value)
                if isinstance(error, StorageUnavailable):
                    raise
                return final
            if opened is None:
                return None
            named = replace(ask, channel_name=opened.channel_name)
            final = await self._answered(named, opened, journal)
            self.metrics.turn_ended(final.end.value)
            return final

    async def end_lost(self, ask: Ask, told: bool, journal: Journal) -> None:
        """End a turn that cannot be resumed. `told`: people have already seen its end."""
        opened = None if told else await self._open(ask, journal)
        await self._keep(ask, None, journal)
        if opened is None:
            return
        stream = self.surface.stream(ask, opened.answer_ts)
        try:
            await self._deliver(ask, opened.answer_ts, lost(), journal, stream)
        finally:
            await stream.aclose()

    async def _open(self, ask: Ask, journal: Journal) -> Opened | None:
        """Store the turn and post its placeholder; None when the place is gone."""

        async def open_session() -> JsonValue:
            now = self.clock.now()
            rules = self.config.rules_at(ask.place.team)
            channel = channel_of(rules, await self.channels.for_asking(ask.place))
            name = session_name(channel.rule, channel.name)
            told, readers = await asyncio.gather(
                self._requests.told(ask.place, channel, now, ask.asker, ask.files, ask.text),
                self.readers_of(ask.place),
            )
            session = await self.sessions.begin_turn(ask, name, now, told)
            anew = session.resumed_by == ask.turn_id
            begun: list[JsonValue] = [session.id, session.name, now.isoformat(), anew]
            summary: list[JsonValue] = [session.summary, session.summary_ts]
            by_model = self.budget.rounds.asks_a_model
            looks, bound = self.config.first_look and by_model, HISTORY_TOKENS if by_model else 0
            about: list[JsonValue] = [channel.name, told, looks, readers.value, bound]
            return [*begun, *summary, *about, session.is_new]

        async def open_answer() -> JsonValue:
            return await self._delivery.open(ask)

        kept = await journal.step("open", open_session, with_next=True)
        assert isinstance(kept, list)  # noqa: S101 - written two lines up
        ts = await journal.step("placeholder", open_answer, with_next=True)
        if ts is None:
            log.info("turn.place_gone", turn=ask.turn_id)
            await self._keep(ask, None, journal)
            return None
        roles = await self.roles_of(ask.place, ask.asker)
        return Opened.of(kept, ask, MessageTs(str(ts)), roles, self.config)

    async def _tell_unopened(self, ask: Ask, error: Exception) -> TurnFinished:
        final = broken(ask, error, None, self.redactor)
        if not isinstance(error, StorageUnavailable):  # which is raised before any round ran
            final = await self._delivery.with_changes(ask, final)
        wordless = replace(ask, text=Redacted(""))
        with suppress(SurfaceGone, SurfaceFailed):
            ts = await self.surface.open_answer(wordless)
            stream = self.surface.stream(wordless, ts)
            try:
                await stream.finish(final)
            finally:
                await stream.aclose()
        with suppress(StorageUnavailable):
            await self.sessions.finish_turn(ask.turn_id, TurnState.FAILED, (), (), self.clock.now())
        return final

    async def _answered(self, ask: Ask, opened: Opened, journal: Journal) -> TurnFinished:
        stream = self.surface.stream(ask, opened.answer_ts)
        try:
            quiet = QuietReplay(journal, stream.feed)
            ended = await self._investigated(ask, opened, quiet)
            final = ended.final
            try:
                is_kept = await self._keep(ask, ended, journal, opened.session)
            except (StorageUnavailable, StepAbandoned) as error:
                why = not_kept(ask, error)
                told = replace(final, notices=(*final.notices, why))
                with suppress(SurfaceGone, SurfaceFailed):
                    await stream.finish(await self._delivery.with_changes(ask, told))
                raise
            final = replace(final, is_kept=is_kept)
            await self._deliver(ask, opened.answer_ts, final, journal, stream)
        finally:
            await stream.aclose()
        return final

    async def _investigated(self, ask: Ask, opened: Opened, journal: QuietReplay) -> Investigated:
        if opened.refusal:
            return refused_turn(opened.refusal)
        rules = self.config.rules_at(ask.place.team)
        channel = channel_of(rules, opened.channel_name)
        permissions = TurnPermissions(
            self.channels, rules, ask.place, channel, asks_again=opened.asks_name
        )
        rule = permissions.channel.rule
        if not rule.answers:
            return refused_turn(NO_RULES)
        context = self._requests.context(ask, permissions.channel, opened)
        stop = self.stops.watch(ask.turn_id)
        budget = self.budget.for_turn(
            ask, opened.session, rule.toolset, stop, rule.daily_usd_micros
        )
        notices = list(opened.notices)

        async def renew(request: CompleteRequest, number: int) -> CompleteRequest:
            nonlocal context
            if await permissions.learn(number, journal, stop):
                context = self._requests.context(ask, permissions.channel, opened)
                return await self._requests.renewed(
                    request, ask, permissions.channel, opened, context
                )
            if not permissions.channel.is_known and UNKNOWN_NOTICE not in notices:
                notices.append(UNKNOWN_NOTICE)
                journal.feed(Notice(UNKNOWN_NOTICE))
            return request

        loop = self._loop(ask, opened, lambda: context, budget, journal, renew)
        try:
            if self.recaps and (recap := await self.recaps.answer(ask, notices, journal, stop)):
                return Investigated(*recap)
            request = await self._requests.request(ask, permissions.channel, opened, context)
            bound = opened.history_tokens
            recalled = await remembered(request, list(notices), budget, journal, bound)
            end, talk = await loop.run(recalled.request, journal.feed, recalled.aside)
            told = [*notices, *recalled.notices]
            final = await final_of(ask, end, talk, told, self.redactor)
            if end is TurnEnd.STOPPED:
                final = replace(final, stopped_by=stop.by)
            return Investigated(final, history_of(end, talk), recalled.summary)
        except Exception as error:  # noqa: BLE001 - a bug must not leave people without an end
            said = history_of(TurnEnd.FAILED, loop.talk) if loop.talk else ()
            return Investigated(broken(ask, error, loop.talk, self.redactor), said)

    def _loop(
        self,
        ask: Ask,
        opened: Opened,
        context: Callable[[], CallContext],
        budget: TurnBudget,
        journal: Journal,
        renew: Renew,
    ) -> Loop:
        async def one_call(
            call: ToolCall,
            on_event: Callable[[CallEvent], None],
            *,
            untrusted_read: bool,
            spent: Spent,
        ) -> ToolOutcome:
            now = context()
            untrusted = untrusted_read or now.untrusted_read
            asking = replace(now, tool_call_id=call.id, untrusted_read=untrusted, spent=spent)
            call = replace(call, arguments=self.placeholders.resolved(call.arguments))
            return await self.tools.run(call, asking, on_event, budget.stop)

        return Loop(
            budget.round,
            one_call,
            journal,
            max_tool_rounds=self.config.max_tool_rounds,
            renew=renew,
            fallback=budget.without_model,
            files=reading_of(ask.files),
            look=opened.look,
        )

    async def _keep(
        self, ask: Ask, ended: Investigated | None, journal: Journal, session: str = ""
    ) -> bool:
        """Store the end of the turn; whether its whole answer is stored."""
        state = state_of(ended.final.end) if ended else TurnState.FAILED
        said, evidence = (ended.said, ended.final.evidence) if ended else ((), ())
        summary, notices = (ended.summary, ended.final.notices) if ended else (None, ())
        answer = whole_of(ended.final) if ended else ""

        async def store() -> JsonValue:
            if ended is not None and (finding := depth_finding(ask, session, ended.final)):
                await self.budget.audit.append_with_step(finding)
            return await self.sessions.finish_turn(
                ask.turn_id, state, said, evidence, self.clock.now(), summary, notices, answer
            )

        return await journal.step("keep", store) is True

    async def _deliver(
        self, ask: Ask, ts: MessageTs, final: TurnFinished, journal: Journal, stream: AnswerStream
    ) -> None:
        async def show(end: TurnFinished) -> JsonValue:
            return await self._delivery.deliver(ask, ts, end, stream, journal.got_on)

        try:
            # Its end is the turn's, and shown once more it is the same; a first post is to be known.
            has_been_posted = ts != NOT_YET
            await journal.step("deliver", lambda: show(final), with_next=has_been_posted)
        except StepAbandoned as error:
            # The same text, so that what people have read stays where it is.
            plain = without_extras(ask, final, error)
            await journal.step("deliver:short", lambda: show(plain))
