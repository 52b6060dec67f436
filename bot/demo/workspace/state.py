"""The workspace: its parts put together, and what tests and the page do with them."""

import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from bot.demo.workspace import event_payloads, seeds
from bot.demo.workspace.acts import Acts
from bot.demo.workspace.delivery import Ack, DeliveryPolicy, EventQueue
from bot.demo.workspace.errors import CannotDoThat
from bot.demo.workspace.feed import Change, Feed
from bot.demo.workspace.files import Files, Upload
from bot.demo.workspace.identity import AppIdentity, Timestamps
from bot.demo.workspace.interaction_handles import InteractionHandles
from bot.demo.workspace.json_access import JsonObject, text_at
from bot.demo.workspace.modals import Modals
from bot.demo.workspace.people import Roster
from bot.demo.workspace.posting import Posting
from bot.demo.workspace.ratelimit import Counters, RateLimiter, RateLimits
from bot.demo.workspace.sessions import Sessions
from bot.demo.workspace.socket_mode import SocketModeHub
from bot.demo.workspace.stored_messages import Message
from bot.demo.workspace.streams import Streams
from bot.demo.workspace.timeline import Timeline

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


@dataclass(frozen=True, slots=True)
class Setup:
    """What a workspace is made of.

    `refused` are the methods that it has not got, each with the error it answers, and
    `unknown_blocks` the kinds of blocks.
    """

    app: AppIdentity = field(default_factory=AppIdentity)
    limits: RateLimits = field(default_factory=RateLimits)
    delivery: DeliveryPolicy = field(default_factory=DeliveryPolicy)
    clocks: Clocks = field(default_factory=Clocks)
    refused: Mapping[str, str] = field(default_factory=dict)
    unknown_blocks: frozenset[str] = frozenset()


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
        self.limiter = RateLimiter(self.setup.limits, self.setup.clocks.monotonic)
        self.handles = InteractionHandles(self.setup.clocks.monotonic)
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
        self.acts = Acts(self.posting, self.outbox, self.handles, self.modals, self.files)

    # What the app is configured with.

    @property
    def bot_token(self) -> str:
        """`xoxb-…`."""
        return self.app.bot_token

    @property
    def app_token(self) -> str:
        """`xapp-…`, for Socket Mode."""
        return self.app.app_token

    @property
    def signing_secret(self) -> str:
        return self.app.signing_secret

    @property
    def origin(self) -> str:
        """Where it is served, such as `http://127.0.0.1:40123`; set once it is."""
        return self.acts.origin

    # What people do; errors: CannotDoThat.

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
        return self.acts.say(user, channel, text, thread_ts, files).ts

    async def click(
        self,
        user: str,
        message_ts: str,
        action_id: str,
        *,
        channel: str = "",
        block_id: str | None = None,
        stale: bool = False,
    ) -> Ack:
        place = channel or self._channel_of(message_ts)
        return await self.acts.click(
            user, place, message_ts, action_id, block_id=block_id, stale=stale
        )

    async def select(
        self, user: str, message_ts: str, action_id: str, value: str, *, channel: str = ""
    ) -> Ack:
        """Choose an option of a menu, by its value, and wait for the acknowledgement."""
        place = channel or self._channel_of(message_ts)
        chosen: JsonObject = {"selected_option": {"value": value}}
        return await self.acts.click(user, place, message_ts, action_id, chosen=chosen)

    def _channel_of(self, ts: str) -> str:
        for channel in self.roster.channels:
            known = self.timeline.versions(channel, ts) or self.timeline.ephemeral(channel, ts)
            if known:
                return channel
        return ""

    async def stop(self, user: str, channel: str, thread_ts: str) -> None:
        """Press Slack's own Stop, which is there while the thread is being worked on."""
        session = self.sessions.of(channel, thread_ts)
        if session.status != "processing":
            raise CannotDoThat("nothing is running there")
        replies = [each.ts for each in self.timeline.replies(channel, thread_ts)]
        growing = self.streams.of_thread(channel, replies)
        for ts in growing:
            self.streams.stop_by(channel, ts, user)
        self.acts.stop_session(user, channel, thread_ts, growing)

    async def submit(self, user: str, view_id: str, values: JsonObject) -> Ack:
        return await self.acts.submit(user, view_id, values)

    async def command(self, user: str, channel: str, text: str, name: str = "/kortex") -> Ack:
        return await self.acts.command(user, channel, name, text)

    async def delete(self, user: str, channel: str, ts: str) -> None:
        self.acts.delete(user, channel, ts)

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

    @property
    def counters(self) -> Counters:
        """Requests and 429s per method."""
        return self.limiter.counters

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
