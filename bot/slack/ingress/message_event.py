"""What a delivered message is to the bot, decided from the payload alone. Pure."""

import re
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeAlias

from bot.domain.ids import ChannelId, MessageTs, Person, Place, TeamId, UserId
from bot.slack.ingress.payloads import Message, MessageEnvelope, SharedFile, SlackIdentity
from bot.slack.text.plain import mentioned_users, plain_text
from tools.attached import AttachedFile
from tools.output import clean_text

# The subtypes of a person's messages; the rest is Slack's own bookkeeping.
_SPOKEN = frozenset({None, "file_share", "thread_broadcast"})


@dataclass(frozen=True, slots=True)
class Ignored:
    """Not for us: another bot, an edit, a join, our own words."""


@dataclass(frozen=True, slots=True)
class Foreign:
    """Meant for another workspace or another app."""

    team: str
    app_id: str
    user: str
    event_id: str


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
    is_direct: bool
    is_primary: bool
    is_external: bool
    in_thread: bool
    event_id: str
    files: tuple[SharedFile, ...] = ()

    @property
    def is_stop(self) -> bool:
        return is_stop(self.text)

    @property
    def reply_place(self) -> Place:
        """Where a private reply is seen: Slack hides ephemerals in a thread not yet begun."""
        if self.in_thread:
            return self.place
        return Place(self.place.team, self.place.channel, MessageTs(""))


Intake: TypeAlias = Ignored | Foreign | UserMessage


def read(envelope: MessageEnvelope, identity: SlackIdentity) -> Intake:
    """Sort one `app_mention` or `message` event."""
    message = envelope.event
    if not identity.is_addressee(envelope.installed_team, envelope.api_app_id):
        return Foreign(
            envelope.installed_team, envelope.api_app_id, message.user, envelope.event_id
        )
    if not _is_spoken(message, identity):
        return Ignored()
    is_mention = message.type == "app_mention"
    is_direct = _is_direct(message)
    team = message.user_team or message.source_team or message.team or identity.team
    in_thread = bool(message.thread_ts)
    own_thread = "" if is_direct else message.ts
    text = message.text or ""
    return UserMessage(
        place=Place(
            identity.team,
            ChannelId(message.channel),
            MessageTs(message.thread_ts or own_thread),
        ),
        ts=MessageTs(message.ts),
        asker=Person(TeamId(team), UserId(message.user)),
        text=question(text, identity.bot_user),
        addressed=is_mention or is_direct or mentions(text, identity.bot_user),
        is_direct=is_direct,
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
    r"\s*(?:please[\s,]+)?(?:stop|cancel|never\s?mind)(?:[\s,]+please)?\s*[.!]*\s*",
    re.IGNORECASE,
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
