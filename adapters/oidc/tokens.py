"""Bearer tokens of an OpenID Connect provider, checked against its keys (extra `kortex[oidc]`).

Keys are fetched when a token names one that is not known, at most once a minute, and again after an hour.
While the provider is away, known keys serve and unknown ones deny. Which algorithms count is ours to say,
never the token's; none of them is symmetric.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

import jwt
from pydantic import BaseModel, ConfigDict, JsonValue

from adapters.errors import AdapterError, BadAnswer
from adapters.http.client import DIRECT
from adapters.http.transport import Route
from adapters.on_call.reading import get_json, reading

FETCH_S: Final = 5.0
REFETCH_S: Final = 60.0  # invented key ids cause no more requests than this
KEYS_TTL_S: Final = 3_600.0
SKEW_S: Final = 60.0
# What shows as nothing: Hangul's fillers, Braille's empty pattern, the null notehead, and the marks
# among Unicode's Default_Ignorable_Code_Point, mainly variation selectors.
BLANK_LETTERS: Final = frozenset(
    "\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u2800\u3164\uffa0\U0001d159"
) | set(map(chr, (*range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0))))
# What PyJWT raises for odd text; its older releases also for deep brackets and an infinite time.
_UNREADABLE: Final = (jwt.PyJWTError, ValueError, TypeError, OverflowError, RecursionError)
MOST_KEYS: Final = 50
MOST_TOKEN_CHARS: Final = 8_192  # of a header line, as aiohttp takes it


class TokenRefused(Exception):
    """The token is not one to be taken. The message says why, and holds nothing of it."""


@dataclass(frozen=True, slots=True)
class Issuer:
    """An identity provider, and the audience its tokens must name. An empty `jwks_url` is discovered."""

    url: str
    audience: str
    algorithms: Sequence[str]
    jwks_url: str = ""


class _Metadata(BaseModel):
    """https://openid.net/specs/openid-connect-discovery-1_0.html#ProviderMetadata."""

    model_config = ConfigDict(extra="ignore", hide_input_in_errors=True)

    issuer: str
    jwks_uri: str


class _KeySet(BaseModel):
    """RFC 7517 section 5."""

    model_config = ConfigDict(extra="ignore", hide_input_in_errors=True)

    keys: list[JsonValue]


class OidcTokens:
    def __init__(self, issuer: Issuer, clock: Callable[[], float], route: Route = DIRECT) -> None:
        self._issuer = issuer
        self._clock = clock
        self._route = route
        self._keys: Mapping[str, jwt.PyJWK] = {}
        self._fetched_at = self._tried_at = float("-inf")
        self._lock = asyncio.Lock()

    async def claims(self, token: str) -> Mapping[str, JsonValue]:
        """The issuer's claims about the bearer. Raises TokenRefused, and never AdapterError."""
        if len(token) > MOST_TOKEN_CHARS:
            raise TokenRefused("too long")
        try:
            header = jwt.get_unverified_header(token)
        except _UNREADABLE as error:
            raise TokenRefused("no JSON Web Token") from error
        algorithm, name = header.get("alg"), header.get("kid", "")
        if algorithm not in self._issuer.algorithms:
            raise TokenRefused("an algorithm that is not allowed")
        key = await self._key(name if isinstance(name, str) else "")
        if key.algorithm_name != algorithm:
            raise TokenRefused("its key is for another algorithm")
        try:
            found: Mapping[str, JsonValue] = jwt.decode(
                token,
                key.key,
                algorithms=[algorithm],
                audience=self._issuer.audience,
                issuer=self._issuer.url,
                leeway=SKEW_S,
                options={"require": ["exp", "sub", "iss", "aud"]},
            )
        except _UNREADABLE as error:
            raise TokenRefused(type(error).__name__) from error
        subject = found["sub"]
        # Two people could share an unprintable name: half a surrogate pair has no UTF-8.
        if not (isinstance(subject, str) and subject.strip() and subject.isprintable()):
            raise TokenRefused("no subject")
        if not BLANK_LETTERS.isdisjoint(subject):
            raise TokenRefused("no subject")
        return found

    async def _key(self, name: str) -> jwt.PyJWK:
        found = self._keys.get(name)
        if found is None or self._clock() - self._fetched_at > KEYS_TTL_S:
            async with self._lock:
                if self._keys.get(name) is found and self._may_fetch():
                    with suppress(AdapterError):  # known keys still serve
                        await self.fetch()
            found = self._keys.get(name)
        if found is None:
            raise TokenRefused("a key that the issuer does not name, or the issuer is away")
        return found

    def _may_fetch(self) -> bool:
        return self._clock() - self._tried_at > REFETCH_S

    async def fetch(self) -> int:
        """Fetch the keys now; how many can be used. Raises AdapterError: the keys are as they were."""
        self._tried_at = self._clock()
        try:
            url = self._issuer.jwks_url or await self._jwks_url()
            keys = _KeySet.model_validate(await self._get(url)).keys
        except ValueError as error:  # ValidationError, or half an IPv6 address
            raise BadAnswer("the issuer's answer names no keys") from error
        self._keys = {str(each.get("kid", "")): key for each, key in self._usable(keys)}
        self._fetched_at = self._clock()
        return len(self._keys)

    async def _jwks_url(self) -> str:
        url = f"{self._issuer.url.rstrip('/')}/.well-known/openid-configuration"
        told = _Metadata.model_validate(await self._get(url))
        if told.issuer != self._issuer.url:
            raise BadAnswer("the metadata is another issuer's")
        if self._issuer.url.startswith("https:") and not told.jwks_uri.startswith("https:"):
            raise BadAnswer("the metadata names keys that are not served over https")
        return told.jwks_uri

    async def _get(self, url: str) -> JsonValue:
        async with reading(url, FETCH_S, self._route) as client:
            return await get_json(client, url, {"Accept": "application/json"})

    def _usable(self, keys: Sequence[JsonValue]) -> Sequence[tuple[Mapping[str, Any], jwt.PyJWK]]:
        found: list[tuple[Mapping[str, Any], jwt.PyJWK]] = []
        for each in keys[:MOST_KEYS]:
            if not isinstance(each, dict) or each.get("use", "sig") != "sig":
                continue
            if each.get("kty") not in ("RSA", "EC", "OKP"):
                continue
            alg: Any = each.get("alg")
            try:
                found.append((each, jwt.PyJWK(dict(each), alg)))
            except (jwt.PyJWTError, ValueError, TypeError, KeyError):
                continue  # an unusable key does not spoil the rest
        return found
