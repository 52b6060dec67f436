"""What the page asks and does on behalf of a person. Not Slack's; loopback only."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Final, Protocol

import orjson
from aiohttp import web
from aiohttp.typedefs import Handler
from pydantic import BaseModel, JsonValue, ValidationError

from bot.demo.workspace.delivery import Ack
from bot.demo.workspace.errors import CannotDoThat
from bot.demo.workspace.feed import Change
from bot.demo.workspace.files import Upload
from bot.demo.workspace.json_access import JsonObject
from bot.demo.workspace.people import Channel, User
from bot.demo.workspace.state import Workspace

_OF_PERSON: Final = (
    "id", "name", "real_name", "title", "is_admin", "is_bot", "is_stranger", "deleted",
)  # fmt: skip
_OF_CHANNEL: Final = ("id", "name", "kind", "topic", "suggestion", "is_archived")


@dataclass(frozen=True, slots=True)
class ProviderOption:
    """One provider. `reason` says why it is unavailable, or what it is."""

    id: str
    label: str
    available: bool
    reason: str = ""
    chosen: bool = False


class ProviderChoice(Protocol):
    """The page's choice of provider. The server of the workspace supplies it."""

    async def options(self) -> Sequence[ProviderOption]: ...

    async def choose(self, provider_id: str) -> None:
        """Raises CannotDoThat when it is unknown or unavailable."""
        ...


@web.middleware
async def person_errors(request: web.Request, handler: Handler) -> web.StreamResponse:
    """What cannot be done answers 409 with the reason."""
    try:
        return await handler(request)
    except CannotDoThat as cannot:
        return web.json_response({"error": str(cannot)}, status=409)


@dataclass(slots=True)
class PersonApi:
    workspace: Workspace
    providers: ProviderChoice | None = None

    def add_routes(self, router: web.UrlDispatcher) -> None:
        router.add_get("/person/workspace", self.describe)
        router.add_get("/person/channels/{channel}", self.read)
        router.add_get("/person/feed", self.follow)
        for path in ACTS:
            router.add_post(f"/person/{path}", self.act)
        router.add_get("/person/providers", self.list_providers)
        router.add_post("/person/provider", self.choose_provider)

    async def describe(self, request: web.Request) -> web.Response:
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
        shown: JsonObject = {name: getattr(user, name) for name in _OF_PERSON}
        return shown | {"is_guest": user.is_restricted or user.is_ultra_restricted}

    def _channel(self, channel: Channel) -> JsonObject:
        shown: JsonObject = {name: getattr(channel, name) for name in _OF_CHANNEL}
        has_bot = self.workspace.app.bot_user_id in channel.members
        return shown | {"has_bot": has_bot, "members": len(channel.members)}

    async def read(self, request: web.Request) -> web.Response:
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

    async def act(self, request: web.Request) -> web.Response:
        """What a person does. Slack's clients show a warning when the app does not acknowledge."""
        path = request.match_info.route.resource
        act = ACTS[(path.canonical if path else "").removeprefix("/person/")]
        done = act(self.workspace, await _sent(request))
        if isinstance(done, Awaitable):
            done = await done
        if not isinstance(done, Ack):
            return _json(done or {})
        if done.ok:
            return _json({"ok": True, "answer": done.body})
        return web.json_response(
            {"ok": False, "error": "Kortex did not respond in time. Try again."}, status=504
        )

    async def list_providers(self, _request: web.Request) -> web.Response:
        """The providers to choose from; none where the workspace has no choice."""
        options = await self.providers.options() if self.providers else ()
        return _json({"providers": [asdict(option) for option in options]})

    async def choose_provider(self, request: web.Request) -> web.Response:
        if self.providers is None:
            raise CannotDoThat("there is no choice of provider here")
        await self.providers.choose((await _sent(request)).id)
        return await self.list_providers(request)


class _File(BaseModel):
    name: str = ""
    text: str = ""


class Sent(BaseModel):
    """What the page sends with an act. Each act needs some of it."""

    user: str = ""
    channel: str = ""
    text: str = ""
    thread_ts: str = ""
    files: list[_File] = []  # small texts
    ts: str = ""
    message_ts: str = ""
    block_id: str = ""
    action_id: str = ""
    stale: bool = False  # as a client that shows an older version
    chosen: JsonObject = {}
    command: str = ""
    tab: str = "home"
    view: str = ""
    values: JsonObject = {}
    archived: bool = True
    id: str = ""


async def _say(workspace: Workspace, sent: Sent) -> JsonObject:
    files = [Upload(each.name, each.text.encode("utf-8", "replace")) for each in sent.files]
    thread_ts = sent.thread_ts or None
    return {"ts": await workspace.say(sent.user, sent.channel, sent.text, thread_ts, files=files)}


def _open_home(workspace: Workspace, sent: Sent) -> JsonObject:
    workspace.open_home(sent.user, sent.tab)
    return {"view": workspace.home_of(sent.user)}


Done = Ack | JsonObject | None
ACTS: Final[Mapping[str, Callable[[Workspace, Sent], Awaitable[Done] | Done]]] = {
    "messages": _say,
    "deletions": lambda workspace, sent: workspace.delete(sent.user, sent.channel, sent.ts),
    "clicks": lambda workspace, sent: workspace.click(
        sent.user,
        sent.message_ts,
        sent.action_id,
        channel=sent.channel,
        block_id=sent.block_id or None,
        stale=sent.stale,
        chosen=sent.chosen,
    ),
    "stops": lambda workspace, sent: workspace.stop(sent.user, sent.channel, sent.thread_ts),
    "commands": lambda workspace, sent: workspace.command(
        sent.user, sent.channel, sent.text, sent.command
    ),
    "homes": _open_home,
    "views/{view}/actions": lambda workspace, sent: workspace.press_in_view(
        sent.user, sent.view, sent.action_id, sent.chosen
    ),
    "views/{view}/submission": lambda workspace, sent: workspace.submit(
        sent.user, sent.view, sent.values
    ),
    "views/{view}/closing": lambda workspace, sent: workspace.dismiss(sent.user, sent.view),
    "channels/{channel}/archive": lambda workspace, sent: workspace.archive(
        sent.channel, archived=sent.archived
    ),
    "channels/{channel}/bot-removal": lambda workspace, sent: workspace.remove_bot(sent.channel),
    "channels/{channel}/bot-invitation": lambda workspace, sent: workspace.invite_bot(sent.channel),
}


async def _sent(request: web.Request) -> Sent:
    """JSON only: another site's page cannot send that here without asking."""
    if request.content_type != "application/json":
        raise web.HTTPUnsupportedMediaType(text="send application/json")
    try:
        return Sent.model_validate(orjson.loads(await request.read()) | dict(request.match_info))
    except (orjson.JSONDecodeError, ValidationError, TypeError):
        raise web.HTTPBadRequest(text="that is not what the page sends") from None


def _json(value: JsonValue) -> web.Response:
    return web.Response(body=orjson.dumps(value), content_type="application/json")
