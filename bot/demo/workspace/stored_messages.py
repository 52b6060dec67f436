"""One message as stored and as Slack's payloads show it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

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
