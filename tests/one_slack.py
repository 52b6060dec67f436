"""Several workspaces of one Slack: the owner of each token, and Slack's side of an installation.

They share the app, with its signing secret and its app-level token; each has people, channels and a
bot token of its own. https://docs.slack.dev/authentication/installing-with-oauth
"""

import base64
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field
from urllib.parse import urlencode

from aiohttp import web
from pydantic import JsonValue

from bot.demo.workspace import event_payloads
from bot.demo.workspace.errors import SlackRefused
from bot.demo.workspace.json_access import JsonObject, text_at
from bot.demo.workspace.state import Workspace
from bot.demo.workspace.web_api import SimulatedWebApi


@dataclass(slots=True)
class OneSlack(SimulatedWebApi):
    """`home` has the app; further workspaces install it. `default_redirect` is the app's first one."""

    others: Sequence[Workspace] = ()
    client_id: str = "1.2"
    client_secret: str = field(default="", repr=False)
    default_redirect: str = ""
    granted: JsonObject = field(default_factory=dict)  # further fields of an installation
    _codes: dict[str, Workspace] = field(default_factory=dict)
    _live: dict[str, Workspace] = field(default_factory=dict)
    _gone: set[str] = field(default_factory=set)

    @property
    def workspaces(self) -> Sequence[Workspace]:
        return (self.home, *self.others)

    def add_to(self, router: web.UrlDispatcher) -> None:
        SimulatedWebApi.add_to(self, router)
        router.add_get("/oauth/v2/authorize", self.authorize)

    def owner(self, token: str) -> tuple[Workspace, str]:
        """Home for an unknown token. Raises SlackRefused for a removed app."""
        if token in self._gone:
            raise SlackRefused("account_inactive")
        installed = self._live.get(token)
        return (installed, installed.bot_token) if installed else (self.home, token)

    def answer(
        self,
        request: web.Request,
        workspace: Workspace,
        token: str,
        sent: JsonObject,
        *,
        is_json: bool,
    ) -> JsonObject:
        """Also Slack's side of an installation and of its end."""
        match request.match_info["method"]:
            case "oauth.v2.access":
                return self.access(sent, request.headers.get("authorization", ""))
            case "apps.uninstall" if token == workspace.bot_token:
                return self.uninstall(sent, workspace)
            case _:
                return SimulatedWebApi.answer(
                    self, request, workspace, token, sent, is_json=is_json
                )

    async def authorize(self, request: web.Request) -> web.Response:
        """Redirect as after the consent of a person of the workspace `team`, with a code."""
        query = request.query
        if query.get("client_id") != self.client_id:
            raise web.HTTPBadRequest(text="invalid_client_id")
        team = query.get("team", self.others[0].app.team_id if self.others else "")
        workspace = next((each for each in self.workspaces if each.app.team_id == team), self.home)
        code = secrets.token_hex(8)
        self._codes[code] = workspace
        back = urlencode({"code": code, "state": query.get("state", "")})
        address = query.get("redirect_uri") or self.default_redirect
        raise web.HTTPFound(f"{address}?{back}")

    def access(self, sent: JsonObject, authorization: str) -> JsonObject:
        """oauth.v2.access: a code, once, for a token."""
        if not self._is_app(sent, authorization):
            raise SlackRefused("bad_client_secret")
        workspace = self._codes.pop(text_at(sent, "code"), None)
        if workspace is None:
            raise SlackRefused("invalid_code")
        app, token = workspace.app, f"xoxb-{secrets.token_hex(12)}"
        self._live[token] = workspace
        answer: JsonObject = {
            "ok": True,
            "app_id": app.app_id,
            "authed_user": {"id": next(iter(workspace.roster.users))},
            "scope": ",".join(sorted(app.scopes)),
            "token_type": "bot",
            "access_token": token,
            "bot_user_id": app.bot_user_id,
            "team": {"id": app.team_id, "name": app.team_name},
            "enterprise": None,
            "is_enterprise_install": False,
        }
        return answer | self.granted

    def uninstall(self, sent: JsonObject, workspace: Workspace) -> JsonObject:
        if not self._is_app(sent, ""):
            raise SlackRefused("bad_client_secret")
        self.remove(workspace)
        return {"ok": True}

    def remove(self, workspace: Workspace, *, tells: bool = True) -> None:
        """Remove the app from a workspace: its tokens end, and the app gets the events of that."""
        gone = {token for token, whose in self._live.items() if whose is workspace}
        self._gone |= gone
        self._live = {t: whose for t, whose in self._live.items() if t not in gone}
        if tells:
            self.send_removed_event(workspace)

    def send_removed_event(self, workspace: Workspace) -> None:
        """Both events, as Slack sends them; it may send them late, and again."""
        revoked: list[JsonValue] = [workspace.app.bot_user_id]
        tokens: JsonObject = {"oauth": [], "bot": revoked}
        events: tuple[JsonObject, ...] = (
            {"type": "tokens_revoked", "tokens": tokens},
            {"type": "app_uninstalled"},
        )
        for event in events:
            workspace.outbox.post_event(
                event_payloads.callback(workspace.app, event, is_ext_shared=False)
            )

    def _is_app(self, sent: JsonObject, authorization: str) -> bool:
        expected = _basic(self.client_id, self.client_secret)
        known = (text_at(sent, "client_id"), text_at(sent, "client_secret"))
        return authorization == expected or known == (self.client_id, self.client_secret)


def _basic(user: str, password: str) -> str:
    return f"Basic {base64.b64encode(f'{user}:{password}'.encode()).decode()}"
