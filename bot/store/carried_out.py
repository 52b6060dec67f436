"""What went out lately in other conversations of a tenant: told where the same may be asked for next."""

from collections.abc import Collection, Sequence
from typing import Final

import sqlalchemy as sa

from bot.domain.ids import Place, session_at
from bot.domain.proposal import LIFETIME, Proposal, ProposalState, refused_by
from bot.domain.tenancy import is_shared
from bot.store.dialect import Connection, seconds_ago
from bot.store.proposal_rows import proposal_of
from bot.store.same_orders import of_one_tenant
from bot.store.tables import proposals, sessions

_WENT_OUT: Final = tuple(
    state.value
    for state in (
        ProposalState.DISPATCHING,
        ProposalState.SUCCEEDED,
        ProposalState.FAILED,
        ProposalState.UNKNOWN,
    )
)
# A card is confirmed while it lives; each edit makes it live as long again.
_ASKED_BEFORE_S: Final = 6 * LIFETIME.total_seconds()
_MOST_SESSIONS: Final = 500


async def carried_out_elsewhere(
    connection: Connection,
    place: Place,
    products: Collection[str] | None,
    seconds: float,
    limit: int,
) -> Sequence[Proposal]:
    """See `ProposalStore.carried_out_elsewhere`; of the `_MOST_SESSIONS` that were asked in last."""
    # Two statements: their indexes end at what is recent, whatever a planner thinks of a join.
    asked_lately = await connection.scalars(
        sa.select(sessions.c.id)
        .where(sessions.c.active_at > seconds_ago(seconds + _ASKED_BEFORE_S))
        .order_by(sessions.c.active_at.desc(), sessions.c.id.desc())
        .limit(_MOST_SESSIONS)
    )
    others = [each for each in asked_lately if each != session_at(place)]
    found = await connection.execute(
        sa.select(proposals).where(
            proposals.c.session_id.in_(others),
            proposals.c.state.in_(_WENT_OUT),
            proposals.c.dispatched_at > seconds_ago(seconds),
            of_one_tenant(place.team),
            *([] if products is None else [proposals.c.product.in_(products)]),
        )
    )
    rows = sorted(found, key=lambda row: (row.dispatched_at, row.id))
    # A guard's last no came before anything was sent.
    went_out = [each for row in rows if not refused_by(each := proposal_of(row))]
    return [each for each in went_out if not _is_in_channel(each, place)][-limit:]


def _is_in_channel(row: Proposal, place: Place) -> bool:
    same = (row.place.team, row.place.channel) == (place.team, place.channel)
    return same and is_shared(place.team)
