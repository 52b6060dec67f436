"""`bot.ports.installations` in the database: tokens sealed, states as digests, the database's clock."""

import hashlib
import secrets
from collections.abc import Mapping, Sequence
from typing import Any, Final

import sqlalchemy as sa
import structlog
from sqlalchemy.ext.asyncio import AsyncConnection

from bot.domain.audit import AuditEvent, AuditKind
from bot.domain.ids import TeamId, UserId
from bot.ports.installations import Installed
from bot.privacy.token_seal import SealBroken, TokenSeal
from bot.store.access_tables import installations as table
from bot.store.access_tables import oauth_states
from bot.store.audit import append_audit
from bot.store.database import Database
from bot.store.dialect import insert_into, now, seconds_ago

log = structlog.stdlib.get_logger(__name__)

STATE_S: Final = 600.0  # as slack-bolt's own stores
MOST_STATES: Final = 1_000  # pending at once: a request for one needs no account
_LIVE: Final = table.c.sealed != ""


class StoredInstallations:
    def __init__(self, database: Database, seal: TokenSeal) -> None:
        self._database = database
        self._seal = seal

    async def save(self, installed: Installed, by: str) -> None:
        sealed = self._seal.seal(installed.team, installed.token)

        async def work(connection: AsyncConnection) -> None:
            insert = insert_into(connection, table).values(
                team=installed.team,
                enterprise=installed.enterprise,
                app_id=installed.app_id,
                bot_user=installed.bot_user,
                bot_id=installed.bot_id,
                site=installed.site,
                sealed=sealed,
                revision=1,
                changed_at=now(),
            )
            new: dict[str, sa.ColumnElement[Any]] = {
                name: insert.excluded[name]
                for name in (
                    "enterprise", "app_id", "bot_user", "bot_id", "site", "sealed", "changed_at",
                )
            }  # fmt: skip
            new["revision"] = table.c.revision + 1
            await connection.execute(
                insert.on_conflict_do_update(index_elements=["team"], set_=new)
            )
            about = {"team": installed.team, "app": installed.app_id}
            await append_audit(connection, AuditEvent(AuditKind.WORKSPACE_INSTALLED, by, about))

        await self._database.transact(work)

    async def find(self, team: TeamId) -> Installed | None:
        found = await self._read(sa.select(table).where(_LIVE, table.c.team == team))
        return found[0] if found else None

    async def all(self) -> Sequence[Installed]:
        return await self._read(sa.select(table).where(_LIVE).order_by(table.c.team))

    async def revisions(self) -> Mapping[TeamId, int]:
        found = await self._database.rows(sa.select(table.c.team, table.c.revision).where(_LIVE))
        return {TeamId(team): revision for team, revision in found}

    async def remove(self, team: TeamId, why: str, revision: int | None = None) -> bool:
        same = sa.true() if revision is None else table.c.revision == revision

        async def work(connection: AsyncConnection) -> bool:
            removed = await connection.execute(
                table.update()
                .where(table.c.team == team, _LIVE, same)
                .values(sealed="", revision=table.c.revision + 1, changed_at=now())
            )
            if removed.rowcount != 1:
                return False
            about = {"team": team, "why": why}
            await append_audit(connection, AuditEvent(AuditKind.WORKSPACE_REMOVED, "slack", about))
            return True

        return await self._database.transact(work)

    async def reseal(self) -> int:
        """Seal with the first key what another one sealed, so that it can be retired. How many."""

        renewed = {
            sealed: anew
            for sealed in await self._database.scalars(sa.select(table.c.sealed).where(_LIVE))
            if (anew := self._seal.renewed(sealed)) is not None
        }

        async def work(connection: AsyncConnection) -> None:
            for old, new in renewed.items():
                # A later installation is already sealed with the first key.
                await connection.execute(
                    table.update().where(table.c.sealed == old).values(sealed=new)
                )

        if renewed:
            await self._database.transact(work)
        return len(renewed)

    async def _read(self, wanted: sa.Select[Any]) -> list[Installed]:
        rows = await self._database.rows(wanted)
        return [found for row in rows if (found := self._opened(row)) is not None]

    def _opened(self, row: sa.Row[Any]) -> Installed | None:
        try:
            token = self._seal.opened(row.team, row.sealed)
        except SealBroken as error:
            log.error("workspace.token_unreadable", team=row.team, error=str(error))
            return None
        return Installed(
            TeamId(row.team),
            UserId(row.bot_user),
            row.bot_id,
            token,
            row.app_id,
            row.enterprise,
            row.site,
            row.revision,
        )


class StoredOAuthStates:
    """Digests, so that database content completes no installation."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def issue(self) -> str | None:
        state = secrets.token_urlsafe(32)

        async def work(connection: AsyncConnection) -> bool:
            old = oauth_states.c.issued_at < seconds_ago(STATE_S)
            await connection.execute(oauth_states.delete().where(old))
            under_way = await connection.scalar(
                sa.select(sa.func.count()).select_from(oauth_states)
            )
            if (under_way or 0) >= MOST_STATES:
                return False
            await connection.execute(
                oauth_states.insert().values(digest=_digest(state), issued_at=now())
            )
            return True

        return state if await self._database.transact(work) else None

    async def consume(self, state: str) -> bool:
        async def work(connection: AsyncConnection) -> bool:
            gone = await connection.execute(
                oauth_states.delete()
                .where(oauth_states.c.digest == _digest(state))
                .returning(oauth_states.c.issued_at >= seconds_ago(STATE_S))
            )
            return bool(gone.scalar())

        return await self._database.transact(work)


def _digest(state: str) -> str:
    return hashlib.sha256(state.encode("utf-8", "surrogatepass")).hexdigest()
