"""HTTP callers and their tokens, as rows. A token is stored as its SHA-256 and never read back.

It is 256 random bits, so a slow hash adds no security. Every look-up reads the database: all
replicas refuse a revoked token at once.
"""

import hmac
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Any, Final

import orjson
import sqlalchemy as sa
from pydantic import JsonValue
from sqlalchemy.ext.asyncio import AsyncConnection

from bot.domain.audit import AuditEvent, AuditKind
from bot.domain.callers import CallerKind, KnownCaller, TokenEntry
from bot.domain.ids import UserId
from bot.store.access_tables import caller_tokens, callers
from bot.store.audit import append_audit
from bot.store.columns import json_text
from bot.store.database import NOW, Database
from bot.store.dialect import insert_into, now, seconds_ago

PREFIX: Final = "kortex_"  # identifies one for secret scanners, and for people
TOKEN_BYTES: Final = 32
USED_AGAIN_S: Final = 60.0  # a busy token is noted once a minute


class CallerDiffers(Exception):
    """A live caller of that name has another kind, account or roles. The message says which."""


@dataclass(frozen=True, slots=True)
class NewToken:
    id: str
    token: str


@dataclass(frozen=True, slots=True)
class ShownToken:
    id: str
    caller: KnownCaller


_LIVE: Final = sa.and_(
    caller_tokens.c.revoked_at.is_(None),
    sa.or_(caller_tokens.c.expires_at.is_(None), caller_tokens.c.expires_at > now()),
)
_IS_KNOWN: Final = sa.or_(
    callers.c.known_until > now(),
    sa.exists().where(caller_tokens.c.user_id == callers.c.user_id, _LIVE),
)


class StoredCallers:
    """By the database's clock. Every method raises StorageUnavailable."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def create(self, caller: KnownCaller, lives: timedelta | None, by: str) -> NewToken:
        """A token for that caller, on record in the audit log. Raises CallerDiffers."""
        token = PREFIX + secrets.token_urlsafe(TOKEN_BYTES)
        token_id = f"t_{secrets.token_hex(6)}"

        async def work(connection: AsyncConnection) -> None:
            await _agree(connection, caller)
            await _keep(connection, caller, None)
            at = (await connection.execute(NOW)).scalar_one()
            await connection.execute(
                caller_tokens.insert().values(
                    id=token_id,
                    user_id=caller.user,
                    digest=_digest(token),
                    created_at=at,
                    expires_at=at + lives if lives else None,
                )
            )
            body: dict[str, JsonValue] = {
                "token": token_id,
                "caller": caller.user,
                "roles": [*sorted(caller.roles)],
                "account": caller.account,
                "expires": bool(lives),
            }
            key = f"{token_id}:created"
            await append_audit(connection, AuditEvent(AuditKind.CALLER_ADMITTED, by, body, key=key))

        await self._database.transact(work, again=False)
        return NewToken(token_id, token)

    async def revoke(self, token_id: str, by: str) -> bool:
        """From now on it is refused; False when there is no such live token."""

        async def work(connection: AsyncConnection) -> bool:
            found = await connection.execute(
                caller_tokens.update()
                .where(caller_tokens.c.id == token_id, caller_tokens.c.revoked_at.is_(None))
                .values(revoked_at=now())
                .returning(caller_tokens.c.user_id)
            )
            if (row := found.first()) is None:
                return False
            body = {"token": token_id, "caller": row.user_id}
            key = f"{token_id}:revoked"
            await append_audit(connection, AuditEvent(AuditKind.CALLER_REVOKED, by, body, key=key))
            return True

        return await self._database.transact(work)

    async def tokens(self) -> Sequence[TokenEntry]:
        """All that there ever were, the newest first."""
        statement = (
            sa.select(caller_tokens, callers, _LIVE.label("is_live"))
            .join(callers, callers.c.user_id == caller_tokens.c.user_id)
            .order_by(caller_tokens.c.created_at.desc(), caller_tokens.c.id)
        )

        return [_entry(row) for row in await self._database.rows(statement)]

    async def shown(self, token: str) -> ShownToken | None:
        """The token's caller; None for a revoked, expired or unknown one."""
        digest = _digest(token)
        statement = (
            sa.select(callers, caller_tokens.c.id, caller_tokens.c.digest, _used_lately())
            .join(callers, callers.c.user_id == caller_tokens.c.user_id)
            .where(caller_tokens.c.digest == digest, _LIVE)
        )

        row = await self._database.first(statement)
        if row is None or not hmac.compare_digest(str(row.digest), digest):
            return None
        if not row.used_lately:
            await self._note_use(row.id)
        return ShownToken(row.id, _caller(row))

    async def known(self, user: UserId) -> KnownCaller | None:
        """A caller with a live token, or with recent claims of an identity provider."""
        statement = sa.select(callers).where(callers.c.user_id == user, _IS_KNOWN)

        row = await self._database.first(statement)
        return None if row is None else _caller(row)

    async def name(self, user: UserId) -> str:
        """A caller's name, also of a former caller; empty if unknown."""
        statement = sa.select(callers.c.name).where(callers.c.user_id == user)

        return str(await self._database.scalar(statement) or "")

    async def told_of(self, caller: KnownCaller, until: datetime) -> None:
        """An identity provider vouches for the caller until then; written when that is news."""
        statement = sa.select(callers).where(callers.c.user_id == caller.user)

        row = await self._database.first(statement)
        is_known = row is not None and row.known_until is not None and row.known_until >= until
        if row is None or not is_known or _caller(row) != caller:
            await self._database.transact(lambda connection: _keep(connection, caller, until))

    async def _note_use(self, token_id: str) -> None:
        await self._database.execute(
            caller_tokens.update().where(caller_tokens.c.id == token_id).values(last_used_at=now())
        )


async def _agree(connection: AsyncConnection, caller: KnownCaller) -> None:
    """What one token of a person gives, all of theirs give: they are one person."""
    statement = sa.select(callers).where(callers.c.user_id == caller.user, _IS_KNOWN)
    row = (await connection.execute(statement)).first()
    if row is None or _caller(row) == caller:
        return
    was = _caller(row)
    has = f"the account {was.account}" if was.account else f"the roles {sorted(was.roles)}"
    raise CallerDiffers(
        f"{was.name} has a live token with {has}. Give this one the same, or revoke that one first"
    )


async def _keep(connection: AsyncConnection, caller: KnownCaller, until: datetime | None) -> None:
    values = {
        "kind": caller.kind.value,
        "name": caller.name,
        "roles": json_text(sorted(caller.roles)),
        "account": caller.account,
        "known_until": until,
    }
    await connection.execute(
        insert_into(connection, callers)
        .values(user_id=caller.user, **values)
        .on_conflict_do_update(index_elements=["user_id"], set_=values)
    )


def _used_lately() -> sa.Label[Any]:
    return sa.func.coalesce(
        caller_tokens.c.last_used_at > seconds_ago(USED_AGAIN_S), sa.false()
    ).label("used_lately")


def _digest(token: str) -> str:
    return sha256(token.encode("utf-8", "replace")).hexdigest()


def _caller(row: sa.Row[Any]) -> KnownCaller:
    return KnownCaller(
        UserId(row.user_id),
        CallerKind(row.kind),
        row.name,
        frozenset(orjson.loads(row.roles)),
        row.account,
    )


def _entry(row: sa.Row[Any]) -> TokenEntry:
    return TokenEntry(
        row.id,
        _caller(row),
        row.created_at,
        row.expires_at,
        row.revoked_at,
        row.last_used_at,
        bool(row.is_live),
    )
