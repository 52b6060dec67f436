"""What the page asks and does on behalf of a person. Not Slack's; loopback only."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass

import orjson
from aiohttp import web
from aiohttp.typedefs import Handler
from pydantic import JsonValue

from bot.demo.workspace.delivery import Ack
from bot.demo.workspace.errors import CannotDoThat
from bot.demo.workspace.feed import Change
from bot.demo.workspace.files import Upload
from bot.demo.workspace.json_access import JsonObject, object_at, objects_at, text_at
from bot.demo.workspace.people import Channel, User
from bot.demo.workspace.provider_choice import ProviderChoice
from bot.demo.workspace.state import Workspace


@web.middleware
async def person_errors(request: web.Request, handler: Handler) -> web.StreamResponse:
    """What cannot be done answers 409 with the reason."""
    try:
        return await handler(request)
    except CannotDoThat as cannot:
        return web.json_response({"error": str(cannot)}, status=409)


@dataclass(slots=True)
class PersonApi:
    """Everything under `/person/`."""

    workspace: Workspace
    providers: ProviderChoice | None = None

    def add_routes(self, router: web.UrlDispatcher) -> None:
        router.add_get("/person/workspace", self.describe)
        router.add_get("/person/channels/{channel}", self.read)
        router.add_get("/person/feed", self.follow)
        router.add_post("/person/messages", self.say)
        router.add_post("/person/deletions", self.delete)
        router.add_post("/person/clicks", self.click)
        router.add_post("/person/stops", self.stop)
        router.add_post("/person/commands", self.command)
        router.add_post("/person/homes", self.open_home)
        router.add_post("/person/views/{view}/actions", self.press)
        router.add_post("/person/views/{view}/submission", self.submit)
        router.add_post("/person/views/{view}/closing", self.dismiss)
        router.add_post("/person/channels/{channel}/archive", self.archive)
        router.add_post("/person/channels/{channel}/bot-removal", self.remove_bot)
        router.add_post("/person/channels/{channel}/bot-invitation", self.invite_bot)
        router.add_get("/person/providers", self.list_providers)
        router.add_post("/person/provider", self.choose_provider)

    async def describe(self, request: web.Request) -> web.Response:
        """The people, the channels a person sees, and their open dialogs."""
        workspace, user = self.workspace, request.query.get("user", "")
        channels = workspace.roster.channels.values()
        return _json(
            {
                "team": workspace.app.team_name,
                "bot": workspace.app.bot_user_id,
                "people": [self._person(each) for each in workspace.roster.users.values()],
                "groups": {each.id: each.handle for each in workspace.roster.groups.values()},
                "channels": [
                    self._channel(each) for each in channels if not user or user in each.members
                ],
                "home": workspace.home_of(user),
                "sessions": list[JsonValue](workspace.sessions.listed(self._seen_by(user))),
            }
        )

    def _person(self, user: User) -> JsonObject:
        return {
            "id": user.id,
            "name": user.name,
            "real_name": user.real_name,
            "title": user.title,
            "is_admin": user.is_admin,
            "is_bot": user.is_bot,
            "is_guest": user.is_restricted or user.is_ultra_restricted,
            "is_stranger": user.is_stranger,
            "deleted": user.deleted,
        }

    def _channel(self, channel: Channel) -> JsonObject:
        return {
            "id": channel.id,
            "name": channel.name,
            "kind": channel.kind,
            "topic": channel.topic,
            "suggestion": channel.suggestion,
            "is_archived": channel.is_archived,
            "has_bot": self.workspace.app.bot_user_id in channel.members,
            "members": len(channel.members),
        }

    async def read(self, request: web.Request) -> web.Response:
        """The messages of a channel as one person sees them."""
        user, channel = request.query.get("user", ""), request.match_info["channel"]
        timeline = self.workspace.timeline
        messages: list[JsonValue] = [
            timeline.as_slack(message) for message in timeline.channel(channel)
        ]
        messages += [
            message.as_slack() | {"is_ephemeral": True}
            for message in self.workspace.whispers(user)
            if message.channel == channel
        ]
        place = self._channel(self.workspace.roster.channel(channel))
        return _json({"channel": place, "messages": messages})

    async def follow(self, request: web.Request) -> web.StreamResponse:
        user = request.query.get("user", "")
        response = web.StreamResponse(
            headers={"content-type": "text/event-stream", "cache-control": "no-store"}
        )
        # A tab that was closed shows when something is written to it, and that ends it.
        with suppress(ConnectionResetError), self.workspace.feed.subscribe() as changes:
            await response.prepare(request)
            await response.write(b"retry: 1000\n\n")
            async for change in changes:
                if self._may_see(user, change):
                    await response.write(b"data: " + orjson.dumps(asdict(change)) + b"\n\n")
        return response

    def _may_see(self, user: str, change: Change) -> bool:
        if change.user:
            return change.user == user
        return self._seen_by(user)(change.channel)

    def _seen_by(self, user: str) -> Callable[[str], bool]:
        def sees(name: str) -> bool:
            channel = self.workspace.roster.channels.get(name)
            return channel is None or user in channel.members

        return sees

    async def say(self, request: web.Request) -> web.Response:
        """Post a message; `files` are small texts, each with a `name` and its `text`."""
        body = await _body(request)
        thread_ts = text_at(body, "thread_ts") or None
        files = [
            Upload(text_at(each, "name"), text_at(each, "text").encode("utf-8", "replace"))
            for each in objects_at(body, "files")
        ]
        author, channel = text_at(body, "user"), text_at(body, "channel")
        ts = await self.workspace.say(
            author, channel, text_at(body, "text"), thread_ts, files=files
        )
        return _json({"ts": ts})

    async def delete(self, request: web.Request) -> web.Response:
        body = await _body(request)
        await self.workspace.delete(
            text_at(body, "user"), text_at(body, "channel"), text_at(body, "ts")
        )
        return _json({})

    async def click(self, request: web.Request) -> web.Response:
        """Press something on a message; `stale` as a client that shows an older version."""
        body = await _body(request)
        ack = await self.workspace.acts.click(
            text_at(body, "user"),
            text_at(body, "channel"),
            text_at(body, "message_ts"),
            text_at(body, "action_id"),
            block_id=text_at(body, "block_id") or None,
            stale=body.get("stale") is True,
            chosen=object_at(body, "chosen"),
        )
        return _ack(ack)

    async def stop(self, request: web.Request) -> web.Response:
        body = await _body(request)
        await self.workspace.stop(
            text_at(body, "user"), text_at(body, "channel"), text_at(body, "thread_ts")
        )
        return _json({})

    async def command(self, request: web.Request) -> web.Response:
        body = await _body(request)
        user, channel = text_at(body, "user"), text_at(body, "channel")
        ack = await self.workspace.acts.command(
            user, channel, text_at(body, "command"), text_at(body, "text")
        )
        return _ack(ack)

    async def open_home(self, request: web.Request) -> web.Response:
        body = await _body(request)
        user = text_at(body, "user")
        self.workspace.acts.open_home(user, text_at(body, "tab") or "home")
        return _json({"view": self.workspace.home_of(user)})

    async def press(self, request: web.Request) -> web.Response:
        """Press something in a dialog or on the home."""
        body = await _body(request)
        ack = await self.workspace.acts.press_in_view(
            text_at(body, "user"),
            request.match_info["view"],
            text_at(body, "action_id"),
            object_at(body, "chosen"),
        )
        return _ack(ack)

    async def submit(self, request: web.Request) -> web.Response:
        """Submit a dialog; the answer may carry `errors` by block."""
        body = await _body(request)
        ack = await self.workspace.submit(
            text_at(body, "user"), request.match_info["view"], object_at(body, "values")
        )
        return _ack(ack)

    async def dismiss(self, request: web.Request) -> web.Response:
        body = await _body(request)
        await self.workspace.acts.dismiss(text_at(body, "user"), request.match_info["view"])
        return _json({})

    async def archive(self, request: web.Request) -> web.Response:
        """Archive a channel, or with `archived` false bring it back."""
        body = await _body(request)
        archived = body.get("archived") is not False
        self.workspace.archive(request.match_info["channel"], archived=archived)
        return _json({})

    async def remove_bot(self, request: web.Request) -> web.Response:
        await _body(request)
        self.workspace.remove_bot(request.match_info["channel"])
        return _json({})

    async def invite_bot(self, request: web.Request) -> web.Response:
        await _body(request)
        self.workspace.invite_bot(request.match_info["channel"])
        return _json({})

    async def list_providers(self, _request: web.Request) -> web.Response:
        """The providers to choose from; none where the workspace has no choice."""
        options = await self.providers.options() if self.providers else ()
        return _json({"providers": [asdict(option) for option in options]})

    async def choose_provider(self, request: web.Request) -> web.Response:
        body = await _body(request)
        if self.providers is None:
            raise CannotDoThat("there is no choice of provider here")
        await self.providers.choose(text_at(body, "id"))
        return await self.list_providers(request)


async def _body(request: web.Request) -> JsonObject:
    """JSON only: another site's page cannot send that here without asking."""
    if request.content_type != "application/json":
        raise web.HTTPUnsupportedMediaType(text="send application/json")
    try:
        value = orjson.loads(await request.read())
    except orjson.JSONDecodeError:
        raise web.HTTPBadRequest(text="that is not JSON") from None
    if not isinstance(value, dict):
        raise web.HTTPBadRequest(text="send a JSON object")
    return value


def _json(value: JsonValue) -> web.Response:
    return web.Response(body=orjson.dumps(value), content_type="application/json")


def _ack(ack: Ack) -> web.Response:
    """Slack's clients show a warning when the app does not acknowledge."""
    if ack.ok:
        return _json({"ok": True, "answer": ack.body})
    return web.json_response(
        {"ok": False, "error": "Kortex did not respond in time. Try again."}, status=504
    )
