"""The messages of the workspace, as payloads show them, and how their buttons changed. No rules of access."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from pydantic import JsonValue

from bot.demo.workspace.json_access import CONSTANTS, JsonObject, object_at, objects_at, text_at


@dataclass(frozen=True, slots=True)
class Message:
    """A message in one version. `thread_ts` is the root's, also None on the root itself."""

    channel: str
    ts: str
    user: str
    team: str
    text: str
    thread_ts: str | None = None
    blocks: tuple[JsonObject, ...] = ()
    files: tuple[JsonObject, ...] = ()
    metadata: JsonObject | None = None
    bot_id: str = ""
    app_id: str = ""
    client_msg_id: str = ""
    edited_ts: str | None = None
    is_tombstone: bool = False

    @property
    def root_ts(self) -> str:
        """The thread this message is in or would start."""
        return self.thread_ts or self.ts

    def as_slack(self, *, with_metadata: bool = False) -> JsonObject:
        """The message object of events and of conversations.replies, without thread counts."""
        if self.is_tombstone:
            return CONSTANTS["tombstone"] | {"ts": self.ts, "thread_ts": self.ts}
        message: JsonObject = {
            "user": self.user,
            "type": "message",
            "ts": self.ts,
            "text": self.text,
            "team": self.team,
        }
        if self.client_msg_id:
            message["client_msg_id"] = self.client_msg_id
        if self.bot_id:
            message |= {"bot_id": self.bot_id, "app_id": self.app_id}
        if self.blocks:
            message["blocks"] = list[JsonValue](self.blocks)
        if self.edited_ts:
            message["edited"] = {"user": self.user, "ts": self.edited_ts}
        if self.thread_ts:
            message["thread_ts"] = self.thread_ts
        if with_metadata and self.metadata:
            message["metadata"] = self.metadata
        return message | self._shared()

    def _shared(self) -> JsonObject:
        if not self.files:
            return {}
        return {"subtype": "file_share", "files": list[JsonValue](self.files), "upload": False}

    def action(self, action_id: str, block_id: str | None = None) -> JsonObject | None:
        """The interactive element with that id, with its `block_id` added; None when not here."""
        return next(
            (
                element
                for element in interactive_elements(self.blocks)
                if element.get("action_id") == action_id
                and block_id in (None, element.get("block_id"))
            ),
            None,
        )

    @property
    def action_ids(self) -> tuple[str, ...]:
        return tuple(text_at(element, "action_id") for element in interactive_elements(self.blocks))


@dataclass(frozen=True, slots=True)
class Ephemeral:
    """A message shown to one person. `shown` is False in a thread without replies."""

    message: Message
    user: str
    shown: bool


def interactive_elements(blocks: Sequence[JsonObject]) -> Iterator[JsonObject]:
    for block in blocks:
        block_id = block.get("block_id", "")
        candidates = [*objects_at(block, "elements"), object_at(block, "accessory")]
        candidates.append(object_at(block, "element"))
        yield from (
            {**element, "block_id": block_id} for element in candidates if "action_id" in element
        )


MAX_VERSIONS = 50  # of different buttons, per message; older ones are forgotten


@dataclass(slots=True)
class Timeline:
    """Messages by channel and ts, oldest first."""

    _current: dict[str, dict[str, Message]] = field(default_factory=dict)
    _threads: dict[tuple[str, str], dict[str, None]] = field(default_factory=dict)
    _versions: dict[tuple[str, str], list[Message]] = field(default_factory=dict)
    _ephemerals: dict[tuple[str, str], Ephemeral] = field(default_factory=dict)

    def put(self, message: Message) -> None:
        self._current.setdefault(message.channel, {})[message.ts] = message
        if message.thread_ts:
            self._threads.setdefault((message.channel, message.thread_ts), {})[message.ts] = None
        versions = self._versions.setdefault((message.channel, message.ts), [])
        if versions and versions[-1].action_ids == message.action_ids:
            versions.pop()
        versions.append(message)
        del versions[:-MAX_VERSIONS]

    def get(self, channel: str, ts: str) -> Message | None:
        return self._current.get(channel, {}).get(ts)

    def versions(self, channel: str, ts: str) -> Sequence[Message]:
        """The last version with each set of buttons, oldest first, also of a deleted message."""
        return tuple(self._versions.get((channel, ts), ()))

    def remove(self, channel: str, ts: str) -> Message | None:
        """Delete. The root of a thread leaves a tombstone, which is returned."""
        message = self._current[channel][ts]
        if not self.replies(channel, ts):
            del self._current[channel][ts]
            return None
        tombstone = replace(message, is_tombstone=True, text="", blocks=(), metadata=None)
        self._current[channel][ts] = tombstone
        return tombstone

    def channel(self, channel: str) -> Sequence[Message]:
        return tuple(self._current.get(channel, {}).values())

    def replies(self, channel: str, root_ts: str) -> Sequence[Message]:
        found = (self.get(channel, ts) for ts in self._threads.get((channel, root_ts), ()))
        return tuple(message for message in found if message is not None)

    def thread(self, channel: str, root_ts: str) -> Sequence[Message]:
        root = self.get(channel, root_ts)
        return (*((root,) if root else ()), *self.replies(channel, root_ts))

    def as_slack(self, message: Message, *, with_metadata: bool = False) -> JsonObject:
        rendered = message.as_slack(with_metadata=with_metadata)
        replies = self.replies(message.channel, message.ts)
        if message.thread_ts is None and replies:
            users: list[JsonValue] = list(dict.fromkeys(reply.user for reply in replies))
            rendered |= {
                "thread_ts": message.ts,
                "reply_count": len(replies),
                "reply_users_count": len(users),
                "latest_reply": replies[-1].ts,
                "reply_users": users[:5],
            }
        return rendered

    def whisper(self, ephemeral: Ephemeral) -> None:
        self._ephemerals[ephemeral.message.channel, ephemeral.message.ts] = ephemeral

    def ephemeral(self, channel: str, ts: str) -> Ephemeral | None:
        return self._ephemerals.get((channel, ts))

    def ephemerals(self, user: str) -> Sequence[Ephemeral]:
        return tuple(e for e in self._ephemerals.values() if e.user == user)
