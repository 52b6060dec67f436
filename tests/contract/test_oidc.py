"""Tokens of an identity provider against its keys: rotation, outage, and every way to forge one."""

import base64
import json
import time
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import jwt
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from adapters.oidc.tokens import Issuer, OidcTokens, TokenRefused

AUDIENCE = "kortex"
RSA = rsa.generate_private_key(65537, 2048)
OTHER = rsa.generate_private_key(65537, 2048)
CURVE = ec.generate_private_key(ec.SECP256R1())


def _public(key: Any, kid: str, algorithm: str) -> dict[str, Any]:
    kind = jwt.algorithms.ECAlgorithm if algorithm == "ES256" else jwt.algorithms.RSAAlgorithm
    found: dict[str, Any] = kind.to_jwk(key.public_key(), as_dict=True)
    return {**found, "kid": kid, "alg": algorithm, "use": "sig"}


@dataclass
class Provider:
    """An issuer with keys, metadata and mood that a test changes."""

    url: str = ""
    keys: Sequence[object] = field(default_factory=lambda: [_public(RSA, "one", "RS256")])
    status: int = 200
    issuer: str = ""
    jwks_uri: str = ""
    asked: int = 0
    now: float = 1_000.0
    tokens: OidcTokens = None  # type: ignore[assignment]

    def token(
        self, key: Any = RSA, kid: str = "one", algorithm: str = "RS256", **claims: Any
    ) -> str:
        now = int(time.time())
        body = {"iss": self.url, "aud": AUDIENCE, "sub": "ann", "exp": now + 300, **claims}
        body = {name: value for name, value in body.items() if value is not None}
        return jwt.encode(body, key, algorithm, headers={"kid": kid})


def signed(claims: dict[str, object]) -> str:
    """A token with any claims, which PyJWT would refuse to make."""
    body = json.dumps({"exp": int(time.time()) + 300, **claims}).encode()
    return jwt.PyJWS().encode(body, RSA, "RS256", {"kid": "one"})


def named(provider: Provider) -> dict[str, object]:
    return {"iss": provider.url, "aud": AUDIENCE, "sub": "ann"}


def headed(header: bytes) -> str:
    parts = (header, b"{}", b"no signature")
    return ".".join(base64.urlsafe_b64encode(each).rstrip(b"=").decode() for each in parts)


@pytest.fixture
async def provider() -> AsyncIterator[Provider]:
    made = Provider()

    async def metadata(_request: web.Request) -> web.Response:
        told = {"issuer": made.issuer or made.url, "jwks_uri": made.jwks_uri or f"{made.url}/keys"}
        return web.json_response(told, status=made.status)

    async def keys(_request: web.Request) -> web.Response:
        made.asked += 1
        return web.json_response({"keys": made.keys}, status=made.status)

    app = web.Application()
    app.router.add_get("/.well-known/openid-configuration", metadata)
    app.router.add_get("/keys", keys)
    async with TestServer(app) as server:
        made.url = f"http://127.0.0.1:{server.port}"
        issuer = Issuer(made.url, AUDIENCE, ("RS256", "ES256"))
        made.tokens = OidcTokens(issuer, lambda: made.now)
        yield made


async def test_a_token_of_the_issuer_is_accepted_and_its_keys_are_cached(
    provider: Provider,
) -> None:
    for _ in range(3):
        assert (await provider.tokens.claims(provider.token()))["sub"] == "ann"
    assert provider.asked == 1


async def test_a_new_key_is_asked_for_at_most_once_a_minute(provider: Provider) -> None:
    await provider.tokens.claims(provider.token())
    provider.keys = [_public(CURVE, "two", "ES256")]
    rotated = provider.token(CURVE, "two", "ES256")
    for _ in range(3):
        with pytest.raises(TokenRefused):
            await provider.tokens.claims(rotated)
    assert provider.asked == 1

    provider.now += 61.0
    assert (await provider.tokens.claims(rotated))["sub"] == "ann"
    with pytest.raises(TokenRefused):  # what the issuer took back
        await provider.tokens.claims(provider.token())
    assert provider.asked == 2


async def test_during_an_issuer_outage_cached_keys_serve_and_unknown_ones_deny(
    provider: Provider,
) -> None:
    await provider.tokens.claims(provider.token())
    provider.status = 503
    provider.now += 7_200.0

    assert (await provider.tokens.claims(provider.token()))["sub"] == "ann"
    provider.now += 61.0
    with pytest.raises(TokenRefused):
        await provider.tokens.claims(provider.token(OTHER, "other"))


