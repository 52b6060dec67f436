"""Every change of a message: stored, shown in the feed, and sent to the app as Slack would."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from bot.demo.workspace import content, event_payloads
from bot.demo.workspace.delivery import EventQueue
from bot.demo.workspace.feed import Change, Feed
from bot.demo.workspace.identity import AppIdentity, Timestamps, opaque
from bot.demo.workspace.json_access import JsonObject
from bot.demo.workspace.people import Channel, Roster, User
from bot.demo.workspace.timeline import Ephemeral, Message, Timeline
from bot.demo.workspace.typed_text import mentioned


@dataclass(slots=True)
class Posting:
    app: AppIdentity
    roster: Roster
    timeline: Timeline
    feed: Feed
    outbox: EventQueue
    timestamps: Timestamps

    def post(self, message: Message) -> None:
        self.timeline.put(message)
        self._show("message", message)
        channel = self.roster.channel(message.channel)
        author = self.roster.user(message.user)
        is_own = message.user == self.app.bot_user_id
        calls_bot = self.app.bot_user_id in mentioned(message.text)
        if calls_bot and not is_own and channel.kind != "im":
            self.emit("app_mention", event_payloads.app_mention(message), channel.id, author)
        self._emit_message(event_payloads.message_posted(message, channel), channel, author.id)

    def edit(self, before: Message, after: Message) -> None:
        self.timeline.put(after)
        self._show("edit", after)
        channel = self.roster.channel(after.channel)
        event = event_payloads.message_changed(before, after, channel, self.timestamps.next())
        self._emit_message(event, channel, after.user)

    def delete(self, message: Message) -> None:
        """Delete; the root of a thread becomes a tombstone."""
        tombstone = self.timeline.remove(message.channel, message.ts)
        channel = self.roster.channel(message.channel)
        at = self.timestamps.next()
        if tombstone:
            self._show("edit", tombstone)
            event = event_payloads.message_changed(message, tombstone, channel, at)
        else:
            gone: JsonObject = {"ts": message.ts, "thread_ts": message.thread_ts}
            self.feed.publish(Change("delete", gone, channel=message.channel))
            event = event_payloads.message_deleted(message, channel, at)
        self._emit_message(event, channel, message.user)

    def whisper(self, ephemeral: Ephemeral) -> None:
        self.timeline.whisper(ephemeral)
        body = ephemeral.message.as_slack() | {"is_ephemeral": True}
        if ephemeral.shown:
            self.feed.publish(
                Change("ephemeral", body, ephemeral.message.channel, user=ephemeral.user)
            )

    def show_answer(self, body: JsonObject, user: str, channel: str, thread_ts: str | None) -> None:
        """Show an answer to the one who acted, or to the channel if it says `in_channel`.

        Raises SlackRefused.
        """
        said = content.read_answer(body)
        text = said.text or content.NO_PREVIEW
        message = self.bot_message(channel, text, said.blocks or (), thread_ts)
        if body.get("response_type") == "in_channel":
            self.post(message)
        else:
            self.whisper(Ephemeral(message, user, shown=True))

    def bot_message(
        self, channel: str, text: str, blocks: Sequence[JsonObject], thread_ts: str | None
    ) -> Message:
        return Message(
            channel=channel,
            ts=self.timestamps.next(),
            user=self.app.bot_user_id,
            team=self.app.team_id,
            text=text,
            thread_ts=thread_ts,
            blocks=with_block_ids(blocks),
            bot_id=self.app.bot_id,
            app_id=self.app.app_id,
        )

    def _emit_message(self, event: JsonObject, channel: Channel, author: str) -> None:
        kind = event_payloads.SUBSCRIPTION_OF_KIND[channel.kind]
        self.emit(kind, event, channel.id, self.roster.user(author))

    def emit(self, subscription: str, event: JsonObject, channel_id: str, author: User) -> None:
        """Send an event if the app subscribed to it and sees the channel."""
        channel = self.roster.channels.get(channel_id)
        sees = channel is None or self.app.bot_user_id in channel.members
        if subscription not in self.app.subscriptions or not sees:
            return
        event = event_payloads.strangers_teams(event, author, self.app)
        shared = channel is not None and channel.is_ext_shared
        self.outbox.post_event(event_payloads.callback(self.app, event, is_ext_shared=shared))

    def _show(self, kind: Literal["message", "edit"], message: Message) -> None:
        body = self.timeline.as_slack(message)
        self.feed.publish(Change(kind, body, channel=message.channel))


def with_block_ids(blocks: Sequence[JsonObject]) -> tuple[JsonObject, ...]:
    """Blocks and their interactive elements under ids, made up where the app gave none."""
    return tuple(_with_ids(block) for block in blocks)


_INTERACTIVE_HOLDERS = frozenset({"actions", "context_actions", "input", "section"})


def _with_ids(block: JsonObject) -> JsonObject:
    named: JsonObject = {**block, "block_id": block.get("block_id") or opaque("", 5)}
    if block.get("type") not in _INTERACTIVE_HOLDERS:
        return named
    elements = block.get("elements")
    if isinstance(elements, list):
        named["elements"] = [_with_action_id(e) if isinstance(e, dict) else e for e in elements]
    for key in ("accessory", "element"):
        held = block.get(key)
        if isinstance(held, dict) and held.get("type") != "image":
            named[key] = _with_action_id(held)
    return named


def _with_action_id(element: JsonObject) -> JsonObject:
    return {**element, "action_id": element.get("action_id") or opaque("", 5)}
