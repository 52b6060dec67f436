"""Messages that grow by appends: what each holds so far, and for how long it may.

Chunks: https://docs.slack.dev/reference/methods/chat.appendStream. A stream ends five minutes after
it began, busy or not (https://github.com/slackapi/python-slack-sdk/issues/1859).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from pydantic import JsonValue

from bot.demo.workspace.block_rules import MAX_MARKDOWN_CHARS, check_blocks, check_chunks
from bot.demo.workspace.errors import SlackRefused
from bot.demo.workspace.json_access import JsonObject, objects_at, text_at

LIFETIME_S = 300.0


@dataclass(frozen=True, slots=True)
class Growing:
    """One streaming message. `pieces` are its blocks in order; `user` reads it live."""

    mode: str
    user: str
    ends_at: float
    title: str = ""
    tasks: Mapping[str, JsonObject] = field(default_factory=dict)
    pieces: tuple[JsonObject, ...] = ()
    stopped_by: str = ""

    @property
    def text(self) -> str:
        return "".join(text_at(each, "text") for each in self.pieces if _is_text(each))

    @property
    def blocks(self) -> tuple[JsonObject, ...]:
        cards = {name: _card(task) for name, task in self.tasks.items()}
        if self.mode != "plan":
            return tuple(cards.get(text_at(each, "task_id"), each) for each in self.pieces)
        others = tuple(each for each in self.pieces if each.get("type") != "task_card")
        if not cards and not self.title:
            return others
        plan: JsonObject = {"type": "plan", "title": self.title or "Thinking…"}
        return (plan | ({"tasks": list[JsonValue](cards.values())} if cards else {}), *others)

    def after(self, chunks: Sequence[JsonObject]) -> "Growing":
        """With those chunks. Raises SlackRefused."""
        grown = self
        for chunk in chunks:
            grown = grown._with(chunk)
        if len(grown.text) > MAX_MARKDOWN_CHARS:
            raise SlackRefused("msg_too_long")
        if len(grown.blocks) > 50:
            raise SlackRefused("msg_blocks_too_many")
        return grown

    def _with(self, chunk: JsonObject) -> "Growing":
        match chunk.get("type"):
            case "markdown_text":
                return self._said(text_at(chunk, "text"))
            case "plan_update":
                return replace(self, title=text_at(chunk, "title"))
            case "task_update":
                name = text_at(chunk, "id")
                is_new = name not in self.tasks
                card: tuple[JsonObject, ...] = ({"type": "task_card", "task_id": name},)
                task = {**self.tasks.get(name, {}), **chunk}
                return replace(
                    self,
                    tasks={**self.tasks, name: task},
                    pieces=(*self.pieces, *card) if is_new else self.pieces,
                )
            case _:
                return replace(self, pieces=(*self.pieces, *objects_at(chunk, "blocks")))

    def _said(self, text: str) -> "Growing":
        last = self.pieces[-1] if self.pieces else {}
        if _is_text(last):
            longer: JsonObject = {**last, "text": text_at(last, "text") + text}
            return replace(self, pieces=(*self.pieces[:-1], longer))
        return replace(self, pieces=(*self.pieces, {"type": "markdown", "text": text}))


class Streams:
    """The messages that grow, by channel and ts. `now` is a monotonic clock."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._growing: dict[tuple[str, str], Growing] = {}

    def begun(self, mode: str, user: str) -> Growing:
        """A new one, not yet among them."""
        return Growing(mode or "timeline", user, self._now() + LIFETIME_S)

    def put(self, channel: str, ts: str, grown: Growing) -> None:
        self._growing[channel, ts] = grown

    def end(self, channel: str, ts: str) -> None:
        self._growing.pop((channel, ts), None)

    def is_open(self, channel: str, ts: str) -> bool:
        found = self._growing.get((channel, ts))
        return found is not None and not found.stopped_by and self._now() < found.ends_at

    def open_one(self, channel: str, ts: str) -> Growing:
        """One that may still grow. Raises SlackRefused."""
        found = self._growing.get((channel, ts))
        if found is not None and found.stopped_by:
            raise SlackRefused("stopped_by_user")
        if found is None or not self.is_open(channel, ts):
            raise SlackRefused("message_not_in_streaming_state")
        return found

    def of_thread(self, channel: str, replies: Sequence[str]) -> tuple[str, ...]:
        """Those of these messages that grow now."""
        return tuple(ts for ts in replies if self.is_open(channel, ts))

    def stop_by(self, channel: str, ts: str, user: str) -> None:
        """A person pressed Slack's own Stop."""
        found = self._growing.get((channel, ts))
        if found is not None:
            self._growing[channel, ts] = replace(found, stopped_by=user)


def read_chunks(value: JsonValue) -> tuple[JsonObject, ...]:
    """Raises SlackRefused("invalid_chunks" | "invalid_blocks" | "msg_blocks_too_long")."""
    check_chunks(value)
    chunks = tuple(objects_at({"chunks": value}, "chunks"))
    for chunk in chunks:
        check_blocks(objects_at(chunk, "blocks"), "message")
    return chunks


def _is_text(block: JsonObject) -> bool:
    return block.get("type") == "markdown"


def _card(task: JsonObject) -> JsonObject:
    card: JsonObject = {
        "type": "task_card",
        "task_id": task["id"],
        "title": task["title"],
        "status": task["status"],
    }
    for name in ("details", "output"):
        if text := text_at(task, name):
            card[name] = _rich(text)
    return card


def _rich(text: str) -> JsonObject:
    said: JsonObject = {"type": "text", "text": text}
    section: JsonObject = {"type": "rich_text_section", "elements": [said]}
    return {"type": "rich_text", "elements": [section]}
