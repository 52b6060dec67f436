"""What an action is declared by: in `[[actions]]` of kortex.toml, or as a rule of reflexes.toml."""

from datetime import timedelta
from typing import Literal

from pydantic import Field, JsonValue, SecretStr

from bot.settings.section import Duration, Section, Token


class EndpointSettings(Section):
    """Where an action is dispatched to. `{product}` in the URL is filled in, encoded.

    `url` is the control plane's, the GitHub workflow's or the GitLab project's; `ref` the branch or
    tag that a workflow or pipeline runs on. A rehearsal sends nothing and needs neither.
    """

    kind: Literal["control_plane", "github", "gitlab", "rehearsal"] = "control_plane"
    method: Literal["POST"] = "POST"
    url: str = ""
    ref: str = ""
    token: Token = SecretStr("")
    timeout: Duration = timedelta(seconds=30)


def _no_params() -> dict[str, JsonValue]:
    return {"type": "object", "properties": {}, "additionalProperties": False}


class DeclaredSettings(Section):
    """The operation and its parameters.

    `read_token` reads the target (dry run, count, fingerprint) before a confirmation; `free_text`
    names parameters that select nothing and may hold any text.
    """

    name: str = Field(pattern=r"^[a-z][a-z0-9-]{0,62}$")
    description: str
    products: tuple[str, ...] = ("*",)
    params_schema: dict[str, JsonValue] = Field(default_factory=_no_params)
    free_text: tuple[str, ...] = ()
    endpoint: EndpointSettings
    status_url: str = ""
    max_duration: Duration = timedelta(minutes=30)
    read_token: Token = SecretStr("")
    read_timeout: Duration = timedelta(seconds=5)
    reversible: bool = False
    verify_metric: str = ""
    verify_after: Duration = timedelta(minutes=10)
    rollback: str = ""
    rollback_params: dict[str, JsonValue] = Field(default_factory=dict)


class GuardSettings(Section):
    """What has to hold before it is done."""

    approvals: int = Field(default=1, ge=1, le=10)
    four_eyes: bool = False
    confirm: tuple[str, ...] = ()
    confirm_dialog: bool = False
    quiet_hours: tuple[str, ...] = ()
    rate_limit: str = ""
    blast_radius: Literal["one host", "one service", "whole cluster"] = "one service"
    max_objects: int = Field(default=0, ge=0, le=1_000_000_000)
    count_param: str = ""
    count_url: str = ""
    dry_run: bool = False
    fingerprint_url: str = ""
    fingerprint_fields: tuple[str, ...] = ()


class ActionSettings(DeclaredSettings, GuardSettings):
    """One `[[actions]]`: what may be proposed; nothing else exists."""
