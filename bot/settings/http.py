"""The shape of `[http]` and `[oidc]`: where we listen, and who may call over HTTP."""

from typing import Annotated, Literal, Self

from pydantic import Field, SecretStr, model_validator

from bot.settings.section import NotEmpty, Section, absent_table

Address = Annotated[str, Field(pattern=r"^(?:https?://[^\s]+)?$")]


class CallerSettings(Section):
    """`[http.callers]`. Counted by each replica; workers of one service divide it."""

    requests_per_minute: int = Field(default=240, ge=1, le=100_000)
    streams: int = Field(default=8, ge=1, le=1_000)


class HttpSettings(Section):
    """`[http]`. Loopback by default: a reverse proxy decides what the world sees.

    A sender's secret opens its endpoint: the alerts' four, and `flux_secret`, `github_secret` and
    `gitlab_token` for deploys.
    """

    host: str = "127.0.0.1"
    port: int = Field(default=3000, ge=0, le=65535)
    api_token: SecretStr = SecretStr("")
    flux_secret: SecretStr = SecretStr("")
    github_secret: SecretStr = SecretStr("")
    gitlab_token: SecretStr = SecretStr("")
    alertmanager_token: SecretStr = SecretStr("")
    grafana_token: SecretStr = SecretStr("")
    pagerduty_secret: SecretStr = SecretStr("")
    cloudevents_token: SecretStr = SecretStr("")
    nirmata_wire: bool = False
    callers: CallerSettings = absent_table()


def own_address(http: HttpSettings) -> str:
    """Where this machine reaches the service."""
    every = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - compared, not bound
    here = every.get(http.host, http.host)
    return f"http://{f'[{here}]' if ':' in here else here}:{http.port}"


class OidcSettings(Section):
    """`[oidc]`. Without an issuer no such token is accepted.

    `jwks_url` empty: the issuer's metadata names it. `roles` are ours by values of `roles_claim`;
    `account_claim` names a claim with the user id of the chat platform, with the roles of that
    user. With `sign_in` people sign in to the page there, as the client with the id `audience`.
    """

    issuer: Address = ""
    audience: str = ""
    jwks_url: Address = ""
    algorithms: Annotated[
        tuple[Literal["RS256", "RS384", "RS512", "PS256", "ES256", "ES384", "EdDSA"], ...],
        Field(min_length=1),
    ] = ("RS256", "ES256")
    name_claim: NotEmpty = "email"
    roles_claim: NotEmpty = "groups"
    roles: dict[NotEmpty, NotEmpty] = Field(default_factory=dict)
    account_claim: str = ""
    sign_in: bool = False
    client_secret: SecretStr = SecretStr("")

    @model_validator(mode="after")
    def _is_bound(self) -> Self:
        if self.issuer and not self.audience:
            raise ValueError("set `audience`: a token for another service must not open this one")
        if self.sign_in and not self.issuer:
            raise ValueError("sign_in needs an `issuer`")
        return self
