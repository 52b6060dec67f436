"""The workspace: its parts put together, and what tests and the page do with them."""

import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TypeVar

from bot.demo.workspace import event_payloads, interactions, seeds
from bot.demo.workspace.delivery import Ack, DeliveryPolicy, EventQueue
from bot.demo.workspace.errors import CannotDoThat, SlackRefused
from bot.demo.workspace.feed import Change, Feed
from bot.demo.workspace.files import Files, Upload
from bot.demo.workspace.identity import AppIdentity, Timestamps, opaque
from bot.demo.workspace.json_access import JsonObject, object_at, objects_at, text_at
from bot.demo.workspace.modals import Modals, Triggers
from bot.demo.workspace.people import Channel, Roster, User
from bot.demo.workspace.posting import Posting, with_block_ids
from bot.demo.workspace.sessions import Sessions
from bot.demo.workspace.socket_mode import SocketModeHub
from bot.demo.workspace.streams import Streams
from bot.demo.workspace.timeline import Message, Timeline, interactive_elements
from bot.demo.workspace.typed_text import as_rich_text, as_sent

T = TypeVar("T")
MAX_CALLS_KEPT = 10_000


@dataclass(frozen=True, slots=True)
class ApiCall:
    """One Web API request as it came in, and the error it was answered with, if any."""

    method: str
    arguments: JsonObject
    error: str = ""


@dataclass(frozen=True, slots=True)
class Clocks:
    """Where time comes from, so that tests can move it."""

    wall: Callable[[], float] = time.time
    monotonic: Callable[[], float] = time.monotonic


class RequestGate:
    """Lets every Web API call in. A subclass may refuse some, as Slack does."""

    def enter(self, method: str, tier: int | None, sent: JsonObject) -> None:
        """May change what was `sent`. `tier` None is the posting rate. Raises SlackRefused."""


@dataclass(frozen=True, slots=True)
class Setup:
    app: AppIdentity = field(default_factory=AppIdentity)
    request_gate: RequestGate = field(default_factory=RequestGate)
    delivery: DeliveryPolicy = field(default_factory=DeliveryPolicy)
    clocks: Clocks = field(default_factory=Clocks)


