"""Signing in at an OpenID Connect provider: the authorization code flow with PKCE, by authlib.

The ID token that the code is exchanged for is checked by `adapters.oidc.tokens`. authlib forms the
requests and our HTTP client sends them, because authlib's own client bypasses the egress guard.
https://openid.net/specs/openid-connect-core-1_0.html#CodeFlowAuth, RFC 7636 (PKCE).
"""

from dataclasses import dataclass
from typing import Final, TypeVar
from urllib.parse import urlsplit

import httpx
import orjson
from authlib.oauth2.client import DEFAULT_HEADERS, OAuth2Client
from authlib.oauth2.rfc6749.parameters import prepare_token_request
from pydantic import BaseModel, ConfigDict, JsonValue, ValidationError

from adapters.errors import BadAnswer
from adapters.http.body import read_capped
from adapters.http.client import DIRECT
from adapters.http.errors import check_status
from adapters.http.transport import Route
from adapters.on_call.reading import get_json, reading

TIMEOUT_S: Final = 5.0
MAX_ANSWER_BYTES: Final = 65_536
SCOPES: Final = "openid profile email"
AnswerT = TypeVar("AnswerT", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class SignInClient:
    """Who we are to the provider. Without a secret it knows us as a public client."""

    issuer: str
    client_id: str
    client_secret: str = ""


class _Metadata(BaseModel):
    """https://openid.net/specs/openid-connect-discovery-1_0.html#ProviderMetadata."""

    model_config = ConfigDict(extra="ignore", hide_input_in_errors=True)

    issuer: str
    authorization_endpoint: str
    token_endpoint: str


class _Tokens(BaseModel):
    model_config = ConfigDict(extra="ignore", hide_input_in_errors=True)

    id_token: str


class OidcSignIn:
    """Of one provider. Its metadata is read at each sign-in: they are rare, and addresses move."""

    def __init__(self, client: SignInClient, route: Route = DIRECT) -> None:
        self._client = client
        self._route = route

    async def address(self, redirect_uri: str, state: str, nonce: str, verifier: str) -> str:
        """Where the browser goes. `verifier` is kept by us and shown at the end. Raises AdapterError."""
        endpoint = (await self._metadata()).authorization_endpoint
        oauth = OAuth2Client(
            None,
            self._client.client_id,
            scope=SCOPES,
            redirect_uri=redirect_uri,
            code_challenge_method="S256",
        )
        url, _ = oauth.create_authorization_url(endpoint, state, verifier, nonce=nonce)
        return str(url)

    async def id_token(self, code: str, redirect_uri: str, verifier: str) -> str:
        """What the provider gives for that code, unchecked. Raises AdapterError."""
        client_id, secret = self._client.client_id, self._client.client_secret
        form = prepare_token_request(
            "authorization_code",
            "",
            redirect_uri,
            code=code,
            code_verifier=verifier,
            client_id=client_id,
        )
        basic = httpx.BasicAuth(client_id, secret) if secret else None
        endpoint = (await self._metadata()).token_endpoint
        async with reading(endpoint, TIMEOUT_S, self._route) as client:
            request = client.build_request("POST", endpoint, content=form, headers=DEFAULT_HEADERS)
            response = await client.send(request, auth=basic, stream=True)
            try:
                check_status(response)
                answer = await read_capped(response, MAX_ANSWER_BYTES)
            finally:
                await response.aclose()
        return _valid(_Tokens, _json(answer)).id_token

    async def _metadata(self) -> _Metadata:
        url = f"{self._client.issuer.rstrip('/')}/.well-known/openid-configuration"
        async with reading(url, TIMEOUT_S, self._route) as client:
            told = _valid(_Metadata, await get_json(client, url, {"Accept": "application/json"}))
        if told.issuer != self._client.issuer:
            raise BadAnswer("the metadata is another issuer's")
        secure = urlsplit(self._client.issuer).scheme == "https"
        for endpoint in (told.authorization_endpoint, told.token_endpoint):
            try:
                parts = urlsplit(endpoint)
            except ValueError as error:  # half an IPv6 address
                raise BadAnswer("the metadata names an address that cannot be read") from error
            if not parts.hostname or (
                parts.scheme != "https" and (secure or parts.scheme != "http")
            ):
                raise BadAnswer("the metadata names an address that is not https")
        return told


def _json(body: bytes) -> JsonValue:
    try:
        value: JsonValue = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise BadAnswer("the provider did not answer in JSON") from error
    return value


def _valid(model: type[AnswerT], value: JsonValue) -> AnswerT:
    try:
        return model.model_validate(value)
    except ValidationError as error:
        raise BadAnswer("the provider's answer is not what the protocol says") from error
