"""Whether the configured tokens work, asked once at start: Slack's libraries never fail on a bad one.

A wrong app token reconnects for ever and a wrong bot token acknowledges everything and answers
nothing, so a process that cannot work ends here instead.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pydantic import JsonValue

from bot.domain.ids import TeamId, UserId
from bot.ports.failures import SurfaceFailed, SurfaceGone
from bot.slack.api.web_api import (
    Answer,
    RateLimited,
    Refused,
    Unreachable,
    WebApi,
    create_api,
    slack_session,
)
from bot.slack.ingress.access import SlackAccess, StartupError
from bot.slack.ingress.payloads import SlackIdentity


async def check_slack(access: SlackAccess) -> SlackIdentity:
    """Check every credential of the mode and learn who the bot is.

    Raises StartupError. Opens and closes its own connections; no message is sent.
    """
    check_shape(access)
    async with slack_session() as http:
        bot = create_api(access.bot_token, access.api_base_url, http)
        who = await _asked(bot, "auth.test", "slack.bot_token")
        if access.mode == "socket":
            app = create_api(access.app_token, access.api_base_url, http)
            await _asked(app, "apps.connections.open", "slack.app_token")
        team, user = who.get("team_id"), who.get("user_id")
        if not (isinstance(team, str) and isinstance(user, str)):
            raise StartupError(
                "slack.api_base_url",
                "auth.test named no workspace; check that the address is Slack's API",
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
            app_id=await _app_id(bot, bot_id),
            enterprise=_text(who, "enterprise_id"),
            trusted_teams=access.trusted_teams,
            site=site_of(_text(who, "url")),
        )


def site_of(url: str) -> str:
    """The workspace's address in the answer of auth.test, if it is a plain host; else empty."""
    found = re.fullmatch(r"(https://[a-z0-9][a-z0-9.-]{0,250})/?", url, re.ASCII)
    return found[1] if found else ""


def check_shape(access: SlackAccess) -> None:
    """Check the settings without a call to Slack. Raises StartupError."""
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
        "the Signing Secret, needed to verify requests in HTTP mode, from your app's "
        "“Basic Information” page",
    )
    other = app if access.mode == "socket" else secret
    for one in (bot, other):
        one.refuse_another_kind(of=(bot, app, secret))
        if not one.value.strip():
            why = access.why_empty.get(one.key, "")
            raise StartupError(one.key, f"is empty{f': {why}' if why else ''}. Use {one.wanted}")


# https://docs.slack.dev/authentication/tokens: the prefix of each kind, and its owner.
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
        return _KINDS.get(self.value.strip()[:5], ("", ""))

    def refuse_another_kind(self, of: Sequence["_Credential"]) -> None:
        belongs, name = self.kind
        if not name or belongs == self.key:
            return
        swapped = any(each.key == belongs and each.kind[0] == self.key for each in of)
        how = f"; it and {belongs} are swapped" if swapped else ""
        how = how or (f"; that belongs in {belongs}" if belongs else "")
        raise StartupError(self.key, f"holds {name}{how}. Use {self.wanted}")


async def _asked(api: WebApi, method: str, key: str) -> Answer:
    try:
        return await api.call(method)
    except Unreachable as error:
        raise _unusable(error, method) from error
    except RateLimited as error:
        raise _refused(key, method, "ratelimited") from error
    except Refused as error:
        said = f"Slack refused it in {error}"
        raise StartupError(key, said, _advice(error.code)) from error
    except SurfaceGone as error:
        raise _refused(key, method, str(error)) from error


async def _app_id(bot: WebApi, bot_id: str) -> str:
    """The app's id, to refuse requests for another app; empty if Slack does not give it."""
    try:
        answer = await bot.call("bots.info", bot=bot_id)
    except Unreachable as error:
        raise _unusable(error, "bots.info") from error
    except (SurfaceFailed, SurfaceGone):
        return ""
    found = answer.get("bot")
    return _text(found, "app_id") if isinstance(found, dict) else ""


def _refused(key: str, method: str, code: str) -> StartupError:
    return StartupError(key, f"Slack refused it in {method}: {code}", _advice(code))


def _unusable(error: Unreachable, method: str) -> StartupError:
    return StartupError(
        "slack.api_base_url",
        f"{method} got no usable answer ({error.what}); check the address and that "
        "this machine may reach it",
    )


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
