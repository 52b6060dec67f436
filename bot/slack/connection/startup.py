"""Whether the configured tokens work, asked once at start: Slack's libraries never fail on a bad one.

A wrong app token reconnects for ever and a wrong bot token acknowledges everything and answers
nothing, so a process that cannot work ends here instead.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import aiohttp
import orjson
from pydantic import JsonValue

from bot.domain.ids import TeamId, UserId
from bot.slack.api.session import slack_session
from bot.slack.connection.access import SlackAccess, StartupError
from bot.slack.received.payloads import SlackIdentity
from tools.output import clean_words

_TIMES = aiohttp.ClientTimeout(total=10.0)
_MAX_ANSWER_BYTES = 1_048_576  # these methods answer in some hundred bytes


async def check_slack(access: SlackAccess) -> SlackIdentity:
    """Check every credential of the mode and learn who the bot is.

    Raises StartupError. Opens and closes its own connections; no message is sent.
    """
    check_shape(access)
    async with slack_session(_TIMES) as http:
        who = await _call(http, access, "auth.test", "slack.bot_token", access.bot_token)
        if access.mode == "socket":
            await _call(http, access, "apps.connections.open", "slack.app_token", access.app_token)
        team, user = who.get("team_id"), who.get("user_id")
        if not (isinstance(team, str) and isinstance(user, str)):
            raise StartupError(
                "slack.api_base_url", "auth.test named no workspace; is this really Slack's API?"
            )
        bot_id = _text(who, "bot_id")
        if not bot_id:
            raise StartupError(
                "slack.bot_token",
                "this is a person's token; use the Bot User OAuth Token, which starts with xoxb-",
            )
        return SlackIdentity(
            team=TeamId(team),
            bot_user=UserId(user),
            bot_id=bot_id,
            app_id=await _app_id(http, access, bot_id),
            enterprise=_text(who, "enterprise_id"),
            trusted_teams=access.trusted_teams,
            site=site_of(_text(who, "url")),
        )


def site_of(url: str) -> str:
    """The workspace's address in the answer of auth.test, as far as it is that of a host and no more."""
    found = re.fullmatch(r"(https://[a-z0-9][a-z0-9.-]{0,250})/?", url, re.ASCII)
    return found[1] if found else ""


def check_shape(access: SlackAccess) -> None:
    """What can be told without asking Slack. Raises StartupError."""
    bot = _Credential(
        "slack.bot_token",
        access.bot_token,
        "the Bot User OAuth Token (xoxb-…) from your app's “OAuth & Permissions” page",
    )
    app = _Credential(
        "slack.app_token",
        access.app_token,
        "an app-level token (xapp-…) with connections:write, which Socket Mode needs, from your "
        "app's “Basic Information” page",
    )
    secret = _Credential(
        "slack.signing_secret",
        access.signing_secret,
        "the Signing Secret, by which HTTP mode verifies every request, from your app's "
        "“Basic Information” page",
    )
    other = app if access.mode == "socket" else secret
    for one in (bot, other):
        one.refuse_another_kind(of=(bot, app, secret))
        if not one.value.strip():
            why = access.why_empty.get(one.key, "")
            raise StartupError(one.key, f"is empty{f': {why}' if why else ''}. Use {one.wanted}")


# https://docs.slack.dev/authentication/tokens: what each begins with, and whose it is.
_KINDS = {
    "xoxb-": ("slack.bot_token", "a bot token"),
    "xapp-": ("slack.app_token", "an app-level token"),
    "xoxp-": ("", "a person's token"),
    "xoxe-": ("", "a refresh token"),
}


@dataclass(frozen=True, slots=True)
class _Credential:
    key: str
    value: str = field(repr=False)
    wanted: str

    @property
    def kind(self) -> tuple[str, str]:
        """The setting it belongs in, and what it is called; "" for what does not show."""
        return _KINDS.get(self.value.strip()[:5], ("", ""))

    def refuse_another_kind(self, of: Sequence["_Credential"]) -> None:
        """Raises StartupError when it is another one of Slack's credentials."""
        belongs, name = self.kind
        if not name or belongs == self.key:
            return
        swapped = any(each.key == belongs and each.kind[0] == self.key for each in of)
        how = f"; it and {belongs} are swapped" if swapped else ""
        how = how or (f"; that belongs in {belongs}" if belongs else "")
        raise StartupError(self.key, f"holds {name}{how}. Use {self.wanted}")


async def _call(
    http: aiohttp.ClientSession, access: SlackAccess, method: str, key: str, token: str
) -> Mapping[str, JsonValue]:
    answer = await _post(http, access, method, token, {})
    if answer.get("ok") is True:
        return answer
    error = clean_words(_text(answer, "error"), 100) or "no reason given"
    raise StartupError(key, f"Slack refused it in {method}: {error}", _advice(error))


async def _app_id(http: aiohttp.ClientSession, access: SlackAccess, bot_id: str) -> str:
    """The app's id, to tell requests for another app apart; "" when Slack does not say."""
    answer = await _post(http, access, "bots.info", access.bot_token, {"bot": bot_id})
    bot = answer.get("bot")
    return _text(bot, "app_id") if isinstance(bot, dict) else ""


async def _post(
    http: aiohttp.ClientSession,
    access: SlackAccess,
    method: str,
    token: str,
    form: Mapping[str, str],
) -> Mapping[str, JsonValue]:
    url = access.api_base_url.rstrip("/") + "/" + method
    headers = {"Authorization": f"Bearer {token.strip()}"}
    status: int | None = None
    try:
        async with http.post(url, headers=headers, data=form) as response:
            status = response.status
            answer = orjson.loads(await _whole(response))
    except (TimeoutError, aiohttp.ClientError, ValueError) as error:
        why = type(error).__name__ if status is None else f"HTTP {status}, {type(error).__name__}"
        raise StartupError(
            "slack.api_base_url",
            f"{method} got no usable answer ({why}); check the address and that "
            "this machine may reach it",
            status=status,
        ) from error
    if not isinstance(answer, dict) or (status >= 400 and not _text(answer, "error")):
        raise StartupError(
            "slack.api_base_url",
            f"{method} answered HTTP {status} without a reason of Slack's",
            status=status,
        )
    return answer


async def _whole(response: aiohttp.ClientResponse) -> bytes:
    """Its body. Raises ValueError when it is no answer of Slack's for its length alone."""
    body = bytearray()
    async for part in response.content.iter_any():
        body += part
        if len(body) > _MAX_ANSWER_BYTES:
            raise ValueError("too long")
    return bytes(body)


def _text(answer: Mapping[str, JsonValue], name: str) -> str:
    value = answer.get(name)
    return value if isinstance(value, str) else ""


def _advice(error: str) -> str:
    match error:
        case "invalid_auth" | "not_authed":
            return "Copy the token again; was it cut, or is it another app's?"
        case "token_revoked" | "account_inactive" | "token_expired":
            return "Reinstall the app in the workspace and copy the new token."
        case "not_allowed_token_type":
            return "The two tokens may be swapped: bot tokens start with xoxb-, app tokens xapp-."
        case "missing_scope" | "no_permission":
            return "Compare the app's scopes with app-manifest.yml and reinstall it."
        case "ratelimited":
            return "Too many starts in a short time; wait a minute."
        case _:
            return "See https://docs.slack.dev for this error."
