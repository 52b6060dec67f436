"""The messages of the workspace, and how their buttons changed. No rules about who may do what."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from pydantic import JsonValue

from bot.demo.workspace.json_access import JsonObject
from bot.demo.workspace.stored_messages import Ephemeral, Message

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
