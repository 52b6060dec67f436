"""`bot.ports.overview.Overview` in the database."""

from collections.abc import Sequence

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from bot.domain.ids import ChannelId, MessageTs, Place, ProposalId, TeamId, UserId
from bot.domain.overview import RecentConversation, RunningQuestion
from bot.domain.proposal import Proposal
from bot.domain.session import TurnState
from bot.store.database import Database
from bot.store.dialect import seconds_ago
from bot.store.proposals import StoredProposals
from bot.store.tables import proposals, sessions, tickets, turns
from bot.store.tenant_filter import TenantScope, of_session, of_team


class StoredOverview:
    """Each method reads only its rows, and no more than its limit."""

    def __init__(self, database: Database, scope: TenantScope = None) -> None:
        self._database = database
        self._scope = scope

    async def under_way(self, limit: int) -> Sequence[RunningQuestion]:
        """Running turns, and tickets of turns that have not begun."""
        running = (
            sa.select(turns, sessions.c.team, sessions.c.channel, sessions.c.thread_ts)
            .join(sessions, sessions.c.id == turns.c.session_id)
            .where(turns.c.state == TurnState.RUNNING.value, self._own(sessions))
            .order_by(turns.c.started_at, turns.c.id)
            .limit(limit)
        )
        begun = sa.exists().where(turns.c.id == tickets.c.id)
        own = of_session(sa.literal("session:") + tickets.c.thread, self._scope)
        waiting = sa.select(tickets).where(~begun, own).order_by(tickets.c.ts, tickets.c.id)

        async def work(connection: AsyncConnection) -> Sequence[RunningQuestion]:
            found = [
                RunningQuestion(
                    Place(TeamId(r.team), ChannelId(r.channel), MessageTs(r.thread_ts)),
                    MessageTs(r.ts),
                    UserId(r.asker_user),
                    r.started_at,
                )
                for r in await connection.execute(running)
            ]
            rest = limit - len(found)
            rows = (await connection.execute(waiting.limit(rest))).all() if rest > 0 else ()
            return [
                *found,
                *(RunningQuestion(_place(r.thread), MessageTs(r.ts), None, None) for r in rows),
            ]

        return await self._database.fetch(work)

    async def open_proposals(self, limit: int) -> Sequence[Proposal]:
        """Pending, and not past their time by the database's clock."""

        waiting = (
            sa.select(proposals.c.id)
            .where(
                sa.text("state = 'pending'"),
                proposals.c.expires_at > seconds_ago(0),
                self._own(proposals),
            )
            .order_by(proposals.c.expires_at, proposals.c.id)
            .limit(limit)
        )
        store = StoredProposals(self._database)
        found = [
            await store.get(ProposalId(each)) for each in await self._database.scalars(waiting)
        ]
        return [each for each in found if each is not None]

    async def talks(self, limit: int) -> Sequence[RecentConversation]:
        """Sessions with the number of questions in each, and the last asker."""
        newest = (
            sa.select(sessions)
            .where(self._own(sessions))
            .order_by(sessions.c.active_at.desc(), sessions.c.id)
            .limit(limit)
            .subquery()
        )
        of = turns.c.session_id == newest.c.id
        count = sa.select(sa.func.count()).where(of).scalar_subquery()
        last = (
            sa.select(turns.c.asker_user)
            .where(of)
            .order_by(turns.c.ts.desc(), turns.c.id.desc())
            .limit(1)
            .scalar_subquery()
        )

        found = await self._database.rows(
            sa.select(newest, count.label("questions"), last.label("asker")).order_by(
                newest.c.active_at.desc(), newest.c.id
            )
        )
        return [
            RecentConversation(
                Place(TeamId(r.team), ChannelId(r.channel), MessageTs(r.thread_ts)),
                r.active_at,
                int(r.questions),
                UserId(r.asker or ""),
            )
            for r in found
        ]

    def _own(self, table: sa.Table) -> sa.ColumnElement[bool]:
        return of_team(table.c.team, self._scope)


def _place(key: str) -> Place:
    team, channel, thread = (*key.split(":", 2), "", "")[:3]
    return Place(TeamId(team), ChannelId(channel), MessageTs(thread))