FORGED: dict[str, Callable[[Provider], str]] = {
    "another key under its name": lambda p: p.token(OTHER),
    "no signature": lambda p: p.token("", "one", "none"),
    "a symmetric one over the public key": lambda p: p.token("public" * 8, "one", "HS256"),
    "an algorithm that is not allowed": lambda p: p.token(RSA, "one", "RS512"),
    "another issuer": lambda p: p.token(iss="https://else"),
    "a part of the issuer": lambda p: p.token(iss=p.url[:-1]),
    "no text as the issuer": lambda p: signed({"iss": [p.url], "aud": AUDIENCE, "sub": "ann"}),
    "an audience as a key": lambda p: signed({"iss": p.url, "aud": {AUDIENCE: 1}, "sub": "ann"}),
    "an audience in a list": lambda p: signed({"iss": p.url, "aud": [[AUDIENCE]], "sub": "ann"}),
    "an end without an end": lambda p: signed(named(p) | {"exp": float("inf")}),
    "an end of many digits": lambda p: signed(named(p) | {"exp": "9" * 5_000}),
    "an end in a list": lambda p: signed(named(p) | {"exp": [2**33]}),
    "a begin that is no number": lambda p: signed(named(p) | {"nbf": float("nan")}),
    "claims that are a list": lambda _p: jwt.PyJWS().encode(b"[]", RSA, "RS256", {"kid": "one"}),
    "claims of deep brackets": lambda _p: jwt.PyJWS().encode(
        b"[" * 5_000, RSA, "RS256", {"kid": "one"}
    ),
    "a header of deep brackets": lambda _p: headed(b'{"alg":' + b"[" * 5_000),
    "a header of many digits": lambda _p: headed(b'{"alg":' + b"9" * 5_000 + b"}"),
    "a header that is a list": lambda _p: headed(b"[]"),
    "a header with a list of algorithms": lambda _p: headed(b'{"alg":["RS256"],"kid":"one"}'),
    "a header with a list of keys": lambda _p: headed(b'{"alg":"RS256","kid":["one"]}'),
    "another audience": lambda p: p.token(aud="grafana"),
    "no audience": lambda p: p.token(aud=None),
    "no subject": lambda p: p.token(sub=None),
    "no end": lambda p: p.token(exp=None),
    "over": lambda p: p.token(exp=int(time.time()) - 61),
    "an end of 128 bits": lambda p: p.token(exp=2**127) + "x",
    "not yet": lambda p: p.token(nbf=int(time.time()) + 120),
    "an unknown key": lambda p: p.token(kid="../../etc/passwd"),
    "another's curve under its name": lambda p: p.token(CURVE, "one", "ES256"),
    "nothing": lambda _p: "",
    "no token": lambda _p: "a.b.c",
    "a lone surrogate": lambda _p: "\ud800.\ud800.\ud800",
    "brackets": lambda _p: "[" * 1_500,
    "too long": lambda p: p.token(more="x" * 10_000),
}


@pytest.mark.parametrize(
    "subject",
    [
        "",
        " ",
        "\t\n",
        "\u00a0",
        "\u3000",
        "\u200b",
        "\u3164",
        "\u2800 ",
        "ann\u115f",
        "\ufeff",
        "\u00ad",
        "\U000e0061",
        "ann\u202e",
        "ann\n",
        "\ud800",
        "ann\x00",
        "\ufe0f",
        "ann\ufe0e",
        "\u034f\u180b",
        "ann\U000e0100",
        "\u2060",
        "\u061c",
        "ann\u2028",
        "\x1b[0m",
        "\U0001d159",
        "\ue000",
        "\u2064ann",
        [],
        {},
        -1,
        2**64,
        7,
        0,
        True,
        ["ann"],
        {"a": 1},
        1.5,
    ],
    ids=repr,
)
async def test_a_token_without_a_readable_subject_is_refused(
    provider: Provider, subject: object
) -> None:
    token = signed({"iss": provider.url, "aud": AUDIENCE, "sub": subject})
    with pytest.raises(TokenRefused):
        await provider.tokens.claims(token)


@pytest.mark.parametrize(
    "subject", ["ann", "auth0|5f7", "Zoë Müller", "用户", " ann ", "0", "*", "Zoe\u0301", "김철수"]
)
async def test_a_readable_subject_is_accepted(provider: Provider, subject: str) -> None:
    assert (await provider.tokens.claims(provider.token(sub=subject)))["sub"] == subject


@pytest.mark.parametrize("how", FORGED)
async def test_a_forged_token_is_refused(provider: Provider, how: str) -> None:
    with pytest.raises(TokenRefused) as refused:
        await provider.tokens.claims(FORGED[how](provider))
    assert "ann" not in str(refused.value)


async def test_a_token_is_accepted_until_a_minute_after_its_expiry(provider: Provider) -> None:
    late = provider.token(exp=int(time.time()) - 30)

    assert (await provider.tokens.claims(late))["sub"] == "ann"


@pytest.mark.parametrize(
    "keys",
    [
        [],
        [{"kty": "oct", "k": "c2VjcmV0", "kid": "one", "alg": "HS256"}],
        [{"kty": "RSA", "kid": "one"}],
        [{**_public(RSA, "one", "RS256"), "use": "enc"}],
        [_public(RSA, "one", "RS512")],
    ],
)
async def test_unusable_keys_deny(provider: Provider, keys: list[dict[str, Any]]) -> None:
    provider.keys = keys
    with pytest.raises(TokenRefused):
        await provider.tokens.claims(provider.token())


@pytest.mark.parametrize(
    "odd",
    [
        None,
        "one",
        2**64,
        [],
        {},
        {"kty": None},
        {"kty": ["RSA"], "kid": "x"},
        {"kty": "RSA", "kid": "x", "n": None, "e": 2**64},
        {"kty": "EC", "crv": {}, "kid": "x"},
        {"kty": "OKP", "crv": "Ed25519", "x": "\ud800", "kid": "x"},
        {**_public(RSA, "x", "RS256"), "alg": ["RS256"]},
        {**_public(RSA, "x", "RS256"), "alg": 7, "use": None},
    ],
    ids=lambda odd: ascii(odd)[:40],
)
async def test_an_odd_key_does_not_hide_the_other_keys(provider: Provider, odd: object) -> None:
    provider.keys = [odd, _public(RSA, "one", "RS256"), odd]

    assert (await provider.tokens.claims(provider.token()))["sub"] == "ann"


@pytest.mark.parametrize("address", ["http://[::1", "//", "keys", "\x00"])
async def test_an_unreadable_keys_address_denies(provider: Provider, address: str) -> None:
    provider.jwks_uri = address
    with pytest.raises(TokenRefused):
        await provider.tokens.claims(provider.token())


async def test_the_metadata_of_another_issuer_is_refused(provider: Provider) -> None:
    provider.issuer = "https://else"
    with pytest.raises(TokenRefused):
        await provider.tokens.claims(provider.token())
    assert provider.asked == 0
