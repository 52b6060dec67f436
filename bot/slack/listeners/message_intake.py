"""Messages to the bot become durable turns; "stop" overtakes them. No Slack library here.

What a message is to the bot is decided from its payload alone. A start that fails is raised, so that
Slack is not acknowledged and delivers the message again.
"""

import asyncio
import re
import unicodedata
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from cachetools import LRUCache

from bot.domain.ids import ChannelId, MessageTs, Person, Place, TeamId, TurnId, UserId
from bot.domain.session import Ask
from bot.ports.failures import StorageUnavailable
from bot.slack.api.single_flight import KeyedLock
from bot.slack.ingress.denials import Denials
from bot.slack.ingress.payloads import (
    Message,
    MessageEnvelope,
    SessionStopped,
    SharedFile,
    SlackIdentity,
)
from bot.slack.listeners import replies
from bot.slack.listeners.background_tasks import BackgroundTasks
from bot.slack.listeners.ports import IngressPorts, IngressSettings
from bot.slack.text.plain import mentioned_users, plain_text
from tools.attached import AttachedFile
from tools.output import clean_text

# The subtypes of a person's messages; the rest is Slack's own bookkeeping.
_SPOKEN = frozenset({None, "file_share", "thread_broadcast"})


@dataclass(frozen=True, slots=True)
class UserMessage:
    """A person said something. `addressed`: to the bot, by mention or in a direct message.

    `is_primary` marks the one event of a message that courtesies answer: a mention arrives
    as `app_mention` and as `message` too.
    """

    place: Place
    ts: MessageTs
    asker: Person
    text: str
    addressed: bool
    is_primary: bool
    is_external: bool
    in_thread: bool
    event_id: str
    files: tuple[SharedFile, ...] = ()

    @property
    def reply_place(self) -> Place:
        """Where a private reply is seen: Slack hides ephemerals in a thread not yet begun."""
        if self.in_thread:
            return self.place
        return Place(self.place.team, self.place.channel, MessageTs(""))


def read(envelope: MessageEnvelope, identity: SlackIdentity) -> UserMessage | None:
    """What a person says in an `app_mention` or `message` event; None for all else.

    All else is another bot, an edit, a join, our own words.
    """
    message = envelope.event
    if not _is_spoken(message, identity):
        return None
    is_mention = message.type == "app_mention"
    is_direct = _is_direct(message)
    team = message.user_team or message.source_team or message.team or identity.team
    in_thread = bool(message.thread_ts)
    own_thread = "" if is_direct else message.ts
    text = message.text or ""
    return UserMessage(
        place=Place(
            identity.team, ChannelId(message.channel), MessageTs(message.thread_ts or own_thread)
        ),
        ts=MessageTs(message.ts),
        asker=Person(TeamId(team), UserId(message.user)),
        text=question(text, identity.bot_user),
        addressed=is_mention or is_direct or mentions(text, identity.bot_user),
        is_primary=is_mention or is_direct,
        is_external=identity.is_external(team),
        in_thread=in_thread,
        event_id=envelope.event_id,
        files=tuple(each for each in message.files if each.id),
    )


def _is_direct(message: Message) -> bool:
    return message.channel_type == "im" or (
        not message.channel_type and message.channel.startswith("D")
    )


def _is_spoken(message: Message, identity: SlackIdentity) -> bool:
    if message.subtype not in _SPOKEN or message.bot_id or message.hidden or message.edited:
        return False
    if message.user in {"", identity.bot_user, "USLACKBOT"}:
        return False
    return bool(message.channel and message.ts)


_STOP = re.compile(
    r"\s*(?:please[\s,]+)?(?:stop|cancel|never\s?mind)(?:[\s,]+please)?\s*[.!]*\s*", re.IGNORECASE
)


def mentions(text: str, bot_user: str) -> bool:
    return bot_user in mentioned_users(text)


def question(text: str, bot_user: str) -> str:
    """The text as typed, without the bot's own mention; other people's mentions stay as ids."""
    return plain_text(text, lambda user: "" if user == bot_user else f"<@{user}>").strip()


def is_stop(question_text: str) -> bool:
    """Whether the whole message is "stop", "cancel" or "never mind"."""
    return _STOP.fullmatch(question_text) is not None


MOST_KNOWN: Final = 20  # of a message; Slack takes ten at once
_NAME_CHARS: Final = 60
_ID_CHARS: Final = 40
_MEDIA_CHARS: Final = 80
_UNSAFE: Final = str.maketrans({"`": "'", "<": "‹", ">": "›", "|": "¦", "\\": "/"})

# A name could cite a result, or be a link; the redactor's own brackets stay.
_BRACKETS: Final = str.maketrans("[]", "()")


def attached(shared: SharedFile, redact: Callable[[str], str]) -> AttachedFile:
    """Raises RedactionFailed. A name may hold anything: what it has of marks is shown, not obeyed."""
    folded = unicodedata.normalize("NFC", clean_text(shared.name or ""))
    name = " ".join(redact(folded.translate(_BRACKETS)).translate(_UNSAFE).split())
    return AttachedFile(
        id=clean_text(shared.id)[:_ID_CHARS],
        name=name[:_NAME_CHARS] or "a file",
        media=clean_text(shared.mimetype or "")[:_MEDIA_CHARS],
        size=max(0, shared.size or 0),
    )


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
        identity, team = self._settings.identity, envelope.installed_team
        if not identity.is_addressee(team, envelope.api_app_id):
            who, delivery = envelope.event.user, envelope.event_id
            await self._denials.write(who, NOT_OURS, {"team": team}, delivery)
            return
        heard = read(envelope, identity)
        if heard is None:
            return
        if heard.is_external:
            await self._turn_away(heard)
            return
        if is_stop(heard.text) and (heard.addressed or heard.in_thread):
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

    async def stopped(self, envelope: SessionStopped) -> None:
        """Slack's own stop button on a thread."""
        identity = self._settings.identity
        event = envelope.event
        team = envelope.installed_team
        if not identity.is_addressee(team, envelope.api_app_id):
            await self._denials.write(event.user, NOT_OURS, {"team": team}, envelope.event_id)
            return
        if event.user_team and identity.is_external(event.user_team):
            about = {"team": event.user_team, "channel": event.channel}
            await self._denials.write(event.user, "external person", about, envelope.event_id)
            return
        place = Place(identity.team, ChannelId(event.channel), MessageTs(event.thread_ts))
        await self._stop(place, UserId(event.user))

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
                is_last = retry == LAST_RETRY
                self._whisper(heard, replies.GAVE_UP if is_last else replies.NOT_STARTED)
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
            "whisper", self._ports.surface.whisper(heard.reply_place, heard.asker.user, text)
        )
