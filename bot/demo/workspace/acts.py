"""What people do: speak, press, submit, command, delete. Refused where Slack's clients would."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from bot.demo.workspace import event_payloads, interactions
from bot.demo.workspace.answers import show_answer
from bot.demo.workspace.delivery import Ack, EventQueue
from bot.demo.workspace.errors import CannotDoThat, SlackRefused
from bot.demo.workspace.feed import Change
from bot.demo.workspace.files import Files, Upload
from bot.demo.workspace.identity import opaque
from bot.demo.workspace.interaction_handles import InteractionHandles
from bot.demo.workspace.json_access import JsonObject, object_at, text_at
from bot.demo.workspace.modals import Modals
from bot.demo.workspace.people import Channel, User
from bot.demo.workspace.posting import Posting, with_block_ids
from bot.demo.workspace.stored_messages import Message, interactive_elements
from bot.demo.workspace.typed_text import as_rich_text, as_sent


@dataclass(slots=True)
class Acts:
    """Acting as a person. Every method raises CannotDoThat for what Slack would not allow."""

    posting: Posting
    outbox: EventQueue
    handles: InteractionHandles
    modals: Modals
    files: Files
    origin: str = field(default="http://127.0.0.1", init=False)

    def say(
        self,
        user: str,
        channel: str,
        text: str,
        thread_ts: str | None = None,
        files: Sequence[Upload] = (),
    ) -> Message:
        """Post a message, with files or without; `@name` becomes a mention."""
        author, _ = self._present(user, channel)
        roster = self.posting.roster
        if not text.strip() and not files:
            raise CannotDoThat("a message needs text")
        if thread_ts and self.posting.timeline.get(channel, thread_ts) is None:
            raise CannotDoThat(f"there is no thread {thread_ts}")
        sent = as_sent(text, roster.users.values())
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
        return message

    def _shared(self, author: User, uploads: Sequence[Upload]) -> tuple[JsonObject, ...]:
        team = self.posting.app.team_id
        shared = [self.files.add(author.id, author.team, each) for each in uploads]
        if author.team != team:
            return tuple(each.as_strangers() for each in shared)
        return tuple(each.as_slack(self.origin, team) for each in shared)

    def delete(self, user: str, channel: str, ts: str) -> None:
        """Delete a message: one's own, or anybody's as an admin."""
        author, _ = self._present(user, channel)
        message = self.posting.timeline.get(channel, ts)
        if message is None:
            raise CannotDoThat(f"there is no message {ts}")
        if message.user != user and not author.is_admin:
            raise CannotDoThat("only an admin deletes the messages of others")
        self.posting.delete(message)

    async def click(
        self,
        user: str,
        channel: str,
        message_ts: str,
        action_id: str,
        *,
        block_id: str | None = None,
        stale: bool = False,
        chosen: JsonObject | None = None,
    ) -> Ack:
        """Press something on a message, or choose from a menu.

        `stale`: as a client that still shows an older version. `chosen` for a menu:
        `{"selected_option": {"value": …}}`.
        """
        person, place = self._present(user, channel)
        ephemeral = self.posting.timeline.ephemeral(channel, message_ts)
        if ephemeral is not None and ephemeral.user == user:
            shown = ephemeral.message
        else:
            ephemeral = None
            shown = self._shown(channel, message_ts, action_id, stale=stale)
        element = shown.action(action_id, block_id)
        if element is None:
            raise CannotDoThat(f"that message has no {action_id}")
        payload = interactions.block_actions(
            self.posting.app,
            person,
            place,
            shown,
            element,
            snapshot=self.posting.timeline.as_slack(shown),
            is_ephemeral=ephemeral is not None,
            chosen=chosen or {},
        )
        path = self.handles.response_url(user, channel, message_ts, shown.thread_ts)
        return await self._interact(user, payload | {"response_url": self.origin + path})

    def _shown(self, channel: str, ts: str, action_id: str, *, stale: bool) -> Message:
        current = self.posting.timeline.get(channel, ts)
        if stale:
            for version in reversed(self.posting.timeline.versions(channel, ts)):
                if version.action(action_id):
                    return version
            raise CannotDoThat(f"no version of that message had {action_id}")
        if current is None:
            raise CannotDoThat(f"there is no message {ts}")
        return current

    async def press_in_view(
        self, user: str, view_id: str, action_id: str, chosen: JsonObject | None = None
    ) -> Ack:
        """Press something in an open modal or on the home."""
        person = self._active(user)
        home = self.modals.home(user)
        view = home if home and home.get("id") == view_id else self._own_view(user, view_id)
        blocks = view.get("blocks")
        shown = tuple(b for b in blocks if isinstance(b, dict)) if isinstance(blocks, list) else ()
        for element in interactive_elements(shown):
            if element.get("action_id") == action_id:
                payload = interactions.view_actions(
                    self.posting.app, person, view, element, chosen or {}
                )
                return await self._interact(user, payload)
        raise CannotDoThat(f"that view has no {action_id}")

    async def submit(self, user: str, view_id: str, filled: JsonObject) -> Ack:
        """Submit an open modal; it closes unless the answer says otherwise."""
        person = self._active(user)
        view = self._own_view(user, view_id)
        values = interactions.input_values(view, filled)
        payload = interactions.view_submission(self.posting.app, person, view, values)
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
                self.posting.feed.publish(Change("view", changed, user=user))
            case _:
                self._close(user, view_id)

    async def dismiss(self, user: str, view_id: str) -> None:
        """Close a modal without submitting."""
        person = self._active(user)
        view = self._own_view(user, view_id)
        self._close(user, view_id)
        if view.get("notify_on_close") is True:
            await self._interact(user, interactions.view_closed(self.posting.app, person, view))

    async def command(self, user: str, channel: str, command: str, text: str = "") -> Ack:
        """Run a slash command. Slack has none inside threads."""
        person, place = self._present(user, channel)
        if command not in self.posting.app.commands:
            raise CannotDoThat(f"{command} is not a valid command")
        escaped = as_sent(text, self.posting.roster.users.values())
        form = interactions.slash_command(self.posting.app, person, place, command, escaped)
        form["response_url"] = self.origin + self.handles.response_url(user, channel)
        form["trigger_id"] = self.handles.trigger(user)
        ack = await self.outbox.request("slash_commands", form)
        if ack.ok and ack.body:
            with suppress(SlackRefused):  # Slack shows nothing when it cannot read the answer
                show_answer(self.posting, ack.body, user, channel, None)
        return ack

    def open_home(self, user: str, tab: str = "home") -> None:
        person = self._active(user)
        pair = frozenset({user, self.posting.app.bot_user_id})
        direct = (c.id for c in self.posting.roster.channels.values() if c.members == pair)
        channel = next(direct, "D" + user[1:])
        view = self.modals.home(user) if tab == "home" else None
        at = self.posting.timestamps.next()
        event = event_payloads.home_opened(person, channel, tab, view, at)
        self.posting.emit("app_home_opened", event, channel, person)

    def stop_session(
        self, user: str, channel: str, thread_ts: str, growing: tuple[str, ...]
    ) -> None:
        person, place = self._present(user, channel)
        at = self.posting.timestamps.next()
        event = event_payloads.session_stopped(person, place, thread_ts, growing, at)
        self.posting.emit("agent_session_stopped", event, place.id, person)

    async def _interact(self, user: str, payload: JsonObject) -> Ack:
        payload["trigger_id"] = self.handles.trigger(user)
        return await self.outbox.request("interactive", payload)

    def _own_view(self, user: str, view_id: str) -> JsonObject:
        view = self.modals.get(view_id)
        if view is None or self.modals.owner(view_id) != user:
            raise CannotDoThat("that dialog is not open")
        return view

    def _close(self, user: str, view_id: str) -> None:
        self.modals.close(view_id)
        self.posting.feed.publish(Change("view_closed", {"id": view_id}, user=user))

    def _active(self, user: str) -> User:
        person = self.posting.roster.user(user)
        if person.deleted:
            raise CannotDoThat(f"{person.name} is deactivated")
        return person

    def _present(self, user: str, channel: str) -> tuple[User, Channel]:
        person = self._active(user)
        place = self.posting.roster.channel(channel)
        if place.is_archived:
            raise CannotDoThat(f"#{place.name} is archived")
        if user not in place.members:
            raise CannotDoThat(f"{person.name} is not in #{place.name}")
        return person, place
