"""Messages to the bot become durable turns; "stop" overtakes them. No Slack library here.

A start that fails is raised, so that Slack is not acknowledged and delivers the message again.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import assert_never

from cachetools import LRUCache

from bot.domain.ids import ChannelId, MessageTs, Person, Place, TurnId, UserId
from bot.domain.session import Ask
from bot.ports.failures import StorageUnavailable
from bot.slack.api.single_flight import KeyedLock
from bot.slack.ingress.denials import Denials
from bot.slack.ingress.message_event import (
    MOST_KNOWN,
    Foreign,
    Ignored,
    UserMessage,
    attached,
    read,
)
from bot.slack.ingress.payloads import MessageEnvelope, SessionStopped
from bot.slack.listeners import replies
from bot.slack.listeners.background_tasks import BackgroundTasks
from bot.slack.listeners.ports import IngressPorts, IngressSettings

_PEOPLE_REMEMBERED = 10_000


@dataclass(slots=True)
class _Asked:
    recent: deque[tuple[float, TurnId]] = field(default_factory=deque)
    told_at: float | None = None


class AskLimiter:
    """At most `limit` turns per person in `window_s` seconds of a monotonic clock."""

    def __init__(self, limit: int, window_s: float, clock: Callable[[], float]) -> None:
        self._limit = limit
        self._window_s = window_s
        self._clock = clock
        self._people: LRUCache[Person, _Asked] = LRUCache(_PEOPLE_REMEMBERED)

    def admits(self, person: Person, turn: TurnId) -> bool:
        """Whether the turn may start. The same turn delivered again always may."""
        now = self._clock()
        asked = self._of(person)
        while asked.recent and now - asked.recent[0][0] >= self._window_s:
            asked.recent.popleft()
        if any(known == turn for _, known in asked.recent):
            return True
        if len(asked.recent) >= self._limit:
            return False
        asked.recent.append((now, turn))
        return True

    def tells(self, person: Person) -> bool:
        """Whether to say so now: once per window, the rest is silence."""
        now = self._clock()
        asked = self._of(person)
        if asked.told_at is not None and now - asked.told_at < self._window_s:
            return False
        asked.told_at = now
        return True

    def _of(self, person: Person) -> _Asked:
        asked: _Asked = self._people.setdefault(person, _Asked())
        return asked


# Slack redelivers at once, after 1 and after 5 minutes (https://docs.slack.dev/apis/events-api).
LAST_RETRY = 3
NOT_OURS = "not for this app"
_LIMIT_WINDOW_S = 60.0


class MessageIntake:
    """Judges delivered messages and starts what they ask for."""

    def __init__(
        self,
        settings: IngressSettings,
        ports: IngressPorts,
        background: BackgroundTasks,
        denials: Denials,
        clock: Callable[[], float],
    ) -> None:
        self._settings = settings
        self._ports = ports
        self._background = background
        self._denials = denials
        self._limiter = AskLimiter(settings.asks_per_minute, _LIMIT_WINDOW_S, clock)
        self._threads = KeyedLock()

    async def take(self, envelope: MessageEnvelope, retry: int) -> None:
        """Handle one delivery; `retry` is Slack's retry number, 0 for the first delivery.

        Raises StorageUnavailable or TimeoutError when it must be delivered again.
        """
        intake = read(envelope, self._settings.identity)
        match intake:
            case Ignored():
                return
            case Foreign():
                await self._denials.write(
                    intake.user, NOT_OURS, {"team": intake.team}, intake.event_id
                )
            case UserMessage():
                await self._hear(intake, retry)
            case _:
                assert_never(intake)

    async def stopped(self, envelope: SessionStopped) -> None:
        """Slack's own stop button on a thread."""
        identity = self._settings.identity
        event = envelope.event
        if not identity.is_addressee(envelope.team_id, envelope.api_app_id):
            await self._denials.write(
                event.user, NOT_OURS, {"team": envelope.team_id}, envelope.event_id
            )
            return
        if event.user_team and identity.is_external(event.user_team):
            about = {"team": event.user_team, "channel": event.channel}
            await self._denials.write(event.user, "external person", about, envelope.event_id)
            return
        place = Place(identity.team, ChannelId(event.channel), MessageTs(event.thread_ts))
        await self._stop(place, UserId(event.user))

    async def _hear(self, heard: UserMessage, retry: int) -> None:
        if heard.is_external:
            await self._turn_away(heard)
            return
        if heard.is_stop and (heard.addressed or heard.in_thread):
            stopped = await self._stop(heard.place, heard.asker.user)
            if not stopped and heard.is_primary:
                self._whisper(heard, replies.NOTHING_RUNS)
            return
        # What has to be looked up for one message must not let a later one of the thread past it.
        async with self._threads.hold(heard.place.key):
            if not heard.addressed and not await self._follows_up(heard):
                return
            if heard.text or (heard.files and heard.addressed):
                await self._start(heard, retry)
            elif heard.is_primary:
                self._whisper(heard, replies.HELP)

    async def _start(self, heard: UserMessage, retry: int) -> None:
        with self._ports.placeholders.within(heard.place.key):
            redact = self._ports.redactor.redact
            text = redact(heard.text or replies.ABOUT_FILES)
            files = tuple(attached(each, redact) for each in heard.files[:MOST_KNOWN])
        ask = Ask(place=heard.place, ts=heard.ts, asker=heard.asker, text=text, files=files)
        # One that is delivered again was counted where it came first, perhaps in another process.
        counts = self._settings.asks_per_minute and not retry
        if counts and not self._limiter.admits(ask.asker, ask.turn_id):
            if self._limiter.tells(ask.asker):
                self._whisper(heard, replies.TOO_MANY)
            return
        try:
            await self._ports.workflows.start_turn(ask)
        except (StorageUnavailable, asyncio.CancelledError) as error:
            # A cancelled start ran out of time and may yet be stored: Slack's next delivery, which
            # follows at once, finds it or reports it.
            tells = 0 if isinstance(error, StorageUnavailable) else 1
            if heard.is_primary and retry in {tells, LAST_RETRY}:
                self._whisper(
                    heard, replies.GAVE_UP if retry == LAST_RETRY else replies.NOT_STARTED
                )
            raise

    async def _follows_up(self, heard: UserMessage) -> bool:
        if self._settings.follow_up == "mention" or not heard.in_thread:
            return False
        return await self._ports.sessions.find(heard.place) is not None

    async def _stop(self, place: Place, by: UserId) -> bool:
        turn = await self._ports.sessions.running_turn(place)
        return turn is not None and await self._ports.stops.request(turn, by)

    async def _turn_away(self, heard: UserMessage) -> None:
        if not heard.addressed:
            return
        about = {"team": heard.asker.team, "channel": heard.place.channel}
        await self._denials.write(heard.asker.user, "external person", about, heard.event_id)
        if heard.is_primary:
            self._whisper(heard, replies.EXTERNAL)

    def _whisper(self, heard: UserMessage, text: str) -> None:
        self._background.run(
            "whisper",
            self._ports.surface.whisper(heard.reply_place, heard.asker.user, text),
        )
