"""Authentication: the token of a request, looked up each time, and its caller's rate limit.

Three kinds are accepted: the configured one, those of `kortex token`, and those of an identity
provider. A failed look-up is refused.
"""

import hashlib
import hmac
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final

from aiohttp import web
from pydantic import JsonValue

from bot.domain.callers import OPERATOR, Caller, CallerKind, KnownCaller
from bot.domain.ids import TeamId, UserId
from bot.ports.failures import StorageUnavailable
from bot.store.callers import PREFIX, StoredCallers

MINUTE_S: Final = 60.0
_ACCOUNT: Final = re.compile(r"(?:T[A-Z0-9]{1,30}/)?[UW][A-Z0-9]{1,30}")
_NAME: Final = re.compile(r"[^\w .@+-]")

# The identity provider's claims about the bearer of a token; None for a refused token.
ClaimsOf = Callable[[str], Awaitable[Mapping[str, JsonValue] | None]]


class Denied(Exception):
    """A request that is not answered. `code` is stable, the message says what to do."""

    def __init__(self, status: int, code: str, message: str, retry_after_s: int = 0) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.retry_after_s = retry_after_s


def no_cookie(_request: web.Request) -> str:
    """Where there is no page, no cookie is a token."""
    return ""


UNAUTHORIZED: Final = "Send `Authorization: Bearer ...` with a live token (`kortex token create`)."


@dataclass(frozen=True, slots=True)
class ClaimRules:
    """How claims become a caller. `roles` are ours by values of the claim."""

    name: str
    roles_claim: str
    roles: Mapping[str, str]
    account: str = ""

    def caller(self, claims: Mapping[str, JsonValue]) -> KnownCaller:
        """The subject of the claims: issuer and subject make the id."""
        subject = f"{claims.get('iss')}\n{claims.get('sub')}"
        user = UserId(
            f"@oidc/{hashlib.sha256(subject.encode('utf-8', 'replace')).hexdigest()[:24]}"
        )
        told = claims.get(self.roles_claim)
        values = told if isinstance(told, list) else [told]
        held = frozenset(self.roles[v] for v in values if isinstance(v, str) and v in self.roles)
        named = claims.get(self.name)
        name = _NAME.sub("", named)[:100] if isinstance(named, str) else ""
        account = claims.get(self.account) if self.account else None
        known = isinstance(account, str) and _ACCOUNT.fullmatch(account)
        return KnownCaller(
            user, CallerKind.PERSON, name or "somebody", held, str(account) if known else ""
        )


@dataclass(slots=True)
class _Window:
    began: float
    count: int = 0


@dataclass(slots=True)
class Rate:
    """So many requests a minute for each caller, counted in this process."""

    per_minute: int
    clock: Callable[[], float]
    _windows: dict[str, _Window] = field(default_factory=dict)

    def take(self, key: str) -> None:
        """Raises Denied when the minute's requests are used up."""
        now = self.clock()
        window = self._windows.get(key)
        if window is None or not 0 <= now - window.began < MINUTE_S:
            self._windows = {
                k: w for k, w in self._windows.items() if 0 <= now - w.began < MINUTE_S
            }
            window = self._windows[key] = _Window(now)
        window.count += 1
        if window.count > self.per_minute:
            wait_s = max(1, round(MINUTE_S - (now - window.began)))
            raise Denied(429, "too_many_requests", f"Wait {wait_s} s.", wait_s)


class CallerAuthenticator:
    """`home` is the team of accounts that name none."""

    def __init__(
        self,
        callers: StoredCallers,
        operator_token: str,
        home: TeamId,
        rate: Rate,
        claims_of: ClaimsOf | None = None,
        rules: ClaimRules | None = None,
        cookie_of: Callable[[web.Request], str] = no_cookie,
    ) -> None:
        self._callers = callers
        self._operator_token = operator_token
        self._home = home
        self._rate = rate
        self._claims_of = claims_of
        self._rules = rules
        self._cookie_of = cookie_of

    async def authenticate(self, request: web.Request, scheme: str = "bearer") -> Caller:
        """Who sends the request, by the bearer token, that of the scheme, or the page's cookie.

        Raises Denied.
        """
        caller = await self.reauthenticate(request, scheme)
        self._rate.take(caller.key)
        return caller

    async def reauthenticate(self, request: web.Request, scheme: str = "bearer") -> Caller:
        """The same of a request that was admitted and goes on; it is not counted again."""
        given = request.headers.getall("Authorization", [])
        if not given:
            return await self.caller_of(self._cookie_of(request))
        return await self.caller_of(token_of(given) or token_of(given, scheme))

    async def caller_of(self, token: str) -> Caller:
        """The token's caller. Raises Denied."""
        if not token:
            raise Denied(401, "unauthorized", UNAUTHORIZED)
        configured = self._operator_token
        if configured and hmac.compare_digest(_bytes(token), _bytes(configured)):
            return OPERATOR
        try:
            found = await self._of_ours(token) if token.startswith(PREFIX) else None
            if found is None and self._claims_of is not None and token.count(".") == 2:
                found = await self._of_claims(token)
        except StorageUnavailable as error:
            why = "I could not check your token; nothing was done. Try again."
            raise Denied(503, "unavailable", why, 5) from error
        if found is None:
            raise Denied(401, "unauthorized", UNAUTHORIZED)
        return found

    async def _of_ours(self, token: str) -> Caller | None:
        found = await self._callers.shown(token)
        return None if found is None else self._caller(found.caller, found.id)

    async def _of_claims(self, token: str) -> Caller | None:
        if self._claims_of is None or self._rules is None:
            return None
        claims = await self._claims_of(token)
        until = claims.get("exp") if claims else None
        if claims is None or isinstance(until, bool) or not isinstance(until, int | float):
            return None
        caller = self._rules.caller(claims)
        try:
            await self._callers.told_of(caller, datetime.fromtimestamp(until, UTC))
        except (ValueError, OverflowError, OSError):
            return None  # an expiry that no calendar has
        return self._caller(caller, caller.user)

    def _caller(self, known: KnownCaller, key: str) -> Caller:
        return Caller(known.person(self._home), known.kind, known.name, key)


def token_of(headers: Sequence[str], wanted: str = "bearer") -> str:
    """The token of the one `Authorization` header; "" for none, several, or another scheme."""
    if len(headers) != 1:
        return ""
    scheme, _, given = headers[0].partition(" ")
    return given.strip() if scheme.lower() == wanted else ""


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "replace")
