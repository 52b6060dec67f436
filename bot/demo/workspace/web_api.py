"""The Web API's edge: bodies, tokens, scopes, rates, and Slack's envelope around answers."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import orjson
from aiohttp import web
from pydantic import JsonValue

from bot.demo.workspace.arguments import SIGNATURES, Arguments, Signature, read_arguments
from bot.demo.workspace.errors import RateLimited, SlackRefused
from bot.demo.workspace.identity import AppIdentity
from bot.demo.workspace.json_access import JsonObject, text_at
from bot.demo.workspace.methods import (
    chat,
    conversations,
    files,
    people,
    sessions,
    streaming,
    views,
)
from bot.demo.workspace.state import ApiCall, Workspace

Handler = Callable[[Workspace, Arguments], JsonObject]

# apps.connections.open needs the request's own address and is answered at the edge.
HANDLERS: Mapping[str, Handler] = {
    "agents.sessions.setStatus": sessions.set_status,
    "assistant.threads.setStatus": sessions.set_line,
    "assistant.threads.setSuggestedPrompts": sessions.set_prompts,
    "assistant.threads.setTitle": sessions.set_title,
    "auth.test": people.auth_test,
    "chat.delete": chat.delete,
    "chat.getPermalink": chat.get_permalink,
    "chat.postEphemeral": chat.post_ephemeral,
    "chat.postMessage": chat.post_message,
    "chat.startStream": streaming.start,
    "chat.appendStream": streaming.append,
    "chat.stopStream": streaming.stop,
    "chat.update": chat.update,
    "conversations.history": conversations.history,
    "conversations.info": conversations.info,
    "conversations.members": conversations.members,
    "conversations.replies": conversations.replies,
    "files.completeUploadExternal": files.complete_upload,
    "files.getUploadURLExternal": files.upload_url,
    "files.info": files.info,
    "usergroups.list": people.group_list,
    "usergroups.users.list": people.group_users,
    "users.info": people.user_info,
    "users.lookupByEmail": people.user_by_email,
    "views.open": views.open_view,
    "views.publish": views.publish_view,
    "views.push": views.push_view,
}


@dataclass(slots=True)
class SimulatedWebApi:
    """Answers `/api/<method>` for the one workspace that it has."""

    home: Workspace

    @property
    def workspaces(self) -> Sequence[Workspace]:
        return (self.home,)

    def add_to(self, router: web.UrlDispatcher) -> None:
        router.add_route("*", "/api/{method}", self.handle)

    def owner(self, token: str) -> tuple[Workspace, str]:
        """The workspace of a token, and its own token for that one."""
        return self.home, token

    async def handle(self, request: web.Request) -> web.Response:
        """Answer one request. The HTTP status is 200 also for errors, except 429, as in Slack."""
        method = request.match_info["method"]
        sent: JsonObject = {}
        workspace = self.home
        headers = {"x-oauth-scopes": ",".join(sorted(workspace.app.scopes))}
        try:
            sent, is_json = await _read_body(request)
            token = _token(request, sent, is_json=is_json)
            workspace, token = self.owner(token)
            answer = self.answer(request, workspace, token, sent, is_json=is_json)
            error = ""
        except RateLimited as limited:
            answer, error = {"ok": False, "error": limited.code}, limited.code
            headers["retry-after"] = str(limited.retry_after_s)
        except SlackRefused as refused:
            answer, error = _refusal(refused), refused.code
        logged = {key: value for key, value in sent.items() if key != "token"}
        workspace.calls.append(ApiCall(method, logged, error))
        workspace.feed.notify()
        status = 429 if error == "ratelimited" else 200
        return web.Response(
            body=orjson.dumps(answer),
            status=status,
            content_type="application/json",
            charset="utf-8",
            headers=headers,
        )

    def answer(
        self,
        request: web.Request,
        workspace: Workspace,
        token: str,
        sent: JsonObject,
        *,
        is_json: bool,
    ) -> JsonObject:
        """The answer to one call. Raises SlackRefused."""
        method = request.match_info["method"]
        signature = SIGNATURES.get(method)
        if signature is None:
            raise SlackRefused("unknown_method")
        _authorize(workspace.app, token, signature)
        workspace.request_gate.enter(method, signature.tier, sent)
        if is_json and not signature.takes_json:
            sent = {}
        arguments = read_arguments(method, sent)
        if method == "apps.connections.open":
            return {"ok": True, "url": self._socket_url(request)}
        return {"ok": True} | HANDLERS[method](workspace, arguments)

    def _socket_url(self, request: web.Request) -> str:
        ticket = self.home.sockets.issue_ticket()
        app_id = self.home.app.app_id
        return f"ws://{request.host}/link/?ticket={ticket}&app_id={app_id}"


def _authorize(app: AppIdentity, token: str, signature: Signature) -> None:
    if not token:
        raise SlackRefused("not_authed")
    if token not in (app.bot_token, app.app_token):
        raise SlackRefused("invalid_auth")
    if token != (app.app_token if signature.app_level else app.bot_token):
        raise SlackRefused("not_allowed_token_type")
    if signature.scope and signature.scope not in app.scopes:
        provided = ",".join(sorted(app.scopes))
        raise SlackRefused("missing_scope", needed=signature.scope, provided=provided)


def _token(request: web.Request, sent: JsonObject, *, is_json: bool) -> str:
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer" and token:
        return token.strip()
    return "" if is_json else text_at(sent, "token")


async def _read_body(request: web.Request) -> tuple[JsonObject, bool]:
    query: JsonObject = dict(request.query)
    if request.method == "GET" or not request.body_exists:
        return query, False
    match request.content_type:
        case "application/json":
            return query | _json_object(await request.read()), True
        case "application/x-www-form-urlencoded" | "multipart/form-data":
            form = await request.post()
            fields: dict[str, JsonValue] = {
                name: value for name, value in form.items() if isinstance(value, str)
            }
            return query | fields, False
        case _:
            raise SlackRefused("invalid_post_type")


def _json_object(body: bytes) -> JsonObject:
    try:
        value = orjson.loads(body)
    except orjson.JSONDecodeError:
        raise SlackRefused("invalid_json") from None
    if not isinstance(value, dict):
        raise SlackRefused("json_not_object")
    return value


def _refusal(refused: SlackRefused) -> JsonObject:
    answer: JsonObject = {"ok": False, "error": refused.code, **refused.more}
    if refused.messages:
        answer["errors"] = list[JsonValue](refused.messages)
        answer["response_metadata"] = {"messages": list[JsonValue](refused.messages)}
    return answer
