"""Conversations over HTTP: their owners, and their events in order."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from bot.domain.ids import API, ChannelId, MessageTs, Person, Place


class ChatEventKind(StrEnum):
    """The names that events have on the wire as well."""

    QUESTION = "question"
    TEXT = "text"
    RESET = "reset"  # the text of the message so far is void, and this replaces it
    TOOL_START = "tool_start"
    TOOL_END = "tool_end"
    NOTICE = "notice"
    PROPOSAL = "proposal"
    CLAIMS = "claims"
    DONE = "done"


@dataclass(frozen=True, slots=True)
class ChatSession:
    """One conversation. `channel` is the name that rules match; `thread` makes its place unique.

    `question` is the first one as JSON text; it is read for lists only.
    """

    id: str
    channel: str
    thread: str
    owner: Person
    owner_name: str
    created_at: datetime
    question: str = ""

    @property
    def place(self) -> Place:
        return Place(API, ChannelId(self.channel), MessageTs(self.thread))


@dataclass(frozen=True, slots=True)
class NewChatEvent:
    """A new event: `data` is redacted JSON text. A second one of a `key` changes nothing.

    `message` is its question, empty for the session's own; `to` the only reader, or empty.
    """

    kind: ChatEventKind
    data: str
    message: str = ""
    key: str | None = None
    to: str = ""


@dataclass(frozen=True, slots=True)
class ChatEvent:
    """A stored event. `seq` counts from 1 in its session."""

    seq: int
    kind: ChatEventKind
    data: str
    message: str
    to: str
    at: datetime