class Workspace:
    """A Slack workspace with one installed app. Serve it with `app.create_app`."""

    def __init__(self, setup: Setup | None = None, roster: Roster | None = None) -> None:
        self.setup = setup or Setup()
        self.app = self.setup.app
        self.roster = roster or seeds.roster(self.app)
        self.feed = Feed()
        self.timeline = Timeline()
        self.sessions = Sessions(self.feed)
        self.files = Files(self.app)
        self.streams = Streams(self.setup.clocks.monotonic)
        self.calls: deque[ApiCall] = deque(maxlen=MAX_CALLS_KEPT)
        self.sockets = SocketModeHub(self.app.app_id, self.feed.notify)
        self.request_gate = self.setup.request_gate
        self.triggers = Triggers(self.setup.clocks.monotonic)
        self.modals = Modals(self.app)
        self.outbox = EventQueue(self.setup.delivery, self.sockets, self.feed.notify)
        self.posting = Posting(
            self.app,
            self.roster,
            self.timeline,
            self.feed,
            self.outbox,
            Timestamps(self.setup.clocks.wall),
        )
        self.origin = "http://127.0.0.1"  # and its port, once it is served

    # What the app is configured with.

    @property
    def bot_token(self) -> str:
        return self.app.bot_token

    @property
    def app_token(self) -> str:
        return self.app.app_token

    @property
    def signing_secret(self) -> str:
        return self.app.signing_secret

    # What people do. CannotDoThat: Slack's own clients would not allow it.

    async def say(
        self,
        user: str,
        channel: str,
        text: str,
        thread_ts: str | None = None,
        *,
        files: Sequence[Upload] = (),
    ) -> str:
        """Post a message as a person; its ts. `@kortex` becomes a mention."""
        author, _ = self._present(user, channel)
        if not text.strip() and not files:
            raise CannotDoThat("a message needs text")
        if thread_ts and self.timeline.get(channel, thread_ts) is None:
            raise CannotDoThat(f"there is no thread {thread_ts}")
        sent = as_sent(text, self.roster.users.values())
        message = Message(
            channel=channel,
            ts=self.posting.timestamps.next(),
            user=user,
            team=author.team,
            text=sent,
            thread_ts=thread_ts,
            blocks=with_block_ids([as_rich_text(sent)] if sent.strip() else []),
            files=self._shared(author, files),
            bot_id=author.bot_id,
            client_msg_id="" if author.is_bot else opaque("", 24).lower(),
        )
        self.posting.post(message)
        return message.ts

    def _shared(self, author: User, uploads: Sequence[Upload]) -> tuple[JsonObject, ...]:
        team = self.app.team_id
        shared = [self.files.add(author.id, author.team, each) for each in uploads]
        if author.team != team:
            return tuple(each.as_strangers() for each in shared)
        return tuple(each.as_slack(self.origin, team) for each in shared)

    async def delete(self, user: str, channel: str, ts: str) -> None:
        """Delete a message: one's own, or anybody's as an admin."""
        author, _ = self._present(user, channel)
        message = self.timeline.get(channel, ts)
        if message is None:
            raise CannotDoThat(f"there is no message {ts}")
        if message.user != user and not author.is_admin:
            raise CannotDoThat("only an admin deletes the messages of others")
        self.posting.delete(message)

    async def click(
        self,
        user: str,
        message_ts: str,
        action_id: str,
        *,
        channel: str = "",
        block_id: str | None = None,
        stale: bool = False,
        chosen: JsonObject | None = None,
    ) -> Ack:
        """Press something on a message, or choose from a menu.

        `stale`: as a client that still shows an older version. `chosen` for a menu:
        `{"selected_option": {"value": …}}`.
        """
        channel = channel or self._channel_of(message_ts)
        person, place = self._present(user, channel)
        ephemeral = self.timeline.ephemeral(channel, message_ts)
        if ephemeral is not None and ephemeral.user == user:
            shown = ephemeral.message
        else:
            ephemeral = None
            shown = self._shown(channel, message_ts, action_id, stale=stale)
        element = shown.action(action_id, block_id)
        if element is None:
            raise CannotDoThat(f"that message has no {action_id}")
        payload = interactions.block_actions(
            self.app,
            person,
            place,
            shown,
            element,
            snapshot=self.timeline.as_slack(shown),
            is_ephemeral=ephemeral is not None,
            chosen=chosen or {},
        )
        return await self._interact(user, payload)

    def _channel_of(self, ts: str) -> str:
        for channel in self.roster.channels:
            known = self.timeline.versions(channel, ts) or self.timeline.ephemeral(channel, ts)
            if known:
                return channel
        return ""

    def _shown(self, channel: str, ts: str, action_id: str, *, stale: bool) -> Message:
        current = self.timeline.get(channel, ts)
        if stale:
            for version in reversed(self.timeline.versions(channel, ts)):
                if version.action(action_id):
                    return version
            raise CannotDoThat(f"no version of that message had {action_id}")
        if current is None:
            raise CannotDoThat(f"there is no message {ts}")
        return current

    async def press_in_view(
        self, user: str, view_id: str, action_id: str, chosen: JsonObject | None = None
    ) -> Ack:
        person = self._active(user)
        home = self.modals.home(user)
        view = home if home and home.get("id") == view_id else self._own_view(user, view_id)
        for element in interactive_elements(objects_at(view, "blocks")):
            if element.get("action_id") == action_id:
                payload = interactions.view_actions(self.app, person, view, element, chosen or {})
                return await self._interact(user, payload)
        raise CannotDoThat(f"that view has no {action_id}")

    async def submit(self, user: str, view_id: str, filled: JsonObject) -> Ack:
        """Submit an open modal; it closes unless the answer says otherwise."""
        person = self._active(user)
        view = self._own_view(user, view_id)
        values = interactions.input_values(view, filled)
        payload = interactions.view_submission(self.app, person, view, values)
        ack = await self._interact(user, payload)
        if ack.ok:
            self._after_submission(user, view_id, ack.body or {})
        return ack

    def _after_submission(self, user: str, view_id: str, answer: JsonObject) -> None:
        match text_at(answer, "response_action"):
            case "errors":
                return
            case "update" | "push":
                changed = self.modals.update(view_id, object_at(answer, "view"))
                self.feed.publish(Change("view", changed, user=user))
            case _:
                self._close(user, view_id)

    async def dismiss(self, user: str, view_id: str) -> None:
        person = self._active(user)
        view = self._own_view(user, view_id)
        self._close(user, view_id)
        if view.get("notify_on_close") is True:
            await self._interact(user, interactions.view_closed(self.app, person, view))

    async def command(self, user: str, channel: str, text: str, name: str = "/kortex") -> Ack:
        """Run a slash command. Slack has none inside threads."""
        person, place = self._present(user, channel)
        if name not in self.app.commands:
            raise CannotDoThat(f"{name} is not a valid command")
        escaped = as_sent(text, self.roster.users.values())
        form = interactions.slash_command(self.app, person, place, name, escaped)
        form["trigger_id"] = self.triggers.issue(user)
        ack = await self.outbox.request("slash_commands", form)
        if ack.ok and ack.body:
            with suppress(SlackRefused):  # Slack shows nothing when it cannot read the answer
                self.posting.show_answer(ack.body, user, channel, None)
        return ack

    def open_home(self, user: str, tab: str = "home") -> None:
        person = self._active(user)
        pair = frozenset({user, self.app.bot_user_id})
        direct = (c.id for c in self.roster.channels.values() if c.members == pair)
        channel = next(direct, "D" + user[1:])
        view = self.modals.home(user) if tab == "home" else None
        at = self.posting.timestamps.next()
        event = event_payloads.home_opened(person, channel, tab, view, at)
        self.posting.emit("app_home_opened", event, channel, person)

    async def stop(self, user: str, channel: str, thread_ts: str) -> None:
        """Press Slack's own Stop, which is there while the thread is being worked on."""
        if self.sessions.of(channel, thread_ts).status != "processing":
            raise CannotDoThat("nothing is running there")
        replies = [each.ts for each in self.timeline.replies(channel, thread_ts)]
        growing = self.streams.of_thread(channel, replies)
        for ts in growing:
            self.streams.stop_by(channel, ts, user)
        person, place = self._present(user, channel)
        at = self.posting.timestamps.next()
        event = event_payloads.session_stopped(person, place, thread_ts, growing, at)
        self.posting.emit("agent_session_stopped", event, place.id, person)

    async def _interact(self, user: str, payload: JsonObject) -> Ack:
        payload["trigger_id"] = self.triggers.issue(user)
        return await self.outbox.request("interactive", payload)

    def _own_view(self, user: str, view_id: str) -> JsonObject:
        view = self.modals.get(view_id)
        if view is None or self.modals.owner(view_id) != user:
            raise CannotDoThat("that dialog is not open")
        return view

    def _close(self, user: str, view_id: str) -> None:
        self.modals.close(view_id)
        self.feed.publish(Change("view_closed", {"id": view_id}, user=user))

    def _active(self, user: str) -> User:
        person = self.roster.user(user)
        if person.deleted:
            raise CannotDoThat(f"{person.name} is deactivated")
        return person

    def _present(self, user: str, channel: str) -> tuple[User, Channel]:
        person = self._active(user)
        place = self.roster.channel(channel)
        if place.is_archived:
            raise CannotDoThat(f"#{place.name} is archived")
        if user not in place.members:
            raise CannotDoThat(f"{person.name} is not in #{place.name}")
        return person, place

    def archive(self, channel: str, *, archived: bool = True) -> None:
        """Archive a channel, or bring it back, with the event for the app."""
        changed = self.roster.archive(channel, archived=archived)
        self.feed.publish(Change("channel", {"id": channel}, channel=channel))
        if not archived:
            self._tell(event_payloads.unarchived(changed, *self._by(channel)))

    def remove_bot(self, channel: str) -> None:
        members = self.roster.channel(channel).members - {self.app.bot_user_id}
        self.roster.set_members(channel, members)
        self.feed.publish(Change("channel", {"id": channel}, channel=channel))

    def invite_bot(self, channel: str) -> None:
        """Take the bot into a channel, with the event for the app."""
        bot = self.roster.user(self.app.bot_user_id)
        changed = self.roster.set_members(channel, self.roster.channel(channel).members | {bot.id})
        self.feed.publish(Change("channel", {"id": channel}, channel=channel))
        self._tell(event_payloads.joined(changed, bot, *self._by(channel)))

    def _by(self, channel: str) -> tuple[str, str]:
        people = self.roster.channel(channel).members - {self.app.bot_user_id}
        return min(people, default=""), self.posting.timestamps.next()

    def _tell(self, event: JsonObject) -> None:
        author = self.roster.user(self.app.bot_user_id)
        self.posting.emit(text_at(event, "type"), event, text_at(event, "channel"), author)

    # What can be seen.

    def messages(self, channel: str) -> Sequence[Message]:
        """Every current message of a channel, replies included, oldest first."""
        return self.timeline.channel(channel)

    def thread(self, channel: str, ts: str) -> Sequence[Message]:
        return self.timeline.thread(channel, ts)

    def message(self, channel: str, ts: str) -> Message | None:
        return self.timeline.get(channel, ts)

    def whispers(self, user: str) -> Sequence[Message]:
        return tuple(e.message for e in self.timeline.ephemerals(user) if e.shown)

    def modals_of(self, user: str) -> Sequence[JsonObject]:
        """The open modals of a person, the top one last."""
        return self.modals.of(user)

    def home_of(self, user: str) -> JsonObject | None:
        return self.modals.home(user)

    async def wait_for(self, predicate: Callable[[], T | None], timeout_s: float = 5.0) -> T:
        """The first truthy value of the predicate, re-evaluated at each change.

        Raises TimeoutError.
        """
        return await self.feed.wait_for(predicate, timeout_s)

    async def settled(self, timeout_s: float = 5.0) -> None:
        """Until every event was acknowledged or given up. Raises TimeoutError."""
        await self.wait_for(lambda: self.outbox.idle, timeout_s)
