"""The messages of a thread, read again."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from bot.domain.ids import MessageTs


class Speaker(StrEnum):
    """The author of a message. The last three are the bot's own."""

    PERSON = "person"
    APP = "app"
    ANSWER = "answer"
    CARD = "card"
    NOTE = "note"


@dataclass(frozen=True, slots=True)
class Said:
    """One message. `name` and `text` are outside text: plain words, mentions as names, not redacted.

    `link` is empty where the platform gave none. `to_bot`: it mentions the bot.
    """

    ts: MessageTs
    at: datetime
    speaker: Speaker
    user: str
    name: str
    text: str
    link: str = ""
    to_bot: bool = False


@dataclass(frozen=True, slots=True)
class ThreadRead:
    """Oldest first. `missing` says in words what could not be read, empty for a whole thread."""

    messages: Sequence[Said]
    missing: str = ""
