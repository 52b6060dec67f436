"""Other workspaces that may install the app (`[slack] client_id` and its like), and their own
settings.
"""

import base64
import binascii
import re
from typing import Annotated, Final, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, SecretStr, model_validator

from bot.settings.section import Section

EVERY: Final = "*"
_TEAM: Final = re.compile(r"T[A-Z0-9]{2,20}")
_KEY_BYTES: Final = 32  # https://github.com/fernet/spec: 128 bits to sign with, 128 to encrypt with
MOST_USD: Final = 1_000_000.0  # as `[llm.budget]`


def _team(text: str) -> str:
    if not _TEAM.fullmatch(text):
        raise ValueError(
            f"{text!r} is not the id of a workspace. They look like T0123ABCD: in a browser, Slack's "
            "address is https://app.slack.com/client/T0123ABCD/..."
        )
    return text


def _team_or_every(text: str) -> str:
    return text if text == EVERY else _team(text)


def _team_or_home(text: str) -> str:
    return _team(text) if text else text


def _any_team(text: str) -> str:
    return _team_or_every(text) if text else text


def _redirect(text: str) -> str:
    parts = urlsplit(text)
    if text and (parts.scheme not in ("http", "https") or not parts.hostname):
        raise ValueError(
            "must be the whole address, such as https://kortex.example.com/slack/oauth_redirect"
        )
    return text


TeamId = Annotated[str, AfterValidator(_team)]
TeamIdOrEvery = Annotated[str, AfterValidator(_team_or_every)]
# "" is the workspace of `[slack] bot_token`.
Workspace = Annotated[str, AfterValidator(_team_or_home)]
AnyWorkspace = Annotated[str, AfterValidator(_any_team)]


class InstallSettings(Section):
    """The part of `[slack]` for installations in other workspaces; without `client_id` none can.

    `token_keys` are Fernet keys: the first seals, all of them open. Empty ones are left out.
    """

    client_id: str = ""
    client_secret: SecretStr = SecretStr("")
    token_keys: tuple[SecretStr, ...] = ()
    allowed_workspaces: tuple[TeamIdOrEvery, ...] = ()
    redirect_url: Annotated[str, AfterValidator(_redirect)] = ""

    @property
    def seal_keys(self) -> tuple[str, ...]:
        found = (key.get_secret_value().strip() for key in self.token_keys)
        return tuple(key for key in found if key)

    @model_validator(mode="after")
    def _whole(self) -> Self:
        for key in self.seal_keys:
            if not _is_key(key):
                raise ValueError(
                    "token_keys: one is not a Fernet key; make one with `python -c 'from "
                    "cryptography.fernet import Fernet; print(Fernet.generate_key().decode())'`"
                )
        if self.client_id and not (self.client_secret.get_secret_value() and self.seal_keys):
            raise ValueError("client_id needs client_secret and at least one of token_keys")
        return self


def _is_key(text: str) -> bool:
    try:
        return len(base64.b64decode(text.encode(), altchars=b"-_", validate=True)) == _KEY_BYTES
    except (binascii.Error, ValueError):
        return False


class WorkspaceSettings(Section):
    """`[workspaces.T0123]`: it may install the app. A limit of 0 means no limit of its own."""

    daily_usd_limit: float = Field(default=0.0, ge=0, le=MOST_USD)
    admins: tuple[str, ...] = ()
