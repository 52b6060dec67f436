"""Identical orders of one tenant: open in the channel, or sent before another.

The audit log gives the order, because its rows have one order on every replica, without a clock.
"""

from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from bot.domain.proposal import Proposal, ProposalState, refused_by
from bot.domain.tenancy import is_shared
from bot.store.access_tables import installations
from bot.store.dialect import now, seconds_ago
from bot.store.proposal_rows import proposal_of
from bot.store.tables import IS_UNDER_WAY, audit, proposals

# A card lives for minutes. Older finished orders do not matter, so the index of dispatches limits
# the read.
_CONCERNS_S: Final = 24 * 3600.0


async def order_in_the_way(connection: AsyncConnection, row: Proposal) -> Proposal | None:
    """See `ProposalStore.same_order`; the latest of them. Asked under `lock_order` it stays true."""
    raised = _number(sa.literal(f"{row.id}:created"))
    ended = _number(proposals.c.id.concat(":outcome"))
    over_before = sa.func.coalesce(ended < raised, sa.false())
    recent = proposals.c.dispatched_at > seconds_ago(_CONCERNS_S)
    under_way = proposals.c.state == ProposalState.DISPATCHING.value
    found = await connection.execute(
        sa.select(proposals)
        .where(*_identical(row), proposals.c.dispatched_at.is_not(None), recent | under_way)
        .where(~over_before)
        .order_by(proposals.c.dispatched_at.desc(), proposals.c.id)
    )
    went_out = (proposal_of(each) for each in found)
    # A guard's last no came before anything was sent.
    return next((each for each in went_out if not refused_by(each)), None)


async def open_in_channel(connection: AsyncConnection, row: Proposal) -> Proposal | None:
    """An identical order of the same channel that is under way or may still be confirmed.

    Of the same thread, if not every reader may see the channel's other threads.
    """
    here = [proposals.c.team == row.place.team, proposals.c.channel == row.place.channel]
    if not is_shared(row.place.team):
        here.append(proposals.c.thread_ts == row.place.thread_ts)
    # Written out, so that the partial indexes serve them.
    pending = (sa.text("state = 'pending'"), proposals.c.expires_at > seconds_ago(0))
    for is_open in (pending, (sa.text(IS_UNDER_WAY),)):
        found = await connection.execute(
            sa.select(proposals)
            .where(*is_open, *_identical(row), *here)
            .order_by(proposals.c.created_at, proposals.c.id)
            .limit(1)
        )
        if (first := found.first()) is not None:
            return proposal_of(first)
    return None


async def pending_like(connection: AsyncConnection, row: Proposal) -> list[Proposal]:
    """The tenant's undecided identical ones, in one order for all lockers."""
    found = await connection.execute(
        sa.select(proposals)
        .where(sa.text("state = 'pending'"), *_identical(row))
        .order_by(proposals.c.id)
        .with_for_update()
    )
    return [proposal_of(each) for each in found]


def retired(row: Proposal, outcome: str, values: dict[str, Any]) -> sa.Update:
    """pending → superseded, without a person."""
    return (
        proposals.update()
        .where(proposals.c.id == row.id, proposals.c.state == ProposalState.PENDING.value)
        .values(
            {
                "state": ProposalState.SUPERSEDED.value,
                "outcome": outcome,
                "decided_at": now(),
                **values,
            }
        )
    )


def _number(key: sa.ColumnElement[str]) -> sa.ScalarSelect[int]:
    return sa.select(audit.c.seq).where(audit.c.key == key).scalar_subquery()


def _identical(row: Proposal) -> tuple[sa.ColumnElement[bool], ...]:
    return (
        proposals.c.action == row.action,
        proposals.c.product == row.product,
        proposals.c.digest == row.digest,
        proposals.c.id != row.id,
        of_one_tenant(sa.literal(row.place.team)),
    )


def of_one_tenant(team: sa.ColumnElement[str]) -> sa.ColumnElement[bool]:
    """The same workspace, or neither of them of another one that installed the app."""
    installed = sa.select(installations.c.team)
    neither = proposals.c.team.not_in(installed) & team.not_in(installed)
    return (proposals.c.team == team) | neither
